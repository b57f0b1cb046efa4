/** Stepping, breakpoints, the queue by hand, and events of the application's own (seed 004). */
import { appEventRefusal } from '../../../src/conversation/context/app-events.js';
import { apply } from '../../../src/conversation/apply.js';
import { createReducerRegistry, type ChunkOperation, type Reducers } from '../../../src/conversation/context/reducers.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import type { StepResult } from '../../../src/conversation/protocol/stepping.js';
import { listSlots } from '../../../src/records/slots.js';
import { outcomeFor } from '../../../src/conversation/requests.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { queueOf, statusOf } from '../../../src/conversation/views/view.js';
import { stepRefusal } from '../../../src/conversation/stepping/control.js';
import { editRefusal } from '../../../src/conversation/inbox/queue-editing.js';
import {
  answer,
  answered,
  applyAll,
  asking,
  deferred,
  finished,
  isEffect,
  namesOf,
  notAnswered,
  open,
  ORDINARY,
  QUICK,
  said,
  settle,
  take,
  type Script,
} from '../drive.js';

const AT = 5000;
const stepping = (state: ConversationState): ConversationState => apply(state, { kind: 'mode-set', mode: 'stepping', at: AT });
let steps = 0;

/** One `step`, performed until it is done. */
function step(state: ConversationState, script: Script = {}): { state: ConversationState; result: StepResult; did: string[] } {
  const id = `step-${++steps}`;
  const { state: after, steps: did } = settle(apply(state, { kind: 'step-requested', id, at: AT }), script);
  const result = outcomeFor(after, 'step', id);
  if (!result) throw new Error(`step ${id} has no result`);
  return { state: after, result, did: namesOf(did).filter((name) => name !== 'wait' && name !== 'begin-turn') };
}

/** A model that asks for two tools, and then answers. */
function withTools(plan = ORDINARY): Script {
  let asked = false;
  return {
    model: (input) => {
      if (asked) return answer(input);
      asked = true;
      return asking(input, 2, plan);
    },
  };
}

test('in stepping nothing begins by itself, and each step does one thing and says it', () => {
  const held = settle(stepping(applyAll(open(), said('a'), said('b'))));
  expect(namesOf(held.steps)).toEqual(['wait']);
  expect(statusOf(held.state, 0)).toMatchObject({ phase: 'stepping', mode: 'stepping', nextStep: 'take message a (9 bytes) as turn_0001' });
  expect(statusOf(held.state, 0)).toMatchObject({
    waiting: { kind: 'step', next: 'take message a (9 bytes) as turn_0001' },
    waitingFor: 'a step: take message a (9 bytes) as turn_0001',
  });
  const script = withTools();
  const results = [];
  let { state } = held;
  for (let i = 0; i < 10; i++) {
    const next = step(state, script);
    state = next.state;
    results.push([next.result.did, next.did.join(), next.result.queuedEventCount]);
  }
  expect(results).toEqual([
    ['event', 'store-step', 1],
    ['model-call', 'model-step', 1],
    ['tool-run', 'run-tool', 1],
    ['tool-run', 'run-tool', 1],
    ['model-call', 'model-step', 1],
    ['event', 'store-step', 0],
    ['model-call', 'model-step', 0],
    ['nothing', '', 0],
    ['nothing', '', 0],
    ['nothing', '', 0],
  ]);
});

test('the seed’s own words are in a result', () => {
  const { result } = step(settle(stepping(applyAll(open(), said('a')))).state);
  expect(result).toEqual({
    stepId: expect.any(String),
    did: 'event',
    words: 'take message a (9 bytes) as turn_0001',
    dispatchResult: {
      addedChunks: ['chunk_1'],
      removedChunkIds: [],
      contextTokens: { before: expect.any(Number), after: expect.any(Number) },
    },
    eventProcessed: true,
    compactionPerformed: false,
    truncationPerformed: false,
    hasPendingOperations: false,
    queuedEventCount: 0,
    next: 'call the model (turn_0001/m1)',
  });
});

