/** What a person reads who asks why the model does not know something. */
import { textOfDrawn } from '../../../src/cli/terminal/terminal-text.js';
import { renderKnown, spans } from '../../../src/cli/views/known-turns.js';
import { renderWhy } from '../../../src/cli/views/why.js';
import { knownTurns } from '../../../src/insight/known-turns.js';
import { whyOf, type WhyAnswer } from '../../../src/insight/why.js';
import type { Leaving } from '../../../src/conversation/replay/leaving.js';
import type { ConversationMessage, Entry } from '../../../src/records/message.js';
import { turnId } from '../../../src/records/identity.js';
import type { EpisodeRecord } from '../../../src/stores/store.js';
import { answer, calls, result, user } from '../../memory/builders.js';

/** Turn, session, messages; slots from 1. */
function entriesOf(...told: readonly (readonly [turn: number, session: number, ...messages: ConversationMessage[]])[]): Entry[] {
  let slot = 0;
  return told.flatMap(([turn, session, ...messages]) =>
    messages.map((message, seq): Entry => ({ v: 1, slot: ++slot, turn: turnId(turn), seq, session, ts: slot, message })),
  );
}

const EPISODE: EpisodeRecord = {
  ...{ id: 'ep_0001', ts: 5, turn_ids: [turnId(2), turnId(3)], summary: 'They met.', tags: [], salience: 0.5 },
  ...{ session: 2, epoch: 2, slots: [[3, 6]] },
};

const entries = entriesOf(
  [1, 1, user('of the old session'), answer('yes')],
  [2, 2, user('a'), answer('b')],
  [3, 2, user('c'), answer('d')],
  [4, 2, user('left out'), answer('too')],
  [5, 2, user('a paste '.repeat(200)), calls(['c1']), { ...result('c1'), item: { id: 'mem_a', citation: 'long' } }, answer('e')],
  [6, 2, user('now'), { role: 'user', from: 'notice', text: 'The context fills.' }, answer('f')],
);
const index = {
  session: 2,
  chunks: [{ kind: 'WORKING_FLOW', tokens: 9, slots: [[9, 15]] }],
  cited: [[9, 9]],
  leftOut: [[7, 8]],
} as const;

test('of each turn it says whether the model sees it, and how the rest is had', () => {
  const drawn = renderKnown('chat', knownTurns(index, entries, [EPISODE])).map(textOfDrawn);
  expect(drawn.join('\n')).toMatchInlineSnapshot(`
   "
   what the model sees of each turn
     word for word turns 5–6
     by its ends   a long message of turn 5; the rest by retrieve_from_memory (mem_msg_9)
     by a line     long results of turn 5; the rest by retrieve_from_memory (mem_a)
     as a summary  turns 2–3: ep_0001 (perdura memory list chat)
     not now       turn 4: left out until the next summary; perdura context chat --compact makes one
     no longer     turn 1: of a session that /new ended; MEMORY.md and \`perdura history\` have what was kept of it
     why a turn is not there: perdura context chat --why TURN"
  `);
  const whole = { session: 1, chunks: [{ kind: 'WORKING_FLOW', tokens: 9, slots: [[1, 2]] }] } as const;
  expect(renderKnown('chat', knownTurns(whole, entries.slice(0, 2), []))).toEqual([]);
  expect(spans([9, 1, 2, 4].map(turnId))).toBe('turns 1–2, 4, 9');
});

const LEFT: Leaving = {
  ...{ kind: 'truncated', event: 'truncate completed', at: 1_000, epoch: 1, session: 2, slots: [7], allSlots: [7, 8] },
  ...{ tokens: { before: 9_000, after: 6_000 }, model: 'a/b' },
};

function why(more: Partial<WhyAnswer>): string {
  const answered = {
    hasEnded: false,
    id: 'chat',
    turn: 'turn_0004',
    entries: 2,
    shortened: [],
    inPrompt: 0,
    causes: [],
    complete: true,
    problems: [],
    ...more,
  };
  return renderWhy(answered, 'iso', 10_000).map(textOfDrawn).join('\n');
}

test('what happened stands in the order in which it happened, whoever knows of it', () => {
  const made = {
    inputsHash: 'i',
    compactor: 'c',
    method: 'rules',
    model: 'a/b',
    failure: 'no answer',
    tokensBefore: 1,
    tokensAfter: 1,
  } as const;
  const later = { ...EPISODE, turn_ids: [turnId(4)], made };
  const causes = whyOf('turn_0004', [LEFT], [later], () => 'turn_0004');
  expect(causes.map(({ kind }) => kind)).toEqual(['truncated', 'compacted']);
  const drawn = why({ causes });
  expect(drawn).toMatch(
    /^turn_0004 is no longer in the prompt: none of its 2 messages is\n {2}what the model has instead: the summary ep_0001 below[^\n]*\n {2}word for word: perdura show chat --turn 4\n/,
  );
  expect(drawn).toMatch(/\n {4}by +rules, since a\/b gave no usable summary\n {4}since +no answer\n/);
});

test.each([
  ['left out', { causes: whyOf('turn_0004', [LEFT], [], () => undefined) }, 'a notice that something was left out'],
  ['of a session that ended', { causes: whyOf('turn_0004', [{ ...LEFT, kind: 'session-ended' }], [], () => undefined) }, 'MEMORY.md'],
  [
    'taken back',
    { branch: 1, causes: whyOf('turn_0004', [{ ...LEFT, kind: 'rewound' }], [], () => undefined) },
    'perdura fork chat --at 4',
  ],
] as const)('%s: it says what the model has instead', (_, more, words) => {
  expect(why(more)).toContain(`what the model has instead: `);
  expect(why(more)).toContain(words);
  if ('branch' in more) expect(why(more)).toContain('word for word: perdura show chat --branch 1 --turn 4');
});

test('of a session that has ended no summary is said to be in the prompt', () => {
  const causes = whyOf('turn_0004', [{ ...LEFT, kind: 'trimmed' }], [], () => undefined);
  expect(why({ hasEnded: true, causes })).toMatch(/\n {2}\/new has ended its session\n {2}what the model has instead: MEMORY\.md/);
});

test('what is in the prompt and shortened is not said to be there whole', () => {
  const drawn = why({ inPrompt: 2, shortened: [{ turn: 'turn_0004', kind: 'message', item: 'mem_msg_7' }] });
  expect(drawn).toMatch(
    /^turn_0004 is in the prompt, and not all of it word for word\n {2}its long message is shown by beginning and end only; .*\(mem_msg_7\)\n/,
  );
  expect(why({ inPrompt: 2 })).toBe('turn_0004 is not forgotten: all of its 2 messages are in the prompt');
});
