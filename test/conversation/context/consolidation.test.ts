/** Seed 001's window and `/new`, as decisions: the rules of consolidation.ts. Here what is consolidated leaves at once. */
import { apply } from '../../../src/conversation/apply.js';
import type { Consolidation } from '../../../src/conversation/protocol/contract.js';
import { nextStep, type Step } from '../../../src/conversation/next-step.js';
import { listSlots } from '../../../src/records/slots.js';
import { outcomeFor } from '../../../src/conversation/requests.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { statusOf } from '../../../src/conversation/views/view.js';
import { answered, applyAll, evicted, isEffect, namesOf as kinds, open, said, settle, take, type Script } from '../drive.js';

/** Nobody consolidates: requests are taken, and no news comes. */
const SILENT: Script = { consolidate: () => undefined };

function talked(turns: number): ConversationState {
  let state = open();
  for (let i = 0; i < turns; i++) state = settle(apply(state, said(`m${state.counters.turn}-${i}`, { at: state.now }))).state;
  return state;
}

function silently(turns: number, state = open()): { state: ConversationState; steps: Step[] } {
  const steps: Step[] = [];
  for (let i = 0; i < turns; i++) {
    const after = settle(apply(state, said(`s${state.counters.turn}`, { at: state.now })), SILENT);
    state = after.state;
    steps.push(...after.steps);
  }
  return { state, steps };
}

function news(state: ConversationState, requestId: string, consolidation: Consolidation = 'model'): ConversationState {
  return apply(state, { kind: 'consolidation-ended', requestId, consolidation, usage: null, at: state.now });
}

function later(state: ConversationState, ms: number): ConversationState {
  return apply(state, { kind: 'time-passed', at: state.now + ms });
}

describe('the window', () => {
  test('fifty messages are kept as they are; the one after them asks for all but the last ten, whole turns', () => {
    const { state: full, steps } = silently(25);
    expect(kinds(steps)).not.toContain('ask-memory');
    expect(statusOf(full, 0).window).toMatchObject({ messages: 50, limit: 50, consolidating: 0 });
    const asked = silently(1, full).steps.find((step) => isEffect(step, 'ask-memory'));
    expect(asked).toMatchObject({ input: { request: { requestId: 's1/1-42', slots: [[1, 42]], messages: 42, why: 'window' } } });
  });

  test('nobody waits for it: turns go on, with all their messages', () => {
    const { state } = silently(26);
    const { steps } = silently(3, state);
    expect(kinds(steps).filter((name) => name === 'model-step')).toHaveLength(3);
    expect(kinds(steps)).not.toContain('evict');
    const [call] = steps.filter((step) => isEffect(step, 'model-step'));
    expect(listSlots(call!.input.call.context)[0]).toBe(1);
  });

  test('once it is done the messages leave at the next border, and their summary stands for them in a new epoch', () => {
    const { state } = silently(26);
    const done = settle(news(state, 's1/1-42'), SILENT);
    expect(done.steps[0]).toMatchObject({
      effect: 'evict',
      input: { what: { kind: 'trim', covered: [{ requestId: 's1/1-42', slots: [[1, 42]] }], epoch: 2, number: 1, since: 1000 } },
    });
    expect(done.state).toMatchObject({ epoch: 2, session: 1, context: [[43, 52]], compaction: { task: { goal: 'goal' } } });
    const call = silently(1, done.state).steps.find((step) => isEffect(step, 'model-step'));
    expect(call).toMatchObject({ input: { call: { base: 'trim-2', context: [[43, 53]] } } });
    expect(statusOf(done.state, 0).window).toMatchObject({ messages: 10, consolidated: 0, consolidating: 0, since: 1000 });
  });

  test('inside a turn nothing leaves', () => {
    const { state } = silently(26);
    const calling = take(apply(state, said('open', { at: state.now })), 'model-step');
    const told = news(calling.state, 's1/1-42');
    expect(nextStep(told).kind).toBe('wait');
    const leaving = take(apply(told, calling.done(answered(calling.input))), 'evict');
    expect(leaving.input.what).toMatchObject({ kind: 'trim', covered: [{ slots: [[1, 42]] }] });
  });

  test('after its own timeout its last messages are written down as they are, and all of them leave', () => {
    const { state } = silently(26);
    expect(nextStep(later(state, 29_000)).kind).toBe('wait');
    const overdue = take(later(state, 30_000), 'evict');
    expect(overdue.input.what).toEqual({ kind: 'overdue', unfinished: [{ requestId: 's1/1-42', slots: [[1, 42]] }] });
    const written = apply(overdue.state, overdue.done(evicted(overdue.input)));
    expect(take(written, 'evict').input.what).toMatchObject({ kind: 'trim', covered: [{ slots: [[1, 42]] }] });
  });

  test('news that comes while its messages are written down is in time', () => {
    const { state } = silently(26);
    const overdue = take(later(state, 30_000), 'evict');
    const told = apply(news(overdue.state, 's1/1-42'), overdue.done({ ...evicted(overdue.input), finished: true }));
    expect(take(told, 'evict').input.what).toMatchObject({ kind: 'trim', covered: [{ requestId: 's1/1-42' }] });
  });

  test('news that nobody waits for any more changes nothing', () => {
    const { state } = silently(26);
    const trimmed = settle(later(state, 30_000), SILENT).state;
    expect(news(trimmed, 's1/1-42', 'raw-fallback')).toEqual(trimmed);
  });
});