test.each([
  ['ordinary', ORDINARY],
  ['quick', QUICK],
])('stepping gives, step for step, what auto gives, with %s tools too', (_, plan) => {
  const messages = ['a', 'b', 'c'].map((id) => said(id));
  const auto = settle(applyAll(open(), ...messages), withTools(plan));
  const script = withTools(plan);
  let { state } = settle(stepping(applyAll(open(), ...messages)));
  for (let i = 0; i < 30; i++) state = step(state, script).state;
  const essence = ({ context, ended, session, counters, usage }: ConversationState): unknown => ({
    context,
    ended,
    session,
    // Where tools rode there were fewer effects.
    counters: { ...counters, effect: 0 },
    usage,
  });
  expect(essence(state)).toEqual(essence(auto.state));
});

test('with nothing in the queue a step truncates, then compacts, and says when there is nothing to do; auto does neither', () => {
  const idle = settle(apply(open(), said('a'))).state;
  const script: Script = {
    truncate: ({ epoch, context, notice }) => {
      return {
        life: 'l1',
        epoch,
        dropped: context.slice(0, 1),
        tokens: 70_000,
        entries: 1,
        notice: { v: 1, ...notice, ts: 1, message: { role: 'user', text: 'left out', from: 'notice' } },
      };
    },
  };
  const full: ConversationState = { ...stepping(idle), contextTokens: 160_000 };
  expect(namesOf(settle(full, script).steps)).toEqual(['wait']);
  expect(statusOf(full, 0)).toMatchObject({ nextStep: 'leave the oldest of the working flow out of the prompt' });
  const first = step(full, script);
  expect(first).toMatchObject({ did: ['truncate'], result: { did: 'truncation', truncationPerformed: true, hasPendingOperations: true } });
  expect(first.state.contextTokens).toBe(90_000);
  const second = step(first.state, script);
  expect(second).toMatchObject({ did: ['compact'], result: { did: 'compaction', compactionPerformed: true, hasPendingOperations: false } });
  // It found nothing to make memory of: the next one would find nothing either.
  const third = step(second.state, script);
  expect(third).toMatchObject({ did: [], result: { did: 'nothing' } });
  expect(third.state.control?.lock).toBeNull();
  const auto = apply(full, { kind: 'mode-set', mode: 'auto', at: AT });
  expect(namesOf(settle(auto, script).steps)).toEqual(['wait']);
});

test('a truncation that fails ends the step that asked for it', () => {
  const full: ConversationState = { ...stepping(settle(apply(open(), said('a'))).state), contextTokens: 160_000 };
  const asked = apply(full, { kind: 'step-requested', id: 'one', at: AT });
  const { state, failed } = take(asked, 'truncate');
  expect(state.control?.lock).toMatchObject({ did: 'truncation' });
  expect(apply(state, failed({ type: 'Broken', message: 'no', transient: false })).control?.lock).toBeNull();
});

test('a second step is refused while one runs, and by its id the first is answered again', () => {
  const running = apply(settle(stepping(apply(open(), said('a')))).state, { kind: 'step-requested', id: 'one', at: AT });
  expect(stepRefusal(running, 'two')).toContain('one');
  expect(apply(running, { kind: 'step-requested', id: 'two', at: AT }).control?.lock?.id).toBe('one');
  expect(stepRefusal(open(), 'one')).toContain('mode');
  const { state } = settle(running);
  expect(state.control?.lock).toBeNull();
  expect(stepRefusal(state, 'one')).toBeUndefined();
});

test('a model that fails ends its step; another one tries again', () => {
  const begun = step(settle(stepping(apply(open(), said('a')))).state).state;
  const asked = apply(begun, { kind: 'step-requested', id: 'x', at: AT });
  const { state, input, done } = take(asked, 'model-step');
  const failed = apply(state, done(notAnswered(input, { type: 'overloaded', message: 'busy', transient: true })));
  expect(failed.control).toMatchObject({ lock: null });
  expect(outcomeFor(failed, 'step', 'x')).toMatchObject({ did: 'model-call', words: expect.stringContaining('overloaded') });
});

