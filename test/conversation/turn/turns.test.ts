import { apply } from '../../../src/conversation/apply.js';
import { resetIds, turnOfMessage } from '../../../src/conversation/inbox/arrivals.js';
import type { StepFailure } from '../../../src/conversation/outbox/writes.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { HAND_OVER, handOverReason } from '../../../src/conversation/opening.js';
import { listSlots } from '../../../src/records/slots.js';
import { outcomeFor } from '../../../src/conversation/requests.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { endedTurn, statusOf } from '../../../src/conversation/views/view.js';
import {
  answer,
  answered,
  applyAll,
  asking,
  deferred,
  finished,
  interrupted,
  isEffect,
  namesOf,
  notAnswered,
  open,
  ORDINARY,
  QUICK,
  said,
  settle,
  STORE_AWAY,
  take,
  written,
} from '../drive.js';

/** Up to the first model step, which is left in flight. */
function thinking(...ids: string[]) {
  return take(applyAll(open(), ...(ids.length > 0 ? ids : ['a']).map((id) => said(id))), 'model-step');
}

/** What the store is given to fence, and to answer with. */
function settlements(state: ConversationState) {
  return state.outbox.settle.map(({ effect, entry }) => [effect, entry?.message.role === 'tool' ? entry.message.outcome : entry]);
}

test('a message is written and answered in one step, and forgotten but for its index', () => {
  const { state, steps } = settle(apply(open(), said('a')));
  expect(namesOf(steps)).toEqual(['begin-turn', 'model-step', 'wait']);
  expect(state.turn).toBeNull();
  expect(state.queue).toEqual([]);
  expect(turnOfMessage(state, 'a')).toBe('turn_0001');
  expect(endedTurn(state, 'turn_0001')).toMatchObject({ stopReason: 'end', answerSlot: 2 });
  expect(listSlots(state.context)).toEqual([1, 2]);
  expect(JSON.stringify(state)).not.toContain('text of a');
});

test('a message that arrives during a turn comes after that turn in the context', () => {
  const { state, input, done } = thinking('a');
  const after = settle(applyAll(state, said('b'), done(answered(input)))).state;
  expect(listSlots(after.context)).toEqual([1, 2, 3, 4]);
  expect(after.turnsEnded).toBe(2);
});

test('parallel tool calls are all answered before the next model call, in the order of the calls', () => {
  let asked = false;
  const seen: number[][] = [];
  const { state, steps } = settle(apply(open(), said('a')), {
    model: (input) => {
      seen.push(listSlots(input.call.context));
      if (asked) return answer(input);
      asked = true;
      return asking(input, 20);
    },
  });
  expect(namesOf(steps)).toEqual(['begin-turn', 'model-step', ...Array<string>(20).fill('run-tool'), 'model-step', 'wait']);
  expect(seen).toEqual([[1], Array.from({ length: 22 }, (_, i) => i + 1)]);
  expect(state.ended[0]).toMatchObject({ stopReason: 'end', toolCalls: 20 });
});

test('sixteen tools run at once, the next one when one has ended', () => {
  const { state, input, done } = thinking();
  let now = apply(state, done(answered(input, asking(input, 20))));
  const tools = [];
  for (; nextStep(now).kind === 'effect'; now = tools.at(-1)!.state) tools.push(take(now, 'run-tool'));
  expect(tools).toHaveLength(16);
  const [, second] = tools;
  expect(take(apply(now, second!.done(finished(second!.input))), 'run-tool').id).toBe('turn_0001/c17');
});

