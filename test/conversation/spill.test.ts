import { apply } from '../../src/conversation/apply.js';
import type { Recorded, RecordInput } from '../../src/conversation/effects.js';
import { nextStep } from '../../src/conversation/next-step.js';
import { LATEST_RULES } from '../../src/conversation/rules.js';
import type { ConversationState } from '../../src/conversation/state.js';
import { isTurnOpen, queueOf, statusOf } from '../../src/conversation/view.js';
import { answer, applyAll, memoryEvents, open, recorded, said } from './drive.js';

/** A store of queued messages, and the loop that keeps one turn in flight while the queue grows. */
function createHarness() {
  const store = new Map<number, { messageId: string; turn: string; session: number; ts: number }>();
  let state = open();
  const order: string[] = [];
  const perform = (input: RecordInput): Recorded => {
    for (const message of input.messages) store.set(message.slot, message);
    const readBack = input.readBack.map((slot) => {
      const { messageId, turn, session, ts } = store.get(slot)!;
      return { slot, messageId, turn, session, at: ts * 1000, bytes: 5 };
    });
    return { ...recorded(input), readBack };
  };
  return {
    order,
    state: () => state,
    pin: (rules: number) => (state = { ...state, rules }),
    tell: (...events: Parameters<typeof apply>[1][]) => (state = applyAll(state, ...events)),
    /** Steps until something waits; model calls are answered unless `holdModel`. */
    run(holdModel = false) {
      for (;;) {
        const step = nextStep(state);
        const at = state.now + 1;
        if (step.kind === 'record')
          state = applyAll(state, { kind: 'record-started', at }, { kind: 'recorded', recorded: perform(step.input), at });
        else if (memoryEvents(step, at)) state = applyAll(state, ...memoryEvents(step, at)!);
        else if (step.kind === 'call-model' && !(holdModel && order.length > 0)) {
          order.push(step.input.turn);
          state = apply(state, { kind: 'model-call-started', call: step.input.call, at });
          if (!holdModel) state = apply(state, { kind: 'model-answered', answer: answer(step.input), at });
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

  harness.tell({ kind: 'interrupt-requested', reason: null, at: 2000 }, { kind: 'stop-sent', at: 2000 }, { kind: 'time-passed', at: 9000 });
  harness.run();
  expect(harness.order.slice(1)).toEqual(Array.from({ length: 10_000 }, (_, i) => `turn_${String(i + 2).padStart(4, '0')}`));
  expect(harness.state().queue).toEqual([]);
});

test('what thousands of short messages carry beside their text goes to the store before a hand-over', () => {
  const stateAt = (rules: number): number => {
    const harness = createHarness();
    harness.tell(said('m0'));
    harness.run(true);
    for (let i = 1; i <= 6_000; i++) harness.tell(said(`m${i}`, { text: 'go on' }));
    harness.pin(rules);
    harness.tell(
      { kind: 'interrupt-requested', reason: null, at: 2000 },
      { kind: 'stop-sent', at: 2000 },
      { kind: 'time-passed', at: 9000 },
    );
    harness.tell({ kind: 'hand-over-due', reason: 'a test', at: 9000 });
    expect(harness.run(true).kind).toBe('hand-over');
    // One of them may have its turn by now.
    expect(statusOf(harness.state(), 0).queued).toBeGreaterThanOrEqual(5_999);
    return size(harness.state());
  };
  expect(stateAt(LATEST_RULES)).toBeLessThan(300 * 1024);
  // 128 KiB of text is 18,000 of these.
  expect(stateAt(2)).toBeGreaterThan(512 * 1024);
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
  harness.tell({ kind: 'interrupt-requested', reason: null, at: 2000 }, { kind: 'stop-sent', at: 2000 }, { kind: 'time-passed', at: 9000 });
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
  const readBack = { kind: 'recorded', recorded: { messages: [], readBack: [lost], configured: null }, at: 1 } as const;
  const gap = applyAll(state, { kind: 'record-started', at: 1 }, readBack);
  expect(nextStep(gap)).toMatchObject({ kind: 'heal', input: { slots: [503] } });
  const healed = applyAll(gap, { kind: 'heal-started', at: 2 }, { kind: 'heal-ended', at: 2 });
  expect(nextStep(healed)).toMatchObject({ kind: 'record' });
  const still = applyAll(healed, { kind: 'record-started', at: 3 }, readBack);
  expect(still.rejected.last).toMatchObject([{ reason: expect.stringContaining('(slot 503)') as string }]);
  expect(statusOf(still, 0).queued).toBe(59);
});