test('a step in which what was found is in the way says so, and another one does what is due', () => {
  const begun = step(settle(stepping(apply(open(), said('a')))).state).state;
  const { state, input, done } = take(apply(begun, { kind: 'step-requested', id: 'x', at: AT }), 'model-step');
  const back = apply(state, done(deferred(input, 'compaction')));
  expect(back.control).toMatchObject({ lock: null });
  expect(outcomeFor(back, 'step', 'x')).toMatchObject({ words: expect.stringContaining('it came back before the call (compaction)') });
});

test('tools that ride when somebody begins to step are run and said with the call', () => {
  const { state, input, done } = take(apply(open(), said('a')), 'model-step');
  const held = stepping(apply(state, done(answered(input, asking(input, 2, QUICK)))));
  expect(nextStep(held).kind).toBe('wait');
  const { result, state: after } = step(held);
  expect(result).toMatchObject({ did: 'model-call', words: expect.stringMatching(/^run tool, tool and call .* turn_0001 ended: end$/) });
  expect(after.turnsEnded).toBe(1);
});

describe('a breakpoint', () => {
  const breaking = (breakpoints: object, script: Script = {}, before = open()): ConversationState =>
    settle(applyAll(before, { kind: 'breakpoints-set', breakpoints, at: AT }, said('a')), script).state;

  test('by the name of a tool stops before it runs, and is passed by going on', () => {
    const script = withTools();
    const state = breaking({ tools: ['tool'] }, script);
    expect(state.control).toMatchObject({ mode: 'stepping', pausedBy: expect.stringContaining('tool: tool') });
    expect(statusOf(state, 0).waiting).toEqual({ kind: 'breakpoint', next: expect.any(String), why: state.control?.pausedBy });
    expect(state.turn?.phase).toMatchObject({ kind: 'tools', calls: [{ status: 'waiting' }, { status: 'waiting' }] });
    const { state: stepped } = step(state, script);
    expect(stepped.turn?.phase).toMatchObject({ calls: [{ status: 'done' }, { status: 'waiting' }] });
    const { state: gone } = settle(apply(stepped, { kind: 'mode-set', mode: 'auto', at: AT }), script);
    expect(gone.turnsEnded).toBe(1);
  });

  test.each([{ tools: ['tool'] }, { onError: true }, { costUsd: 5 }])('lets no quick tool ride past it: %j', (breakpoints) => {
    const { steps: did } = settle(applyAll(open(), { kind: 'breakpoints-set', breakpoints, at: AT }, said('a')), withTools(QUICK));
    const [, second] = did.filter((one) => isEffect(one, 'model-step'));
    expect(second?.input.tools ?? []).toEqual([]);
  });

  test('by the type of an event stops before it is taken', () => {
    expect(breaking({ events: ['message'] })).toMatchObject({
      turn: null,
      control: { mode: 'stepping', pausedBy: expect.stringContaining('message') },
    });
  });

  test('on an error, and at a cost, once', () => {
    const failing: Script = { tool: (run) => finished(run, { text: 'x', outcome: 'error' }) };
    expect(breaking({ onError: true }, { ...withTools(), ...failing }).control).toMatchObject({ mode: 'stepping' });
    const costly = breaking({ costUsd: 0.0005 });
    expect(costly.control).toMatchObject({ mode: 'stepping', pausedBy: expect.stringContaining('cost'), breakpoints: {} });
  });
});