test('what a tool reports after the stop is told in the next turn, once, and not in another session', () => {
  const { state: asking1, input, done } = thinking();
  const { state, input: call, done: finish } = take(apply(asking1, done(answered(input, asking(input, 1)))), 'run-tool');
  const gone = applyAll(state, ...interrupted(2000), { kind: 'time-passed', at: 3500 });
  expect(gone.ended[0]).toMatchObject({ stopReason: 'interrupted' });
  const late = apply(gone, finish(finished(call, { fenced: true, outcome: 'ok', text: 'Paid: receipt 7731.' }), 9000));
  expect(late.outbox).toEqual(gone.outbox);
  const noticesIn = (from: ConversationState): string[] =>
    settle(apply(from, said('b'))).steps.flatMap((step) =>
      isEffect(step, 'model-step') ? step.input.write.settle.flatMap(({ entry }) => (entry ? [JSON.stringify(entry.message)] : [])) : [],
    );
  expect(noticesIn(late).filter((text) => text.includes('receipt 7731'))).toEqual([expect.stringMatching(/still ran.*"notice"/)]);
  expect(settle(apply(late, said('b'))).state.lateResults).toBeUndefined();
  expect(noticesIn(gone).join('')).not.toContain('receipt');
  const reset = settle(apply(gone, { kind: 'reset-requested', resetId: 'r', at: 4000 })).state;
  expect(apply(reset, finish(finished(call, { fenced: true, outcome: 'ok', text: 'x' }), 9000)).lateResults).toBeUndefined();
});

test('a run that waits for a tool which hears no stop hands over later, and one that has heard of it does not', () => {
  const { state: asking1, input, done } = thinking();
  const { state, input: call, done: finish } = take(apply(asking1, done(answered(input, asking(input, 1)))), 'run-tool');
  const long = { ...HAND_OVER, events: HAND_OVER.events + 1 };
  const gone = applyAll(state, ...interrupted(2000), { kind: 'time-passed', at: 3500 });
  expect(handOverReason(gone, long)).toBeUndefined();
  expect(handOverReason(gone, { ...long, events: 3 * HAND_OVER.events })).toBe('9000 events');
  const told = apply(gone, finish(finished(call, { fenced: true, outcome: 'ok', text: 'Paid.' }), 9000));
  const failure = { type: 'tool-crashed', message: 'the worker is gone', transient: false, unknownOutcome: true };
  const failed = apply(gone, { kind: 'effect-failed', effect: 'run-tool', id: call.callId, failure, at: 9000 });
  for (const ended of [told, failed, apply(gone, { kind: 'run-continued', at: 9000 })])
    expect(handOverReason(ended, long)).toBe('3001 events');
});

test('the limit of tool rounds ends the turn, says so, and leaves every call answered', () => {
  const { state, steps } = settle(apply(open(), said('a')), { model: (input) => asking(input, 1) });
  expect(state.ended[0]).toMatchObject({ stopReason: 'tool-limit', error: { type: 'tool-limit' } });
  expect(state.ended[0]?.error?.message).toContain('50 rounds');
  expect(namesOf(steps).filter((name) => name === 'run-tool')).toHaveLength(50);
  const settled = steps.flatMap((step) => (isEffect(step, 'store-step') ? step.input.write.settle : []));
  expect(settled).toMatchObject([{ effect: 'turn_0001/c51', entry: { message: { role: 'tool', outcome: 'rejected' } } }]);
  expect(listSlots(state.context).length).toBe(1 + 51 * 2);
});

test('an interrupt stops what is in flight and keeps what the model had completed', () => {
  const { state, input, done } = thinking();
  const stopping = apply(state, { kind: 'interrupt-requested', reason: null, at: 2000 });
  expect(nextStep(stopping)).toEqual({ kind: 'stop', children: [] });
  const told = apply(stopping, { kind: 'stop-sent', at: 2001 });
  expect(nextStep(told)).toMatchObject({ kind: 'wait', until: 3501 });
  const stopped = apply(told, done(answered(input, { stop: 'interrupted' }), 2300));
  expect(stopped.ended[0]).toMatchObject({ stopReason: 'interrupted', answerSlot: 2 });
  expect(listSlots(stopped.context)).toEqual([1, 2]);
});

