/** What Temporal's own page says of what people and models have said: first words, as code, and nothing where they are not wanted. */
import { apply } from '../../../src/conversation/apply.js';
import { summaryOfEffect } from '../../../src/conversation/effect-table.js';
import type { ShownWords } from '../../../src/conversation/turn/model-step-effects.js';
import { readCarriedState } from '../../../src/conversation/opening.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { detailsOf } from '../../../src/conversation/views/view.js';
import { answered, open, said, SETTINGS, settle, take } from '../drive.js';

const SHOWING = { kind: 'settings', settings: { ...SETTINGS, showsWords: true } } as const;

/** One turn, whose step has these words to show. */
function turn(before: ConversationState, text: string, words?: ShownWords) {
  const { input, done, state } = take(apply(before, said(text, { text })), 'model-step');
  const summary = summaryOfEffect({ effect: 'model-step', id: 'x', input });
  const after = apply(state, done({ ...answered(input, {}, { configured: SHOWING }), ...(words && { words }) }));
  return { summary, after: settle(after).state };
}

test('a step shows its message once a worker has said that it may, and never before', () => {
  const first = turn(open(), 'first secret words');
  expect(first.summary).not.toContain('secret');
  const second = turn(first.after, 'What is in\n**README**?');
  expect(second.summary).toMatch(/ · `What is in \*\*README\*\*\?`$/);
  const quiet: ConversationState = { ...second.after, settings: SETTINGS };
  expect(turn(quiet, 'not for the page').summary).not.toContain('page');
});

test('what looks like a secret, a control character, and a back-tick that would end the code are not in it', () => {
  const showing = turn(open(), 'a').after;
  expect(turn(showing, `use sk-ant-${'a1B2'.repeat(8)} \u202eplease`).summary).toMatch(/ · `use \[redacted\] please`$/);
  expect(turn(showing, 'run `ls`\u0007 [x](http://evil)').summary).toMatch(/ · `run {2}ls {2}\[x\]\(http:\/\/evil\)`$/);
  expect(turn(showing, 'token qX7pL2mZ9vK4tR8wN3bY6cJ1hF5dG0sA').summary).not.toContain('qX7p');
  expect(turn(showing, 'x '.repeat(5_000)).summary.length).toBeLessThan(160);
});

test('the card has the last question and its answer, in at most seven lines, and none of the session before', () => {
  const { after } = turn(open(), 'a', { asked: 'What is in README?', answered: 'Three `commands`.' });
  const lines = detailsOf(after).split('  \n');
  expect(lines).toContain('**asked** `What is in README?`');
  expect(lines).toContain('**answered** `Three  commands .`');
  const asking = apply(turn(after, 'b', { asked: 'And now?', answered: null }).after, said('c'));
  expect(detailsOf(asking)).toContain('**asked** `And now?`');
  expect(detailsOf(asking)).not.toContain('**answered**');
  const whole: ConversationState = {
    ...after,
    title: 'T',
    lastTool: { name: 'read_file', target: 'README.md', outcome: 'ok' },
    retries: { store: { until: 9, attempts: 1, failure: { type: 'StoreUnavailable', message: 'away', transient: true } } },
  };
  expect(detailsOf(whole).split('\n').length).toBeLessThanOrEqual(7);
  expect(detailsOf(whole)).not.toContain('\n\n');
  const cleared = settle(apply(after, { kind: 'reset-requested', resetId: 'r1', at: 20 })).state;
  expect(cleared.session).toBe(2);
  expect(detailsOf(cleared)).not.toContain('README');
});

test('a run hands the words to the next', () => {
  const { after } = turn(open(), 'a', { asked: 'Q', answered: 'A' });
  expect(readCarriedState(JSON.parse(JSON.stringify(after)) as ConversationState, 'l1')).toMatchObject({
    ok: true,
    value: { words: { asked: 'Q', answered: 'A' } },
  });
});

test('what history shows by itself is no part of a result, and a worker that hides it says so', () => {
  const showing = turn(open(), 'first').after;
  expect(detailsOf(turn(showing, 'What is *this*?').after)).toContain('**asked** `What is *this*?`');
  const hidden = detailsOf(turn(showing, 'the key is hunter2', { asked: null }).after);
  expect(hidden).not.toMatch(/hunter2|\*\*asked/);
  const quiet: ConversationState = { ...showing, settings: SETTINGS };
  const { input, done, state } = take(apply(quiet, said('x', { text: 'not for the page' })), 'model-step');
  expect(detailsOf(settle(apply(state, done(answered(input)))).state)).not.toMatch(/page|asked|answered/);
});