test('what cannot leave rests by itself: messages are answered meanwhile', () => {
  const { state } = silently(26);
  const leaving = take(news(state, 's1/1-42'), 'evict');
  const failing = apply(leaving.state, leaving.failed({ type: 'bad-memory', message: 'no', transient: false }));
  const { steps } = settle(apply(failing, said('meanwhile', { at: failing.now })), SILENT);
  expect(kinds(steps).slice(0, 2)).toEqual(['begin-turn', 'model-step']);
  expect(nextStep(later(failing, 1_000))).toMatchObject({ effect: 'evict' });
});

test('a consolidation that comes too late is paid for all the same, once', () => {
  const { state } = silently(26);
  const trimmed = settle(later(state, 30_000), SILENT).state;
  const usage = { inputTokens: 100, cachedTokens: 0, outputTokens: 10, costUsd: 1 };
  const late = { kind: 'consolidation-ended', requestId: 's1/1-42', consolidation: 'model', usage, at: trimmed.now } as const;
  const paid = applyAll(trimmed, late, late);
  expect(paid.usage.inputTokens - trimmed.usage.inputTokens).toBe(100);
});

describe('/new', () => {
  const reset = (state: ConversationState, id = 'r'): ConversationState =>
    apply(state, { kind: 'reset-requested', resetId: id, at: state.now });

  test('waits for the consolidation of what is left, and then clears', () => {
    const waiting = settle(reset(talked(3)), SILENT);
    expect(kinds(waiting.steps)).toEqual(['ask-memory', 'wait']);
    expect(waiting.steps[0]).toMatchObject({ input: { request: { messages: 6, why: 'reset', slots: [[1, 6]] } } });
    expect(statusOf(waiting.state, 0)).toMatchObject({
      phase: 'resetting',
      waiting: { kind: 'memory', scope: 'default', until: expect.stringMatching(/^1970-01-01T00:/) as unknown },
      waitingFor: expect.stringContaining('memory:default') as unknown,
    });
    const cleared = settle(news(waiting.state, 's1/1-6')).state;
    expect(cleared).toMatchObject({ session: 2, context: [] });
    expect(outcomeFor(cleared, 'reset', 'r')).toMatchObject({ consolidation: 'model' });
  });

  test('archives what was truncated with the rest: no active trace stays', () => {
    const state = talked(3);
    const truncated = { ...state, context: [[3, 6]] as const, compaction: { ...state.compaction, leftOut: [[1, 2]] as const } };
    const waiting = settle(reset(truncated), SILENT).state;
    expect(nextStep(later(waiting, 30_000))).toMatchObject({ effect: 'evict', input: { what: { archive: [[1, 6]] } } });
  });

  test('is not waited for longer than thirty seconds; the fallback says so', () => {
    const waiting = settle(reset(talked(3)), SILENT).state;
    expect(nextStep(waiting)).toMatchObject({ kind: 'wait', until: waiting.consolidation.ending?.until });
    const step = nextStep(later(waiting, 30_000));
    expect(step).toMatchObject({ effect: 'evict', input: { what: { kind: 'session-end', unfinished: [{ requestId: 's1/1-6' }] } } });
    const cleared = settle(later(waiting, 30_000)).state;
    expect(outcomeFor(cleared, 'reset', 'r')).toMatchObject({ consolidation: 'raw-fallback' });
    expect(news(cleared, 's1/1-6')).toEqual(cleared);
  });

  test('that came in the last moment is no fallback', () => {
    const late = take(later(settle(reset(talked(3)), SILENT).state, 30_000), 'evict');
    const cleared = apply(late.state, late.done({ ...evicted(late.input), finished: true }));
    expect(outcomeFor(cleared, 'reset', 'r')).toMatchObject({ consolidation: 'model' });
  });

  test('on an empty session there is nothing to do, and nothing is asked', () => {
    const { state, steps } = settle(reset(open()));
    expect(kinds(steps)).toEqual(['wait']);
    expect(outcomeFor(state, 'reset', 'r')).toMatchObject({ consolidation: 'nothing-to-do', session: 1 });
  });

  test('twice at once is one', () => {
    const { state } = settle(reset(reset(talked(2)), 'r2'));
    expect(state.session).toBe(2);
    for (const id of ['r', 'r2']) expect(outcomeFor(state, 'reset', id)).toMatchObject({ session: 2 });
  });

  test('during a consolidation of the window joins that one and asks for the rest', () => {
    const { state } = silently(26);
    const waiting = settle(reset(state), SILENT);
    expect(waiting.steps.find((step) => isEffect(step, 'ask-memory'))).toMatchObject({
      input: { request: { slots: [[43, 52]], why: 'reset' } },
    });
    const half = news(waiting.state, 's1/43-52');
    expect(nextStep(half).kind).toBe('wait');
    expect(settle(news(half, 's1/1-42')).state).toMatchObject({ session: 2, context: [] });
  });

  test('what is said meanwhile is the new session’s, and answered there', () => {
    const waiting = settle(reset(talked(2)), SILENT).state;
    const queued = settle(apply(waiting, said('next', { at: waiting.now })), SILENT);
    expect(kinds(queued.steps)).toEqual(['wait']);
    const { state, steps } = settle(news(queued.state, 's1/1-4'));
    expect(steps.find((step) => isEffect(step, 'model-step'))).toMatchObject({ input: { session: 2, call: { context: [[5, 5]] } } });
    expect(state.turnsEnded).toBe(3);
  });
});