test('what does not stop within the grace is fenced, and its late answer is dropped but paid', () => {
  const { state, input, done } = thinking();
  const gone = applyAll(state, ...interrupted(2000), { kind: 'time-passed', at: 3500 });
  expect(gone.turn).toBeNull();
  expect(gone.inFlight).toEqual([]);
  const fence = { effect: input.call.id, entry: null };
  // The step may not have written the message either.
  expect(take(gone, 'store-step').input.write).toMatchObject({ settle: [fence], messages: [{ messageId: 'a', text: 'text of a' }] });
  const late = apply(gone, done(answered(input), 9000));
  expect(listSlots(late.context)).toEqual([1]);
  expect(late.usage.inputTokens).toBe(10);
  expect(late.outbox).toEqual(gone.outbox);
});

test('an interrupt among tools shows the model which were cancelled before they started and which were interrupted', () => {
  const { state, input, done } = thinking();
  let now = apply(state, done(answered(input, asking(input, 20, { ...ORDINARY, repeatable: false }))));
  const tools = Array.from({ length: 16 }, () => {
    const tool = take(now, 'run-tool');
    now = tool.state;
    return tool;
  });
  now = applyAll(now, tools[0]!.done(finished(tools[0]!.input), 1005), ...interrupted(1006), { kind: 'time-passed', at: 2600 });
  expect(settlements(now).map(([, outcome]) => outcome)).toEqual([
    ...Array<string>(15).fill('unknown'),
    ...Array<string>(4).fill('cancelled'),
  ]);
  expect(listSlots(now.context).length).toBe(22);
});

test('an interrupt while tools ride fences the call and every tool, and each has its answer in the context', () => {
  const { state, input, done } = thinking();
  const riding = take(apply(state, done(answered(input, asking(input, 3, QUICK)))), 'model-step');
  expect(riding.input.tools).toHaveLength(3);
  const gone = applyAll(riding.state, ...interrupted(2000), { kind: 'time-passed', at: 3500 });
  expect(settlements(gone)).toEqual([
    ['turn_0001/m2', null],
    ['turn_0001/c1', 'unknown'],
    ['turn_0001/c2', 'unknown'],
    ['turn_0001/c3', 'unknown'],
  ]);
  expect(listSlots(gone.context)).toEqual([1, 2, 3, 4, 5]);
});

test('a step that was stopped between its tools and its call keeps the results of the tools', () => {
  const { state, input, done } = thinking();
  const riding = take(apply(state, done(answered(input, asking(input, 2, QUICK)))), 'model-step');
  const after = applyAll(riding.state, ...interrupted(2000), riding.done(deferred(riding.input, 'stopped'), 2100));
  expect(after.ended[0]).toMatchObject({ stopReason: 'interrupted' });
  expect(settlements(after)).toEqual([]);
  // Stopped before they ran, they are cancelled.
  const before = applyAll(riding.state, ...interrupted(2000), riding.done(deferred(riding.input, 'stopped', { tools: [] }), 2100));
  expect(settlements(before)).toEqual([
    ['turn_0001/c1', 'cancelled'],
    ['turn_0001/c2', 'cancelled'],
  ]);
});

const OVERLOADED: StepFailure = { type: 'overloaded', message: '529', transient: true };

test.each([
  ['told by the step', false],
  ['of the step itself', true],
])('a passing failure %s is waited out with growing pauses, shown, and ends the turn only after many', (_, ofStep) => {
  let step = thinking();
  const fail = (at: number): ConversationState =>
    apply(step.state, ofStep ? step.failed(OVERLOADED, at) : step.done(notAnswered(step.input, OVERLOADED), at));
  let state = fail(2000);
  expect(statusOf(state, 0)).toMatchObject({
    phase: 'waiting-to-retry',
    waiting: { kind: 'retry', reason: 'overloaded', message: '529', until: '1970-01-01T00:00:04.000Z' },
    waitingFor: 'overloaded: 529; trying again at 1970-01-01T00:00:04.000Z',
  });
  let tries = 0;
  const ids = new Set<string>();
  for (; state.turn; tries++) {
    const { state: quiet, steps } = settle(state);
    const wait = steps.at(-1)!;
    if (wait.kind !== 'wait' || wait.until === undefined) throw new Error(JSON.stringify(wait));
    step = take(apply(quiet, { kind: 'time-passed', at: wait.until }), 'model-step');
    ids.add(step.id);
    state = fail(wait.until);
  }
  expect(tries).toBeGreaterThan(20);
  expect([...ids]).toEqual(['turn_0001/m1']);
  expect(state.ended[0]).toMatchObject({ stopReason: 'failed', error: { type: 'overloaded' } });
});

