import { apply } from '../../../src/conversation/apply.js';
import type { CompactInput, Compacted } from '../../../src/conversation/context/compaction-effects.js';
import type { ModelAnswer, ModelStepInput } from '../../../src/conversation/turn/model-step-effects.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { listSlots, toRanges } from '../../../src/records/slots.js';
import { outcomeFor } from '../../../src/conversation/requests.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { contextOf, endedTurn, statusOf } from '../../../src/conversation/views/view.js';
import {
  answer,
  answered,
  applyAll,
  asking,
  deferred,
  namesOf as kinds,
  nothingDropped,
  open,
  QUICK,
  rode,
  said,
  settle,
  SETTINGS,
  STORE_AWAY,
  stored,
  take,
  USAGE,
} from '../drive.js';

const BUDGET = SETTINGS.contextBudget;

/** Keeps the last `keep` entries of what it was given. */
function compacted(input: CompactInput, keep = 2): Compacted {
  const slots = listSlots(input.context);
  const kept = slots.slice(-keep);
  return {
    kind: 'compacted',
    life: 'l1',
    epoch: input.epoch,
    kept: [[kept[0] ?? 0, kept.at(-1) ?? 0]],
    archived: [[slots[0] ?? 0, slots.at(-keep - 1) ?? 0]],
    turns: ['turn_0001'],
    task: { goal: 'the goal', openTasks: [] },
    base: { ref: `base-${input.epoch}`, text: 'x'.repeat(400) },
    episode: { id: `ep_000${input.number}`, ts: 1, turn_ids: ['turn_0001'], summary: 's', tags: [], salience: 0.5 },
    facts: [],
    method: 'model',
    record: {
      inputsHash: 'i',
      compactor: 'WorkingFlowCompactor',
      method: 'model',
      model: SETTINGS.model,
      tokensBefore: 1_000,
      tokensAfter: 200,
    },
    tokensBefore: 1_000,
    tokensAfter: 200,
    usage: USAGE,
  };
}

/** The message is with the store, and no more. */
function begun(state: ConversationState, id: string): ConversationState {
  const { state: writing, input, done } = take(apply(state, said(id)), 'store-step');
  expect(input.write.messages).toMatchObject([{ messageId: id }]);
  return apply(writing, done(stored(input)));
}

/** After `turns` turns, the last of which reported this many prompt tokens. */
function talked(turns: number, promptTokens: number): ConversationState {
  let state = open();
  for (let n = 1; n <= turns; n++) {
    const usage = { ...USAGE, inputTokens: n === turns ? promptTokens : 10 };
    state = settle(apply(state, said(`m${n}`)), { model: (input) => answer(input, { usage }) }).state;
  }
  return state;
}

test('a reported prompt over the ratio is compacted before the next call, and not after the answer', () => {
  const state = talked(5, Math.ceil(0.8 * BUDGET) + 1);
  expect(nextStep(state).kind).toBe('wait');
  const seen: string[] = [];
  const { steps, state: after } = settle(apply(state, said('next')), {
    compact: (input) => (seen.push(input.currentTurn ?? ''), compacted(input)),
  });
  expect(kinds(steps)).toEqual(['begin-turn', 'store-step', 'compact', 'model-step', 'wait']);
  expect(seen).toEqual(['turn_0006']);
  expect(after.epoch).toBe(2);
  expect(statusOf(after, 0).context.compactions).toBe(1);
});

test.each([
  ['just below the ratio', Math.floor(0.8 * BUDGET) - 100, false],
  ['over it', Math.floor(0.8 * BUDGET) + 1, true],
  ['over the budget', BUDGET + 1, true],
  ['far below', 100, false],
])('a report %s', (_, tokens, compacts) => {
  const { steps } = settle(apply(talked(3, tokens), said('next')), { compact: (input) => compacted(input) });
  expect(kinds(steps).includes('compact')).toBe(compacts);
});