describe('the queue by hand', () => {
  const held = (): ConversationState => settle(stepping(applyAll(open(), said('a'), said('b'), said('c')))).state;
  const ids = (state: ConversationState): unknown[] =>
    queueOf(state).map(({ event }) => (event.kind === 'message' ? event.messageId : event.kind));

  test('is moved, dropped and cleared, and who waits for a dropped message is told', () => {
    const [a, b, c] = queueOf(held()).map(({ id }) => id) as [string, string, string];
    expect(ids(apply(held(), { kind: 'queue-edited', edit: { op: 'move', id: c, before: a }, at: AT }))).toEqual(['c', 'a', 'b']);
    const dropped = apply(held(), { kind: 'queue-edited', edit: { op: 'drop', id: b }, at: AT });
    expect(ids(dropped)).toEqual(['a', 'c']);
    expect(dropped.ended).toMatchObject([{ number: 2, stopReason: 'withdrawn' }]);
    expect(ids(apply(held(), { kind: 'queue-edited', edit: { op: 'clear' }, at: AT }))).toEqual([]);
    expect(editRefusal(held(), { op: 'drop', id: 'qevt_000099' })).toContain('qevt_000099');
  });

  test('a message does not change sides at a reset', () => {
    const state = settle(stepping(applyAll(open(), said('a'), { kind: 'reset-requested', resetId: 'r', at: AT }, said('b')))).state;
    const [a, reset, b] = queueOf(state).map(({ id }) => id) as [string, string, string];
    expect(editRefusal(state, { op: 'move', id: b, before: a })).toContain('session');
    const recorded = settle(apply(state, said('long', { text: 'x'.repeat(300 * 1024) }))).state;
    expect(editRefusal(recorded, { op: 'drop', id: reset })).toContain('recorded');
    const without = applyAll(
      state,
      { kind: 'queue-edited', edit: { op: 'drop', id: b }, at: AT },
      { kind: 'queue-edited', edit: { op: 'drop', id: reset }, at: AT },
    );
    expect(outcomeFor(without, 'reset', 'r')).toBe('withdrawn');
  });
});