test('a store that is away is said also while it is asked again, which a model that is asked again is not', () => {
  const askedAgain = (failure: StepFailure): ConversationState => {
    const { state, failed } = thinking();
    const quiet = settle(apply(state, failed(failure, 2000))).state;
    return take(apply(quiet, { kind: 'time-passed', at: 100_000 }), 'model-step').state;
  };
  const full = { ...STORE_AWAY, message: 'cannot append in /m: ENOSPC; the disk is full: free space there' };
  expect(statusOf(askedAgain(full), 0).waitingFor).toMatch(
    /^StoreUnavailable: cannot append in \/m: ENOSPC; the disk is full: free space there/,
  );
  expect(statusOf(askedAgain(OVERLOADED), 0).waitingFor).toBeUndefined();
});

test('tools that rode on a call that failed are done: the next try calls alone', () => {
  const { state, input, done } = thinking();
  const riding = take(apply(state, done(answered(input, asking(input, 2, QUICK)))), 'model-step');
  const failed = apply(riding.state, riding.done(notAnswered(riding.input, OVERLOADED), 2000));
  const again = take(apply(settle(failed).state, { kind: 'time-passed', at: 4000 }), 'model-step');
  expect([again.id, again.input.tools]).toEqual([riding.id, []]);
  expect(again.input.call.context).toEqual(riding.input.call.context);
});

test('a wait that the provider asked for is kept, and an interrupt ends it at once', () => {
  const { state, input, done } = thinking();
  const failure = { type: 'rate-limit', message: '429', transient: true, retryAfterMs: 3_600_000 };
  const waiting = apply(state, done(notAnswered(input, failure), 2000));
  expect(nextStep(settle(waiting).state)).toMatchObject({ kind: 'wait', until: 3_602_000 });
  expect(apply(waiting, { kind: 'interrupt-requested', reason: null, at: 3000 }).ended[0]).toMatchObject({ stopReason: 'interrupted' });
});

test('a failure that will not pass ends the turn with its reason, and the next message is answered', () => {
  const { state, input, done } = thinking();
  const failed = apply(state, done(notAnswered(input, { type: 'auth', message: 'no', transient: false }), 2000));
  expect(failed.ended[0]).toMatchObject({ stopReason: 'failed', error: { type: 'auth', message: 'no' } });
  expect(settle(apply(failed, said('b'))).state.ended[1]).toMatchObject({ stopReason: 'end' });
});

test('a reset stops the running turn when it is next, and what comes after it is a clean session', () => {
  const { state, input, done } = thinking();
  const asked = applyAll(state, { kind: 'reset-requested', resetId: 'r', at: 2000 }, said('b'));
  expect(nextStep(asked)).toMatchObject({ kind: 'stop' });
  const stopped = applyAll(asked, { kind: 'stop-sent', at: 2000 }, done(answered(input, { stop: 'interrupted' }), 2001));
  const { state: after } = settle(stopped);
  expect(after.session).toBe(2);
  expect(outcomeFor(after, 'reset', 'r')).toEqual({ session: 2, reply: 'Session cleared.', consolidation: 'model' });
  expect(listSlots(after.context)).toEqual([3, 4]);
  expect(after.ended.map((turn) => turn.stopReason)).toEqual(['interrupted', 'end']);
});

test('adjacent resets are one, and a reset of an empty session changes nothing', () => {
  const empty = apply(open(), { kind: 'reset-requested', resetId: 'r0', at: 1 });
  expect(empty).toMatchObject({ session: 1, queue: [] });
  expect(outcomeFor(empty, 'reset', 'r0')).toMatchObject({ session: 1 });
  const { state } = thinking();
  const twice = applyAll(state, { kind: 'reset-requested', resetId: 'r1', at: 2 }, { kind: 'reset-requested', resetId: 'r2', at: 3 });
  const [item, ...others] = twice.queue;
  expect(others).toEqual([]);
  expect(resetIds(twice, item?.number ?? 0)).toEqual(['r1', 'r2']);
});