test('without a report the estimate guards', () => {
  const long = { ...said('long'), text: 'x'.repeat(4 * 81_000) };
  const { steps } = settle(apply(talked(3, 100), long), { compact: (input) => compacted(input) });
  expect(kinds(steps)).toContain('compact');
});

test('every request of a session has the time of its beginning, whatever the clock says and however often it is compacted', () => {
  const begins: unknown[] = [];
  const model = (step: ModelStepInput): ModelAnswer => (
    begins.push(step.call.since),
    answer(step, { usage: { ...USAGE, inputTokens: BUDGET } })
  );
  const days = [0, 1, 2, 3, 4, 5].map((day) => 1000 + day * 86_400_000);
  const after = days.reduce(
    (state, at, n) => settle(apply(state, said(`m${n}`, { at })), { model, compact: (input) => compacted(input) }).state,
    open(),
  );
  expect(after.epoch).toBeGreaterThan(1);
  expect(begins).toEqual(days.map(() => 1000));
});

test('(context/compaction-keeps-later) what is said while it runs stays, after what was kept', () => {
  const { state: running, input, done } = take(begun(talked(5, BUDGET), 'next'), 'compact');
  expect(nextStep(running).kind).toBe('wait');
  const state = applyAll(running, said('later', { delivery: 'steer' }), done(compacted(input, 3)));
  const seen: unknown[] = [];
  settle(state, { model: (step) => (seen.push([step.call.base, step.call.context]), answer(step)) });
  expect(seen[0]).toEqual(['base-2', [[9, 11]]]);
});

const TOO_SLOW = { type: 'timeout', message: 'too slow', transient: true };

test('(context/compaction-rests) one that fails is not tried again in that turn, and the turn goes on', () => {
  const { state: running, failed } = take(begun(talked(5, BUDGET), 'next'), 'compact');
  const state = apply(running, failed(TOO_SLOW));
  expect(take(state, 'model-step').input.call).toMatchObject({ context: running.context, base: null });
  const over = settle(state, { model: (step) => answer(step, { usage: { ...USAGE, inputTokens: BUDGET } }) }).state;
  expect(kinds(settle(apply(over, said('again')), { compact: (input) => compacted(input) }).steps)).toContain('compact');
});

test('(context/late-result-only-costs) a failure that comes after a reset answers no request of the new session', () => {
  const { state: running, failed } = take(begun(talked(5, BUDGET), 'next'), 'compact');
  const cleared = settle(apply(running, { kind: 'reset-requested', resetId: 'r', at: 2001 })).state;
  const asked = applyAll(
    cleared,
    said('new'),
    { kind: 'turn-begun', at: 2002 },
    { kind: 'compaction-requested', requestId: 'x', at: 2002 },
  );
  const late = apply(asked, failed(TOO_SLOW, 2003));
  expect(late.compaction).toEqual(asked.compaction);
  const { state } = settle(late, { compact: (input) => compacted(input, 1) });
  expect(outcomeFor(state, 'compact', 'x')).toMatchObject({ kind: 'compacted' });
});

