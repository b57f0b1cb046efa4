import { apply } from '../../../src/conversation/apply.js';
import type { StoreStepInput, StoreStepResult, Writes } from '../../../src/conversation/outbox/writes.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { isTurnOpen, queueOf, statusOf } from '../../../src/conversation/views/view.js';
import { answered, applyAll, interrupted, isEffect, open, outputOf, said, stored, take, takeStep } from '../drive.js';

/** A store of queued messages, and the loop that keeps one turn in flight while the queue grows. */
function createHarness() {
  const store = new Map<number, Writes['messages'][number]>();
  let state = open();
  const order: string[] = [];
  const note = ({ messages }: Writes): void => messages.forEach((message) => store.set(message.slot, message));
  const perform = (input: StoreStepInput): StoreStepResult => {
    note(input.write);
    const rehydrated = input.rehydrate.map((slot) => {
      const { messageId, turn, session, ts } = store.get(slot)!;
      return { slot, messageId, turn, session, at: ts * 1000, bytes: 5 };
    });
    return stored(input, { rehydrated });
  };
  return {
    order,
    state: () => state,
    tell: (...events: Parameters<typeof apply>[1][]) => (state = applyAll(state, ...events)),
    /** Steps until something waits; model steps are ended unless `holdModel`. */
    run(holdModel = false) {
      for (;;) {
        const step = nextStep(state);
        if (step.kind === 'begin-turn') state = apply(state, { kind: 'turn-begun', at: state.now + 1 });
        else if (isEffect(step, 'model-step')) {
          if (holdModel && order.length > 0) return step;
          order.push(step.input.turn);
          note(step.input.write);
          const taken = takeStep(state, step);
          state = holdModel ? taken.state : apply(taken.state, taken.done(answered(step.input)));
        } else if (step.kind === 'effect') {
          const taken = takeStep(state, step);
          const output = isEffect(step, 'store-step') ? perform(step.input) : outputOf(step);
          state = apply(taken.state, taken.done(output as never));
          if (isEffect(step, 'ask-memory'))
            state = apply(state, { kind: 'consolidation-ended', requestId: step.id, consolidation: 'model', usage: null, at: state.now });
        } else return step;
      }
    },
  };
}

const size = (state: ConversationState) => JSON.stringify(state).length;

test('ten thousand queued messages fit into half a megabyte of state and are answered in their order', () => {
  const harness = createHarness();
  harness.tell(said('m0'));
  harness.run(true);
  for (let i = 1; i <= 10_000; i++) {
    harness.tell(said(`message-${String(i).padStart(30, '0')}`));
    if (i % 40 === 0) harness.run(true);
  }
  harness.run(true);
  expect(statusOf(harness.state(), 0).queued).toBe(10_000);
  expect(size(harness.state())).toBeLessThan(512 * 1024);
  expect(isTurnOpen(harness.state(), 'turn_9000')).toBe(true);
  expect(queueOf(harness.state()).at(-1)?.event).toEqual({ kind: 'more', count: 9_500 });

  harness.tell(...interrupted(2000), { kind: 'time-passed', at: 9000 });
  harness.run();
  expect(harness.order.slice(1)).toEqual(Array.from({ length: 10_000 }, (_, i) => `turn_${String(i + 2).padStart(4, '0')}`));
  expect(harness.state().queue).toEqual([]);
});

test('what thousands of short messages carry beside their text goes to the store before a hand-over', () => {
  const harness = createHarness();
  harness.tell(said('m0'));
  harness.run(true);
  for (let i = 1; i <= 6_000; i++) harness.tell(said(`m${i}`, { text: 'go on' }));
  harness.tell(...interrupted(2000), { kind: 'time-passed', at: 9000 }, { kind: 'hand-over-due', reason: 'a test', at: 9000 });
  // As it would be carried: 128 KiB of text is 18,000 of these.
  expect(size(harness.state())).toBeGreaterThan(512 * 1024);
  expect(harness.run(true).kind).toBe('hand-over');
  // One of them may have its turn by now.
  expect(statusOf(harness.state(), 0).queued).toBeGreaterThanOrEqual(5_999);
  expect(size(harness.state())).toBeLessThan(300 * 1024);
});

test('a reset among spilled messages keeps its place', () => {
  const harness = createHarness();
  harness.tell(said('m0'));
  harness.run(true);
  for (let i = 1; i <= 700; i++) harness.tell(said(`a${i}`));
  harness.run(true);
  harness.tell({ kind: 'reset-requested', resetId: 'r', at: 3 }, said('after'));
  harness.run(true);
  for (let i = 1; i <= 300; i++) harness.tell(said(`b${i}`));
  harness.run(true);
  expect(
    harness
      .state()
      .queue.slice(500)
      .map((item) => item.kind),
  ).toEqual(['spilled', 'reset', 'spilled']);
  harness.tell(...interrupted(2000), { kind: 'time-passed', at: 9000 });
  harness.run();
  expect(harness.state()).toMatchObject({ session: 2, turnsEnded: 1002, queue: [] });
});

test('a queued message that the store has lost is healed; one that stays lost is said, and the others go on', () => {
  const harness = createHarness();
  harness.tell(said('m0'));
  harness.run(true);
  for (let i = 1; i <= 560; i++) harness.tell(said(`a${i}`));
  harness.run(true);
  const spilled = harness.state().queue.at(-1)!;
  const state = { ...harness.state(), queue: [spilled] };
  const lost = { slot: 503, messageId: '', turn: '', session: 0, at: 0, bytes: 0, lost: true };
  const readAgain = (from: ConversationState): ConversationState => {
    const { state: reading, input, done } = take(from, 'store-step');
    expect(input.rehydrate).toContain(503);
    return apply(reading, done(stored(input, { rehydrated: [lost] })));
  };
  // Its turn has just ended.
  const gap = readAgain(idle(state));
  const heal = take(gap, 'heal');
  expect(heal.input.slots).toEqual([503]);
  const still = readAgain(apply(heal.state, heal.done(undefined)));
  expect(still.rejected.last).toMatchObject([{ reason: expect.stringContaining('(slot 503)') as string }]);
  expect(statusOf(still, 0).queued).toBe(59);
});

/** What was in flight has been given up. */
function idle(state: ConversationState): ConversationState {
  return applyAll(state, ...interrupted(2000), { kind: 'time-passed', at: 9000 });
}

test('clearing a long queue takes out all of it, also what is in the store', () => {
  const harness = createHarness();
  harness.tell(said('m0'));
  harness.run(true);
  for (let i = 1; i <= 900; i++) {
    harness.tell(said(`m${i}`));
    if (i % 40 === 0) harness.run(true);
  }
  harness.run(true);
  harness.tell({ kind: 'queue-edited', edit: { op: 'clear' }, at: 1 });
  expect(statusOf(harness.state(), 0).queued).toBe(0);
  expect(queueOf(harness.state())).toEqual([]);
  expect(isTurnOpen(harness.state(), 'turn_0700')).toBe(false);
});
