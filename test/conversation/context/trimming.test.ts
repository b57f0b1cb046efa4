/** When what long-term memory has leaves the prompt, as decisions: the rules of trimming.ts. */
import { apply } from '../../../src/conversation/apply.js';
import type { AgentSettings } from '../../../src/conversation/state/settings.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { listSlots } from '../../../src/records/slots.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { readCarriedState } from '../../../src/conversation/opening.js';
import { contextOf, statusOf } from '../../../src/conversation/views/view.js';
import { answered, evicted, isEffect, namesOf, open, said, SETTINGS, settle, take, USAGE, type Script } from '../drive.js';

const WHEN_NEEDED: AgentSettings = { ...SETTINGS, memory: { ...SETTINGS.memory, trim: 'when-needed' } };

/** Each turn is reported with so many tokens. */
function script(inputTokens: number, asked: string[] = [], settings = WHEN_NEEDED): Script {
  return {
    step: (input) =>
      answered(
        input,
        { usage: { ...USAGE, inputTokens } },
        input.configure && input.configure.knownHash !== settings.hash ? { configured: { kind: 'settings', settings } } : {},
      ),
    consolidate: ({ request }) => {
      asked.push(request.requestId);
      return 'model';
    },
  };
}

function talked(turns: number, inputTokens = 10, before = open(), asked: string[] = []): ConversationState {
  let state = before;
  for (let i = 0; i < turns; i++) {
    const message = said(`m${state.counters.turn}`, { at: state.now });
    state = settle(apply(state, message), script(inputTokens, asked)).state;
  }
  return state;
}

test('what is consolidated stays while there is room, and the window counts on from there', () => {
  const asked: string[] = [];
  const thirty = talked(30, 10, open(), asked);
  expect(thirty).toMatchObject({ epoch: 1, context: [[1, 60]] });
  expect(statusOf(thirty, 0).window).toMatchObject({ messages: 18, consolidated: 42, consolidating: 0 });
  // Not at every turn: once for each forty-two messages.
  const hundred = talked(70, 10, thirty, asked);
  expect(asked).toEqual(['s1/1-42', 's1/43-84', 's1/85-126', 's1/127-168']);
  expect(hundred.context).toEqual([[1, 200]]);
  expect(readCarriedState(JSON.parse(JSON.stringify(hundred)), 'l1')).toMatchObject({ ok: true });
});

test('past the soft threshold all of it leaves at the next border, and the rest of the window stays', () => {
  const full = talked(50);
  expect(full.consolidation.covered.map(({ requestId }) => requestId)).toEqual(['s1/1-42', 's1/43-84']);
  const { state, steps } = settle(apply(full, said('more', { at: full.now })), script(50_000));
  const leaving = steps.find((step) => isEffect(step, 'evict'));
  expect(leaving?.input.what).toMatchObject({
    kind: 'trim',
    covered: [
      { requestId: 's1/1-42', slots: [[1, 42]] },
      { requestId: 's1/43-84', slots: [[43, 84]] },
    ],
  });
  expect(state).toMatchObject({ epoch: 2, context: [[85, 102]], consolidation: { covered: [], trims: 1 } });
  expect(contextOf(state)).toMatchObject({ compactions: 0, window: { trims: 1, messages: 84, consolidated: 0, trimsFrom: 50_000 } });
});

/** With two turns more, of which the last is reported with more than the soft threshold; a trim is next. */
function leaving(before: ConversationState = talked(26)): ReturnType<typeof take<'evict'>> {
  const calling = take(apply(before, said('large', { at: before.now })), 'model-step');
  return take(apply(calling.state, calling.done(answered(calling.input, { usage: { ...USAGE, inputTokens: 60_000 } }))), 'evict');
}

test('one that would make the prompt no smaller changes nothing, and is tried again once there is more', () => {
  const trying = leaving();
  const refused = apply(trying.state, trying.done({ life: 'l1', session: 1, finished: true }));
  expect(refused).toMatchObject({ epoch: 1, context: [[1, 54]], contextTokens: 60_005 });
  expect(nextStep(refused).kind).toBe('wait');
  expect(contextOf(refused).window).toEqual({ consolidated: 42, trimsFrom: 50_000, trims: 0, messages: 0, unsummarized: 0 });
  const later = talked(19, 60_000, refused);
  expect(later.consolidation).toMatchObject({ trims: 1, trimRest: 's1/1-42' });
  const again = settle(apply(later, said('more', { at: later.now })), script(60_000));
  expect(again.steps.flatMap((step) => (isEffect(step, 'evict') ? [step.input.what] : []))).toMatchObject([
    // No episode has the number of the one that was not written.
    { kind: 'trim', number: 2, covered: [{ requestId: 's1/1-42' }, { requestId: 's1/43-84' }] },
  ]);
});