describe('what is asked of the memory of a context', () => {
  const outcomesOf = ({ requests }: ConversationState) =>
    requests.answered.flatMap((one) =>
      one.kind === 'compact' || one.kind === 'undo' || one.kind === 'truncate' ? [[one.id, one.outcome.kind]] : [],
    );

  test('is answered too when it can be undone no more by the time that it is done', () => {
    const done = settle(apply(talked(6, 100), { kind: 'compaction-requested', requestId: 'c', at: 1 }), {
      compact: (input) => compacted(input),
    });
    const second = take(apply(done.state, { kind: 'rewind-requested', requestId: 'w', to: 'turn_0001', at: 2 }), 'rewind');
    const asked = apply(second.state, { kind: 'undo-requested', requestId: 'u', at: 3 });
    const resumed = { context: [[1, 2]], task: null, episodes: [], compactions: 1, tokens: 10 } as const;
    const rewound = apply(asked, second.done({ ...resumed, life: 'l1', cut: null, turns: 5, session: 1 }));
    expect(outcomesOf(settle(rewound).state)).toEqual([
      ['c', 'compacted'],
      ['u', 'nothing-to-undo'],
    ]);
  });

  const full = 2 * SETTINGS.thresholds.hard;

  test('is answered too when a compaction has made room before a truncation could', () => {
    const compacting = take(apply(talked(5, BUDGET), { kind: 'compaction-requested', requestId: 'c', at: 1 }), 'compact');
    const asked = apply(compacting.state, { kind: 'truncation-requested', requestId: 't', at: 2 });
    const { state } = settle(apply(asked, compacting.done(compacted(compacting.input))));
    expect(outcomesOf(state)).toEqual([
      ['c', 'compacted'],
      ['t', 'nothing-to-truncate'],
    ]);
  });

  test('is answered too when the session ends first', () => {
    const compacting = take(apply(talked(5, full), { kind: 'compaction-requested', requestId: 'c', at: 1 }), 'compact');
    const asked = applyAll(
      compacting.state,
      { kind: 'truncation-requested', requestId: 't', at: 2 },
      { kind: 'reset-requested', resetId: 'r', at: 3 },
    );
    expect(outcomesOf(settle(asked).state)).toEqual([
      ['c', 'failed'],
      ['t', 'failed'],
    ]);
  });
});

test('every turn that begins over the truncation line is truncated, and tries once more when it has grown (context/truncation-rests)', () => {
  const { truncation } = SETTINGS.thresholds;
  const settings = { ...SETTINGS, thresholds: { ...SETTINGS.thresholds, autoCompact: false } };
  let state: ConversationState = { ...talked(2, 100), settings };
  for (let turn = 3; turn <= 6; turn++) {
    const first = take(begun({ ...state, contextTokens: truncation + 1_000 }, `m${turn}`), 'truncate');
    const found = apply(first.state, first.done(nothingDropped(first.input)));
    const calling = take(found, 'model-step');
    const usage = { ...USAGE, inputTokens: Math.ceil(truncation * 1.2) };
    const next = apply(calling.state, calling.done(answered(calling.input, { ...asking(calling.input, 1), usage })));
    const done = settle(next);
    expect(kinds(done.steps).filter((name) => name === 'truncate')).toEqual(['truncate']);
    state = done.state;
  }
});

test('a compaction finds in the store all that it is about: tools that ride come first', () => {
  const first = take(apply(talked(3, 100), said('next')), 'model-step');
  const riding = take(apply(first.state, first.done(answered(first.input, asking(first.input, 2, QUICK)))), 'model-step');
  // The store is away as the step begins, and meanwhile somebody asks.
  const asked = applyAll(riding.state, riding.failed(STORE_AWAY), { kind: 'compaction-requested', requestId: 'c', at: 2000 });
  const { steps, state } = settle(apply(asked, { kind: 'time-passed', at: 60_000 }), { compact: (input) => compacted(input) });
  expect(kinds(steps).slice(0, 2)).toEqual(['model-step', 'compact']);
  expect(outcomeFor(state, 'compact', 'c')).toMatchObject({ kind: 'compacted' });
});

test('what tools that rode have made too much is compacted before the call: the step comes back once', () => {
  const first = take(apply(talked(5, 100), said('next')), 'model-step');
  const riding = take(apply(first.state, first.done(answered(first.input, asking(first.input, 1, QUICK)))), 'model-step');
  const long = rode(riding.input, { text: 'x'.repeat(4 * 81_000) });
  const found = apply(riding.state, riding.done(deferred(riding.input, 'compaction', { tools: long })));
  const { state: compacting, input, done } = take(found, 'compact');
  expect(listSlots(input.context)).toContain(riding.input.tools[0]?.slot);
  const next = take(apply(compacting, done({ kind: 'nothing-to-compact', epoch: input.epoch })), 'model-step');
  expect(next.input).toMatchObject({ deferred: ['compaction'], tools: [], configure: null });
  const { compactsFrom, contextTokens } = next.input.numbers;
  expect(compactsFrom).toBeGreaterThan(contextTokens);
  // After an answer it may come back again: a turn has as many compactions as it needs.
  const again = take(apply(next.state, next.done(answered(next.input, asking(next.input, 1, QUICK)))), 'model-step');
  expect(again.input.tools).toHaveLength(1);
  expect(again.input).not.toHaveProperty('deferred');
});