describe('close', () => {
  const close = (state: ConversationState): ConversationState => apply(state, { kind: 'close-requested', at: state.now });

  test('consolidates as /new does, and then completes', () => {
    const waiting = settle(close(talked(2)), SILENT);
    expect(waiting.steps[0]).toMatchObject({ effect: 'ask-memory', input: { request: { why: 'close' } } });
    expect(settle(news(waiting.state, 's1/1-4')).steps.at(-1)).toMatchObject({ kind: 'finish', outcome: { turns: 2 } });
  });

  const forgetting = (state: ConversationState): ConversationState =>
    apply(state, { kind: 'close-requested', at: state.now, memory: false });

  test('without memory it asks for nothing, waits for nothing, and runs out its queue first', () => {
    const done = settle(forgetting(apply(talked(2), said('one more'))), SILENT);
    expect(kinds(done.steps)).not.toContain('ask-memory');
    expect(done.steps.at(-1)).toMatchObject({ kind: 'finish', outcome: { turns: 3 } });
  });

  test('asked again without memory while it waits for it, it waits no longer', () => {
    const waiting = settle(close(talked(2)), SILENT);
    expect(waiting.steps.at(-1)?.kind).not.toBe('finish');
    expect(settle(forgetting(waiting.state), SILENT).steps.at(-1)).toMatchObject({ kind: 'finish', outcome: { turns: 2 } });
  });

  test('a reset that was asked for before consolidates its session all the same', () => {
    const state = apply(talked(2), { kind: 'reset-requested', resetId: 'r', at: 5 });
    const { steps } = settle(forgetting(state));
    expect(steps.filter((step) => isEffect(step, 'ask-memory'))).toMatchObject([{ input: { request: { why: 'reset' } } }]);
    expect(steps.at(-1)?.kind).toBe('finish');
  });

  test('of an empty conversation completes at once', () => {
    expect(kinds(settle(close(open())).steps)).toEqual(['finish']);
  });
});