describe('an event of the application’s own', () => {
  const reducers: Reducers = {
    note: ({ payload }) => [{ kind: 'ADD', chunk: { type: 'NOTICE', text: String(payload) } }],
    edit: (_, { chunks }) => chunks.slice(0, 1).map(({ id }): ChunkOperation => ({ kind: 'UPDATE', id, text: 'edited' })),
    drop: (_, { chunks }) => chunks.map(({ id }): ChunkOperation => ({ kind: 'DELETE', id })),
    replace: (_, { chunks }) => [{ kind: 'BATCH_REPLACE', ids: chunks.map(({ id }) => id), chunks: [{ type: 'MINE', text: 'all' }] }],
    nothing: () => [],
    broken: () => {
      throw new Error('no');
    },
    wrong: () => [{ kind: 'DELETE', id: 'chunk_99' }],
  };
  const reduce = createReducerRegistry(reducers);
  const dispatch = (state: ConversationState, type: string, payload = 'x'): ConversationState => {
    const event = { kind: 'app-event-received', id: `${type}-${state.counters.queued}`, type, payload, at: AT } as const;
    let { state: now, steps: did } = settle(apply(state, event));
    for (let next = did.at(-1); next?.kind === 'reduce'; next = did.at(-1)) {
      const reduced = reduce(next.event, next.view);
      ({ state: now, steps: did } = settle(apply(now, { kind: 'app-event-reduced', id: next.event.id, reduced, at: AT })));
    }
    return now;
  };
  const types = (state: ConversationState): string[] => (state.appEvents?.chunks ?? []).map(({ type }) => type);

  test('adds, updates, deletes and replaces chunks of the context', () => {
    const one = dispatch(open(), 'note');
    expect(types(one)).toEqual(['NOTICE']);
    expect(listSlots(one.context)).toEqual([1]);
    const edited = dispatch(dispatch(one, 'note'), 'edit');
    expect(listSlots(edited.context)).toEqual([3, 2]);
    const { epoch } = edited;
    const replaced = dispatch(edited, 'replace');
    expect([types(replaced), replaced.epoch]).toEqual([['MINE'], epoch + 1]);
    expect(dispatch(replaced, 'drop').context).toEqual([]);
  });

  test('without operations leaves the state as it was', () => {
    const before = dispatch(open(), 'note');
    const { counters: _c, now: _n, requests: _s, ...left } = dispatch(before, 'nothing');
    const { counters: _c2, now: _n2, requests: _s2, ...was } = before;
    expect(left).toEqual(was);
  });

  test('that nobody reduces, or whose reducer fails, is kept, counted and named, and the next goes on', () => {
    const state = dispatch(dispatch(dispatch(dispatch(open(), 'unheard'), 'broken'), 'wrong'), 'note');
    expect(statusOf(state, 0).appEvents).toMatchObject({
      chunks: 1,
      unreduced: { count: 1, types: ['unheard'] },
      parkedCount: 2,
      parked: [
        { type: 'broken', error: 'Error: no' },
        { type: 'wrong', error: expect.stringContaining('chunk_99') },
      ],
    });
  });

  test.each<[string, unknown, string]>([
    ['a promise', Promise.resolve([]), 'answered with a promise'],
    ['a promise that rejects', Promise.reject(new Error('later')), 'answered with a promise'],
    ['a text', 'ADD', 'this was no list'],
    ['an object', { kind: 'ADD' }, 'this was no list'],
    ['a list of nothing', [null], 'an operation must be'],
    [
      'what throws when it is read',
      [
        {
          get kind(): string {
            throw new Error('read');
          },
        },
      ],
      'Error: read',
    ],
    ['what JSON has no form for', [{ kind: 'ADD', chunk: { type: 'A', text: 1n } }], 'TypeError'],
    [
      'two operations on one chunk',
      [
        { kind: 'DELETE', id: 'chunk_1' },
        { kind: 'UPDATE', id: 'chunk_1', text: 'x' },
      ],
      'two operations on chunk_1',
    ],
    ['a chunk twice', [{ kind: 'BATCH_REPLACE', ids: ['chunk_1', 'chunk_1'], chunks: [] }], 'two operations on chunk_1'],
    [
      'too many new chunks',
      [{ kind: 'BATCH_REPLACE', ids: [], chunks: Array(1_001).fill({ type: 'A', text: 'x' }) }],
      'more than 1000 new chunks',
    ],
  ])('whose reducer answers with %s is parked, in words', (_what, given, words) => {
    const answers = createReducerRegistry({ any: () => given as never });
    const { view } = settle(
      apply(dispatch(open(), 'note'), { kind: 'app-event-received', id: 'v', type: 'any', payload: 1, at: AT }),
    ).steps.at(-1) as Extract<ReturnType<typeof nextStep>, { kind: 'reduce' }>;
    expect(answers({ id: 'e', type: 'any', payload: null, at: AT }, view)).toEqual({
      kind: 'parked',
      error: expect.stringContaining(words),
    });
  });

  test('waits for its step like any other', () => {
    const waiting = apply(stepping(open()), { kind: 'app-event-received', id: 'n', type: 'note', payload: 1, at: AT });
    expect(nextStep(waiting).kind).toBe('wait');
    expect(nextStep(apply(waiting, { kind: 'step-requested', id: 's', at: AT })).kind).toBe('reduce');
  });

  test('is reduced once, also when it comes again after that', () => {
    const event = { kind: 'app-event-received', id: 'once', type: 'note', payload: 'x', at: AT } as const;
    const state = dispatch(apply(open(), event), 'nothing');
    expect(queueOf(apply(state, event))).toEqual([]);
    expect(types(apply(state, event))).toEqual(['NOTICE']);
  });

  test('ten thousand of them fit into half a megabyte of state: what is too much is reported, not dropped silently', () => {
    let state = apply(stepping(open()), said('a'));
    for (let i = 0; i < 10_000; i++)
      state = apply(state, { kind: 'app-event-received', id: `event-${i}`, type: 'note', payload: 'x'.repeat(200), at: AT });
    expect(JSON.stringify(state).length).toBeLessThan(512 * 1024);
    const { queued, rejectedInputs } = statusOf(state, 0);
    expect(queued).toBe(501);
    expect(rejectedInputs).toMatchObject({
      count: 9_500,
      last: expect.arrayContaining([{ name: 'event note', reason: expect.stringContaining('500'), at: AT }]),
    });
    expect(appEventRefusal(state, null)).toContain('the limit is 500');
  });

  test('large payloads reach a limit of their own', () => {
    const received = (state: ConversationState, id: string): ConversationState =>
      apply(state, { kind: 'app-event-received', id, type: 'note', payload: 'é'.repeat(30_000), at: AT });
    const state = ['a', 'b', 'c', 'd'].reduce(received, stepping(open()));
    expect(queueOf(state)).toHaveLength(2);
    expect(statusOf(state, 0).rejectedInputs).toMatchObject({ count: 2, last: [{ reason: expect.stringContaining('131072') }, {}] });
  });
});