test('(context/undo-restores) undone, the context is what it was, with what came since', () => {
  const state = talked(6, BUDGET);
  const compactedOnce = settle(apply(state, said('next')), { compact: (input) => compacted(input) }).state;
  expect(contextOf(compactedOnce)).toMatchObject({
    canUndo: true,
    chunks: [{ kind: 'SYSTEM' }, { kind: 'MEMORY' }, { kind: 'WORKING_FLOW' }],
  });
  const { state: undone, steps } = settle(apply(compactedOnce, { kind: 'undo-requested', requestId: 'u', at: 3000 }));
  expect(kinds(steps)).toEqual(['uncompact', 'wait']);
  expect(steps[0]).toMatchObject({ input: { epoch: compactedOnce.epoch, episode: 'ep_0001' } });
  expect(listSlots(undone.context)).toEqual([...listSlots(state.context), 13, 14]);
  expect(undone.compaction).toMatchObject({ base: null, before: null });
  expect(outcomeFor(undone, 'undo', 'u')).toMatchObject({ kind: 'undone' });
  expect(undone.epoch).toBeGreaterThan(compactedOnce.epoch);
});

test('what truncation has left out of one session is no memory of the next', () => {
  const before = talked(6, 100);
  const [first, second, ...others] = listSlots(before.context);
  const left: ConversationState = {
    ...before,
    context: toRanges(others),
    compaction: {
      ...before.compaction,
      leftOut: toRanges([first!, second!]),
      cited: toRanges([others[0]!]),
      shownOnce: 50,
      hintedIn: 1,
      truncations: 2,
    },
  };
  const { state } = settle(apply(left, { kind: 'reset-requested', resetId: 'r', at: 9 }));
  expect(state.session).toBe(2);
  expect(Object.keys(state.compaction).filter((name) => ['leftOut', 'cited', 'shownOnce', 'hintedIn'].includes(name))).toEqual([]);
  expect(state.compaction).toMatchObject({ truncations: 2, base: null, task: null });
  const next = settle(apply(state, said('next')));
  expect(kinds(next.steps)).not.toContain('compact');
});

test.each([
  ['a window that has room for them', 2 * BUDGET, 6_000, true],
  ['one that has not', 2 * BUDGET, 1.9 * BUDGET, false],
  ['a smaller one', BUDGET / 2, 6_000, false],
])('(context/cited-whole-again) messages that were cited, with %s', (_, contextBudget, citedTokens, isWhole) => {
  const state = talked(4, 100);
  const pasted = { ...state, compaction: { ...state.compaction, cited: toRanges([1]), citedTokens } };
  const settings = { ...SETTINGS, hash: 'h2', model: 'openai/other', contextBudget };
  const step = (input: ModelStepInput) => answered(input, {}, { configured: { kind: 'settings', settings } });
  const { state: switched } = settle(apply(pasted, said('with another model')), { step, compact: (input) => compacted(input) });
  const seen: unknown[] = [];
  const model = (input: ModelStepInput): ModelAnswer => (seen.push(input.call.cited), answer(input));
  settle(apply(switched, said('next')), { model });
  expect(seen).toEqual([isWhole ? undefined : toRanges([1])]);
});