test('a steering message joins the running turn between tool calls and is answered by its end', () => {
  let first = true;
  const { state, input, done } = thinking();
  const steered = applyAll(state, said('s', { delivery: 'steer' }), done(answered(input, asking(input, 1))));
  const { state: after, steps } = settle(steered, {
    model: (next) => {
      expect(first).toBe(true);
      first = false;
      expect(listSlots(next.call.context)).toEqual([1, 2, 4, 3]);
      expect(next.write.messages).toMatchObject([{ messageId: 's', turn: 'turn_0001', slot: 3 }]);
      return answer(next);
    },
  });
  expect(namesOf(steps)).toEqual(['run-tool', 'model-step', 'wait']);
  expect(turnOfMessage(after, 's')).toBe('turn_0001');
  expect(after.turnsEnded).toBe(1);
});

test('a message with delivery "interrupt" stops the turn and goes first', () => {
  const { state, input, done } = thinking();
  const cut = applyAll(state, said('b'), said('c', { delivery: 'interrupt' }));
  expect(cut.turn?.stopping).not.toBeNull();
  const stopped = applyAll(cut, { kind: 'stop-sent', at: 1 }, done(answered(input, { blocks: [], stop: 'interrupted' })));
  const { state: after } = settle(stopped);
  expect(after.ended.map((turn) => turn.number)).toEqual([1, 3, 2]);
});

test('close runs out the queue, then finishes with the sums', () => {
  const { state } = thinking('a', 'b');
  const { steps } = settle(apply(state, { kind: 'close-requested', at: 5 }));
  expect(steps.at(-1)?.kind).toBe('wait');
  const closed = settle(applyAll(open(), said('a'), said('b'), { kind: 'close-requested', at: 5 }));
  expect(closed.steps.at(-1)).toMatchObject({ kind: 'finish', outcome: { turns: 2, sessions: 1, usage: { inputTokens: 20 } } });
  expect(apply(closed.state, said('late')).rejected.last).toMatchObject([{ name: 'message', reason: 'the conversation is closing' }]);
});

test('an unusable agent fails the turn with its reason and is read again for the next', () => {
  const { state, input, done } = thinking();
  const configured = { kind: 'unusable', type: 'unknown-agent', message: 'no agent x' } as const;
  const failed = apply(state, done(deferred(input, 'unusable', { configured })));
  expect(failed.ended).toMatchObject([{ stopReason: 'failed', error: { type: 'unknown-agent', message: 'no agent x' } }]);
  const next = take(apply(failed, said('b')), 'model-step');
  expect(next.input.configure).toMatchObject({ knownHash: null });
  expect(settle(apply(next.state, next.done(answered(next.input)))).state.ended[1]).toMatchObject({ stopReason: 'end' });
});

describe('a message id that only the store remembers', () => {
  /** The step finds that this message is an earlier one. */
  const found = (step: ReturnType<typeof thinking>, messageId: string) => {
    const { write } = step.input;
    const messages = written(write).messages.map((message, i) =>
      write.messages[i]?.messageId === messageId ? { ...message, duplicate: 'turn_0042' } : message,
    );
    return step.done(deferred(step.input, 'duplicate', { written: { messages } }));
  };

  test('is answered by its earlier turn, and its own is none', () => {
    const step = thinking('old');
    const known = apply(step.state, found(step, 'old'));
    expect(known).toMatchObject({ queue: [], turn: null, context: [], turnsEnded: 0, ended: [] });
    expect(turnOfMessage(known, 'old')).toBe('turn_0042');
    expect(settle(apply(known, said('new'))).state.ended).toMatchObject([{ number: 2, stopReason: 'end' }]);
  });

  test('leaves to the turn what else was said in it', () => {
    const first = thinking('a');
    const steered = applyAll(
      first.state,
      said('old', { delivery: 'steer' }),
      first.done(answered(first.input, asking(first.input, 2, QUICK))),
    );
    const second = take(steered, 'model-step');
    const known = apply(second.state, found(second, 'old'));
    expect(known.turn?.messageIds).toEqual(['a']);
    const next = take(known, 'model-step');
    expect(listSlots(next.input.call.context)).toEqual([1, 2, 4, 5]);
    expect(next.id).not.toBe(second.id);
  });

  test('lets what was said while it was looked up be the next turn', () => {
    const step = thinking('old');
    const known = applyAll(step.state, said('s', { delivery: 'steer' }), found(step, 'old'));
    expect(turnOfMessage(known, 's')).toBe('turn_0002');
    expect(settle(known).state).toMatchObject({ turnsEnded: 1, ended: [{ number: 2, stopReason: 'end' }] });
  });
});