test('of what a compaction took, nothing leaves twice; what it took whole is not trimmed at all', () => {
  const taken =
    (upTo: number) =>
    (state: ConversationState): ConversationState => ({
      ...state,
      context: [[upTo + 1, listSlots(state.context).at(-1) ?? 0]],
    });
  const half = leaving(taken(20)(talked(26)));
  expect(half.input.what).toMatchObject({ covered: [{ slots: [[21, 42]] }] });
  const whole = taken(42)(talked(26));
  const { steps } = settle(apply(whole, said('large', { at: whole.now })), script(60_000));
  expect(namesOf(steps)).not.toContain('evict');
  expect(contextOf(whole)).not.toHaveProperty('window');
});

test('what was left out of the prompt is in the summary too, and in no other one', () => {
  // By itself a compaction would take it up at once.
  const before = talked(26);
  const settings = before.settings && { ...before.settings, thresholds: { ...before.settings.thresholds, autoCompact: false } };
  const short = { ...before, settings, context: [[9, 52]] as const, compaction: { ...before.compaction, leftOut: [[1, 8]] as const } };
  const trying = leaving(short);
  expect(trying.input.what).toMatchObject({ leftOut: [[1, 8]], covered: [{ slots: [[1, 42]] }] });
  const trimmed = apply(trying.state, trying.done(evicted(trying.input)));
  expect(trimmed).toMatchObject({ context: [[43, 54]], compaction: { leftOut: [], before: null, base: 'trim-2' } });
});

test('what is covered while a trim runs leaves with the next one', () => {
  const { state } = settle(apply(talked(46), said('silent', { at: 50_000 })), { ...script(10), consolidate: () => undefined });
  expect(state.consolidation.pending?.requestId).toBe('s1/43-84');
  const trying = leaving(state);
  const told = apply(trying.state, { kind: 'consolidation-ended', requestId: 's1/43-84', consolidation: 'model', usage: null, at: 1 });
  const trimmed = apply(told, trying.done(evicted(trying.input)));
  expect(trimmed.consolidation.covered.map(({ requestId }) => requestId)).toEqual(['s1/43-84']);
  expect(take(trimmed, 'evict').input.what).toMatchObject({ number: 2, covered: [{ requestId: 's1/43-84' }] });
});

test('what a consolidation has handed over goes to the trim, also where it came late', () => {
  const before = talked(26);
  const handover = {
    kind: 'consolidation-ended',
    requestId: 's1/1-42',
    consolidation: 'model',
    usage: null,
    handover: 'ref',
    at: 1,
  } as const;
  const [covered] = apply(before, handover).consolidation.covered;
  expect(covered).toMatchObject({ requestId: 's1/1-42', handover: 'ref' });
  expect(leaving(apply(before, handover)).input.what).toMatchObject({ covered: [{ requestId: 's1/1-42', handover: 'ref' }] });
  expect(apply(before, { ...handover, requestId: 'other' }).consolidation).toEqual(before.consolidation);
});

test('of older turns that stay the first are shown to the trim: the goal may be among them', () => {
  const before = talked(26);
  const [one] = before.consolidation.covered;
  const later = { requestId: 's1/21-42', turns: one!.turns.filter(({ turn }) => turn > 10) };
  const trying = leaving({ ...before, consolidation: { ...before.consolidation, covered: [later] } });
  expect(trying.input.what).toMatchObject({ before: [[1, 16]], covered: [{ slots: [[21, 42]] }] });
  expect(leaving().input.what).toMatchObject({ before: [] });
});

test.each([
  { to: 'turn_0010', context: [[1, 20]], covered: [] },
  { to: 'turn_0023', context: [[1, 46]], covered: ['s1/1-42'] },
] as const)('after a rewind to $to a summary with turns that were cut stands for none', ({ to, context, covered }) => {
  const before = talked(26);
  const rewinding = take(apply(before, { kind: 'rewind-requested', requestId: 'r', to, at: before.now }), 'rewind');
  const none = { cut: null, turns: 1, session: 1, task: null, episodes: [], compactions: 0, tokens: 1 };
  const rewound = apply(rewinding.state, rewinding.done({ life: 'l1', ...none, context }));
  expect(rewound.consolidation.covered.map(({ requestId }) => requestId)).toEqual(covered);
});