test('(context/undo-restores) undone, nothing is lost that truncation has left out, before the compaction or since', () => {
  const state = talked(6, BUDGET);
  const [first, second, ...others] = listSlots(state.context);
  const left = { ...state, context: toRanges(others), compaction: { ...state.compaction, leftOut: toRanges([first!, second!]) } };
  const once = settle(apply(left, said('next')), { compact: (input) => compacted(input, 4) }).state;
  // Of what the compaction has kept, the first two leave, and a notice takes their place.
  const [gone, also, ...rest] = listSlots(once.context);
  const notice = once.counters.slot + 1;
  const later: ConversationState = {
    ...once,
    counters: { ...once.counters, slot: notice },
    context: toRanges([notice, ...rest]),
    compaction: { ...once.compaction, leftOut: toRanges([gone!, also!]) },
  };
  const undone = settle(apply(later, { kind: 'undo-requested', requestId: 'u', at: 3000 })).state;
  expect(listSlots(undone.context)).toEqual([notice, ...others, ...rest.filter((slot) => !others.includes(slot))]);
  expect(listSlots(undone.compaction.leftOut ?? [])).toEqual([first, second]);
});

test('a model whose context is full is helped twice in a turn, and then the turn fails in words', () => {
  const full = settle(apply(talked(5, 100), said('next')), {
    model: (input) => answer(input, { blocks: [], stop: 'context-full' }),
    compact: (input) => compacted(input, 1),
  });
  expect(kinds(full.steps).filter((kind) => kind === 'compact')).toHaveLength(2);
  expect(endedTurn(full.state, 'turn_0006')).toMatchObject({ stopReason: 'failed', error: { type: 'context-full' } });

  let calls = 0;
  const helped = settle(apply(talked(5, 100), said('next')), {
    model: (input) => (calls++ === 0 ? answer(input, { blocks: [], stop: 'context-full' }) : answer(input)),
    compact: (input) => compacted(input, 1),
  });
  expect(endedTurn(helped.state, 'turn_0006')).toMatchObject({ stopReason: 'end' });
});

test('where nothing can become memory, a model that is full is asked again with what it can take, and keeps that size', () => {
  let calls = 0;
  const full = { blocks: [], stop: 'context-full', usage: { ...USAGE, inputTokens: 10_000, outputTokens: 0 } } as const;
  const { state } = settle(apply(talked(5, 9_000), said('next')), {
    model: (input) => (calls++ === 0 ? answer(input, full) : answer(input)),
  });
  expect(endedTurn(state, 'turn_0006')).toMatchObject({ stopReason: 'end' });
  expect(state.compaction.learned).toEqual({ model: SETTINGS.model, assumed: BUDGET, tokens: 7_500 });
  expect(state.settings).toMatchObject({ contextBudget: 7_500, thresholds: { soft: 2_500, hard: 4_000, truncation: 7_500 } });
  expect(contextOf(state)).toMatchObject({ budget: 7_500, assumedBudget: BUDGET });

  // The agent's files are read again: what was learned holds, until the assumption is another.
  const files = (contextBudget: number) => ({ kind: 'settings', settings: { ...SETTINGS, hash: 'h2', contextBudget } }) as const;
  const after = (contextBudget: number) =>
    settle(apply(state, said('again')), { step: (input) => answered(input, {}, { configured: files(contextBudget) }) }).state;
  expect(after(BUDGET).settings?.contextBudget).toBe(7_500);
  expect(after(50_000).settings?.contextBudget).toBe(50_000);
  expect(settle(apply(state, { kind: 'reset-requested', resetId: 'r', at: 9 })).state.compaction.learned?.tokens).toBe(7_500);
});

test.each([
  ['becomes memory before the call', true, 'compact'],
  ['waits for somebody who asks, where nothing is compacted by itself', false, 'model-step'],
])('what truncation has left out %s', (_, autoCompact, next) => {
  const { hard, truncation } = SETTINGS.thresholds;
  const settings = { ...SETTINGS, thresholds: { ...SETTINGS.thresholds, autoCompact } };
  const full = begun({ ...talked(5, 100), settings, contextTokens: truncation + 1 }, 'next');
  const truncating = take(full, 'truncate');
  const { epoch, notice } = truncating.input;
  const said = { v: 1, ...notice, ts: 1, message: { role: 'user', text: 'n', from: 'notice' } } as const;
  const dropped = { life: 'l1', epoch, dropped: [[1, 4]], tokens: truncation - hard + 100, entries: 4, notice: said } as const;
  const state = apply(truncating.state, truncating.done(dropped));
  expect(state.contextTokens).toBeLessThan(hard);
  const step = nextStep(state);
  expect(step).toMatchObject({ effect: next });
  if (autoCompact) expect(step).toMatchObject({ input: { leftOut: [[1, 4]], atLeast: 0 } });
});