test('a store that is away is tried again with growing pauses and loses nothing', () => {
  let state = apply(open(), said('a'));
  for (const at of [2000, 4000, 8000]) {
    const { state: running, failed } = take({ ...state, now: at }, 'model-step');
    state = apply(running, failed(STORE_AWAY, at));
    expect(nextStep(state)).toMatchObject({ kind: 'wait', why: 'turn_0001/m1: StoreUnavailable' });
  }
  expect(statusOf(state, 0).phase).toBe('waiting-to-retry');
  const { state: after } = settle(apply(state, { kind: 'time-passed', at: 100_000 }));
  expect(after).toMatchObject({ turnsEnded: 1, ended: [{ stopReason: 'end' }], outbox: { messages: [] } });
});

test('a store that is away for hours does not end the turn: nobody was asked yet', () => {
  let state = apply(open(), said('a'));
  for (let tries = 0; tries < 100; tries++) {
    const { state: running, failed } = take(apply(state, { kind: 'time-passed', at: state.now + 60_000 }), 'model-step');
    state = apply(running, failed(STORE_AWAY));
  }
  expect(state.turn?.phase).toMatchObject({ call: { failures: 0 } });
});

const HUNG: StepFailure = { type: 'hung-worker', message: 'given up: 2 workers stood still', transient: false };

test('a step that has ended two workers ends its turn in words, and no processor reads its message again', () => {
  const { state, failed } = thinking('poison');
  const { state: after, steps } = settle(apply(state, failed(HUNG)));
  expect(after.ended).toMatchObject([{ number: 1, stopReason: 'failed', error: { type: 'hung-worker', message: HUNG.message } }]);
  const writes = steps.flatMap((step) => (isEffect(step, 'store-step') ? step.input.write.messages : []));
  expect(writes).toMatchObject([{ messageId: 'poison', slot: 1, isWithheld: true, text: expect.stringContaining('not taken in') }]);
  expect(JSON.stringify(after)).not.toContain('isWithheld');
  expect(settle(apply(after, said('plain'))).state).toMatchObject({ turnsEnded: 2, outbox: { messages: [] } });
});

test('a store step that has ended two workers withholds its messages too, and is tried again', () => {
  const running = thinking('a');
  const waiting = take(applyAll(running.state, ...interrupted(1_500), said('poison', { text: 'x'.repeat(300 * 1024) })), 'store-step');
  const { state } = settle(apply(waiting.state, waiting.failed(HUNG)));
  const again = take(apply(state, { kind: 'time-passed', at: state.now + 60_000 }), 'store-step');
  expect(again.input.write.messages).toMatchObject([{ messageId: 'poison', isWithheld: true }]);
});

test('a message that waits behind hundreds of others is still known by its id', () => {
  const { state } = thinking('first');
  const many = Array.from({ length: 300 }, (_, i) => said(`other-${i}`));
  const crowded = applyAll(state, said('mine'), said('steering', { delivery: 'steer' }), ...many);
  expect(outcomeFor(crowded, 'message', 'mine')).toBeUndefined();
  expect(turnOfMessage(crowded, 'first')).toBe('turn_0001');
  expect(turnOfMessage(crowded, 'mine')).toBe('turn_0002');
});