test('somebody who asks is told, also when there is nothing to do', () => {
  const fresh = settle(apply(open(), { kind: 'compaction-requested', requestId: 'a', at: 1 })).state;
  expect(outcomeFor(fresh, 'compact', 'a')).toEqual({ kind: 'nothing-to-compact' });
  const nothing = settle(apply(talked(2, 100), { kind: 'compaction-requested', requestId: 'b', at: 1 })).state;
  expect(outcomeFor(nothing, 'compact', 'b')).toEqual({ kind: 'nothing-to-compact' });
  const done = settle(apply(talked(6, 100), { kind: 'compaction-requested', requestId: 'c', at: 1 }), {
    compact: (input) => compacted(input),
  });
  expect(outcomeFor(done.state, 'compact', 'c')).toMatchObject({ kind: 'compacted', epoch: 2, method: 'model' });
  const undo = settle(apply(talked(2, 100), { kind: 'undo-requested', requestId: 'd', at: 1 })).state;
  expect(outcomeFor(undo, 'undo', 'd')).toEqual({ kind: 'nothing-to-undo' });
});

test('one that found nothing does not stand for the next: each is an effect of its own', () => {
  const attempts: number[] = [];
  const note = (input: CompactInput): void => void attempts.push(input.attempt);
  let state = talked(2, 100);
  for (const requestId of ['a', 'b']) {
    const request = { kind: 'compaction-requested', requestId, at: 1 } as const;
    state = settle(apply(state, request), { compact: (input) => (note(input), { kind: 'nothing-to-compact', epoch: input.epoch }) }).state;
  }
  state = settle(apply(state, { kind: 'reset-requested', resetId: 'r', at: 2 })).state;
  state = settle(apply(state, said('after'))).state;
  settle(apply(state, { kind: 'compaction-requested', requestId: 'c', at: 3 }), { compact: (input) => (note(input), compacted(input, 1)) });
  expect(attempts).toEqual([1, 2, 3]);
});

test('the beginning of the prompt is watched: how often it changed, and why', () => {
  const say = (state: ConversationState, id: string, prefix: string): ConversationState =>
    settle(apply(state, said(id)), { model: (input) => answer(input, { prefix }), compact: (input) => compacted(input, 1) }).state;
  let state = say(say(open(), 'a', 'p1'), 'b', 'p1');
  expect(statusOf(state, 0).context).toMatchObject({ prefixHash: 'p1', prefixChanges: 0, prefixCause: null });
  state = say(state, 'c', 'p2');
  expect(statusOf(state, 0).context).toMatchObject({ prefixHash: 'p2', prefixChanges: 1, prefixCause: 'agent or tools' });
  state = settle(apply(state, { kind: 'compaction-requested', requestId: 'x', at: 1 }), { compact: (input) => compacted(input, 1) }).state;
  state = say(state, 'd', 'p3');
  expect(statusOf(state, 0).context).toMatchObject({ prefixHash: 'p3', prefixChanges: 2, prefixCause: 'new epoch' });
  const other = { configured: { kind: 'settings', settings: { ...SETTINGS, hash: 'h2', model: 'openai/gpt-test' } } } as const;
  const { state: begun, input, done } = take(apply(state, said('e')), 'model-step');
  const switched = apply(begun, done(answered(input, { prefix: 'p4', head: { system: 's', tools: 't' } }, other)));
  expect(statusOf(switched, 0).context).toMatchObject({ prefixChanges: 3, prefixCause: 'model' });
  expect(contextOf(switched).chunks[0]).toMatchObject({ kind: 'SYSTEM', ref: 's', tools: 't' });
});
