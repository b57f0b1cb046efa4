import { apply } from '../../src/conversation/apply.js';
import { turnOfMessage } from '../../src/conversation/arrivals.js';
import { nextStep } from '../../src/conversation/next-step.js';
import { slotsOf } from '../../src/conversation/slots.js';
import { endedTurn, statusOf } from '../../src/conversation/view.js';
import { answer, applyAll, asking, finished, open, recorded, said, settle } from './drive.js';

/** Up to the first model call, which is left in flight. */
function thinking(...ids: string[]) {
  let state = applyAll(open(), ...(ids.length > 0 ? ids : ['a']).map((id) => said(id)));
  const record = nextStep(state);
  if (record.kind !== 'record') throw new Error(record.kind);
  state = applyAll(state, { kind: 'record-started', at: 1001 }, { kind: 'recorded', recorded: recorded(record.input), at: 1001 });
  const call = nextStep(state);
  if (call.kind !== 'call-model') throw new Error(call.kind);
  return { state: apply(state, { kind: 'model-call-started', call: call.input.call, at: 1002 }), input: call.input };
}

test('a message is recorded, answered and forgotten but for its index', () => {
  const { state, steps } = settle(apply(open(), said('a')));
  expect(steps.map((step) => step.kind)).toEqual(['record', 'call-model', 'wait']);
  expect(state.turn).toBeNull();
  expect(state.queue).toEqual([]);
  expect(turnOfMessage(state, 'a')).toBe('turn_0001');
  expect(endedTurn(state, 'turn_0001')).toMatchObject({ stopReason: 'end', answerSlot: 2 });
  expect(slotsOf(state.context)).toEqual([1, 2]);
  expect(JSON.stringify(state)).not.toContain('text of a');
});

test('the same message id five times is one turn', () => {
  const { state } = settle(applyAll(open(), said('a'), said('a'), said('a'), said('a'), said('a')));
  expect(state.turnsEnded).toBe(1);
  expect(settle(apply(state, said('a'))).state.turnsEnded).toBe(1);
});

test('messages queue in the order of their arrival and each gets a turn of its own', () => {
  const { state, steps } = settle(applyAll(open(), said('a'), said('b'), said('c')));
  expect(state.ended.map((turn) => turn.number)).toEqual([1, 2, 3]);
  expect(steps.filter((step) => step.kind === 'record').length).toBe(3);
});

test('a message that arrives during a turn comes after that turn in the context', () => {
  const { state, input } = thinking('a');
  const after = settle(applyAll(state, said('b'), { kind: 'model-answered', answer: answer(input), at: 1003 })).state;
  expect(slotsOf(after.context)).toEqual([1, 2, 3, 4]);
  expect(after.turnsEnded).toBe(2);
});

test('parallel tool calls are all answered before the next model call, in the order of the calls', () => {
  let asked = false;
  const seen: number[][] = [];
  const { state, steps } = settle(apply(open(), said('a')), {
    model: (input) => {
      seen.push(slotsOf(input.context));
      if (asked) return answer(input);
      asked = true;
      return asking(input, 20);
    },
  });
  expect(steps.map((step) => (step.kind === 'run-tools' ? step.runs.length : step.kind))).toEqual([
    'record',
    'call-model',
    16,
    4,
    'call-model',
    'wait',
  ]);
  expect(seen).toEqual([[1], Array.from({ length: 22 }, (_, i) => i + 1)]);
  expect(state.ended[0]).toMatchObject({ stopReason: 'end', toolCalls: 20 });
});

test('local tools run locally only when the whole batch is local', () => {
  const local = { local: true, repeatable: true, timeoutMs: 1000 };
  const plans = [local, { ...local, local: false }];
  const { steps } = settle(apply(open(), said('a')), {
    model: (input) => (input.firstToolCall > 1 ? answer(input) : { ...asking(input, 2), plans }),
  });
  expect(steps.find((step) => step.kind === 'run-tools')).toMatchObject({ local: false });
});

test('the limit of tool rounds ends the turn, says so, and leaves every call answered', () => {
  const { state, steps } = settle(apply(open(), said('a')), { model: (input) => asking(input, 1) });
  expect(state.ended[0]).toMatchObject({ stopReason: 'tool-limit', error: { type: 'tool-limit' } });
  expect(state.ended[0]?.error?.message).toContain('50 rounds');
  expect(steps.filter((step) => step.kind === 'run-tools').length).toBe(50);
  const settled = steps.flatMap((step) => (step.kind === 'record' ? step.input.settle : []));
  expect(settled).toMatchObject([{ effect: 'turn_0001/c51', entry: { message: { role: 'tool', outcome: 'rejected' } } }]);
  expect(slotsOf(state.context).length).toBe(1 + 51 * 2);
});

test('an interrupt stops what is in flight and keeps what the model had completed', () => {
  const { state, input } = thinking();
  const stopping = apply(state, { kind: 'interrupt-requested', reason: null, at: 2000 });
  expect(nextStep(stopping)).toEqual({ kind: 'stop', children: [] });
  const told = apply(stopping, { kind: 'stop-sent', at: 2001 });
  expect(nextStep(told)).toMatchObject({ kind: 'wait', until: 3501 });
  const stopped = apply(told, { kind: 'model-answered', answer: answer(input, { stop: 'interrupted' }), at: 2300 });
  expect(stopped.ended[0]).toMatchObject({ stopReason: 'interrupted', answerSlot: 2 });
  expect(slotsOf(stopped.context)).toEqual([1, 2]);
});

test('what does not stop within the grace is fenced, and its late answer is dropped but paid', () => {
  const { state, input } = thinking();
  const gone = applyAll(
    state,
    { kind: 'interrupt-requested', reason: null, at: 2000 },
    { kind: 'stop-sent', at: 2000 },
    { kind: 'time-passed', at: 3500 },
  );
  expect(gone.turn).toBeNull();
  expect(nextStep(gone)).toMatchObject({ kind: 'record', input: { settle: [{ effect: input.call, entry: null }] } });
  const late = apply(gone, { kind: 'model-answered', answer: answer(input), at: 9000 });
  expect(slotsOf(late.context)).toEqual([1]);
  expect(late.usage.inputTokens).toBe(10);
});

test('an interrupt among tools tells the model which were cancelled before they started and which were interrupted', () => {
  const { state, input } = thinking();
  let now = apply(state, {
    kind: 'model-answered',
    answer: asking(input, 20, { local: false, repeatable: false, timeoutMs: 1 }),
    at: 1003,
  });
  const step = nextStep(now);
  if (step.kind !== 'run-tools') throw new Error(step.kind);
  now = applyAll(
    now,
    { kind: 'tools-started', callIds: step.runs.map(({ input }) => input.callId), at: 1004 },
    { kind: 'tool-finished', result: finished(step.runs[0]!.input), at: 1005 },
    { kind: 'interrupt-requested', reason: null, at: 1006 },
    { kind: 'stop-sent', at: 1006 },
    { kind: 'time-passed', at: 2600 },
  );
  const outcomes = now.outbox.settle.map(({ entry }) => (entry?.message.role === 'tool' ? entry.message.outcome : entry));
  expect(outcomes).toEqual([...Array<string>(15).fill('unknown'), ...Array<string>(4).fill('cancelled')]);
  expect(slotsOf(now.context).length).toBe(22);
});

test('an interrupt before the turn has begun ends it as it begins', () => {
  const waiting = applyAll(open(), said('a'), { kind: 'interrupt-requested', reason: null, at: 1001 });
  const { state } = settle(waiting);
  expect(state.ended).toMatchObject([{ number: 1, stopReason: 'interrupted' }]);
});

test('a passing failure is waited out with growing pauses, shown, and ends the turn only after many', () => {
  let { state, input } = thinking();
  const failure = { type: 'overloaded', message: '529', transient: true };
  state = apply(state, { kind: 'model-call-failed', call: input.call, failure, at: 2000 });
  expect(statusOf(state, 0)).toMatchObject({
    phase: 'waiting-to-retry',
    waitingFor: 'overloaded: 529; trying again at 1970-01-01T00:00:04.000Z',
  });
  let tries = 0;
  for (; state.turn; tries++) {
    const { state: quiet, steps } = settle(state);
    const wait = steps.at(-1)!;
    if (wait.kind !== 'wait' || wait.until === undefined) throw new Error(JSON.stringify(wait));
    state = applyAll(
      quiet,
      { kind: 'time-passed', at: wait.until },
      { kind: 'model-call-started', call: input.call, at: wait.until },
      { kind: 'model-call-failed', call: input.call, failure, at: wait.until },
    );
  }
  expect(tries).toBeGreaterThan(20);
  expect(state.ended[0]).toMatchObject({ stopReason: 'failed', error: { type: 'overloaded' } });
});

test('a wait that the provider asked for is kept, and an interrupt ends it at once', () => {
  const { state, input } = thinking();
  const waiting = apply(state, {
    kind: 'model-call-failed',
    call: input.call,
    failure: { type: 'rate-limit', message: '429', transient: true, retryAfterMs: 3_600_000 },
    at: 2000,
  });
  expect(nextStep(settle(waiting).state)).toMatchObject({ kind: 'wait', until: 3_602_000 });
  expect(apply(waiting, { kind: 'interrupt-requested', reason: null, at: 3000 }).ended[0]).toMatchObject({ stopReason: 'interrupted' });
});

test('a failure that will not pass ends the turn with its reason, and the next message is answered', () => {
  const { state, input } = thinking();
  const failed = apply(state, {
    kind: 'model-call-failed',
    call: input.call,
    failure: { type: 'auth', message: 'no', transient: false },
    at: 2000,
  });
  expect(failed.ended[0]).toMatchObject({ stopReason: 'failed', error: { type: 'auth', message: 'no' } });
  expect(settle(apply(failed, said('b'))).state.ended[1]).toMatchObject({ stopReason: 'end' });
});

test('a reset stops the running turn when it is next, and what comes after it is a clean session', () => {
  const { state, input } = thinking();
  const asked = applyAll(state, { kind: 'reset-requested', resetId: 'r', at: 2000 }, said('b'));
  expect(nextStep(asked)).toMatchObject({ kind: 'stop' });
  const stopped = applyAll(
    asked,
    { kind: 'stop-sent', at: 2000 },
    { kind: 'model-answered', answer: answer(input, { stop: 'interrupted' }), at: 2001 },
  );
  const { state: after } = settle(stopped);
  expect(after.session).toBe(2);
  expect(after.resets).toMatchObject([{ resetId: 'r', result: { session: 2, reply: 'Session cleared.', consolidation: 'model' } }]);
  expect(slotsOf(after.context)).toEqual([3, 4]);
  expect(after.ended.map((turn) => turn.stopReason)).toEqual(['interrupted', 'end']);
});

test('adjacent resets are one, and a reset of an empty session changes nothing', () => {
  const empty = apply(open(), { kind: 'reset-requested', resetId: 'r0', at: 1 });
  expect(empty).toMatchObject({ session: 1, queue: [], resets: [{ resetId: 'r0', result: { session: 1 } }] });
  const { state } = thinking();
  const twice = applyAll(state, { kind: 'reset-requested', resetId: 'r1', at: 2 }, { kind: 'reset-requested', resetId: 'r2', at: 3 });
  expect(twice.queue).toMatchObject([{ resetIds: ['r1', 'r2'] }]);
});

test('a steering message joins the running turn at the tool border and is answered by its end', () => {
  let first = true;
  const { state, input } = thinking();
  const steered = applyAll(state, said('s', { delivery: 'steer' }), { kind: 'model-answered', answer: asking(input, 1), at: 1003 });
  const { state: after, steps } = settle(steered, {
    model: (next) => {
      expect(first).toBe(true);
      first = false;
      expect(slotsOf(next.context)).toEqual([1, 2, 4, 3]);
      return answer(next);
    },
  });
  expect(steps.map((step) => step.kind)).toEqual(['run-tools', 'record', 'call-model', 'wait']);
  expect(turnOfMessage(after, 's')).toBe('turn_0001');
  expect(after.turnsEnded).toBe(1);
});

test('an unused steering message becomes the next turn', () => {
  const { state, input } = thinking();
  const { state: after } = settle(
    applyAll(state, said('s', { delivery: 'steer' }), { kind: 'model-answered', answer: answer(input), at: 1003 }),
  );
  expect(turnOfMessage(after, 's')).toBe('turn_0002');
  expect(after.turnsEnded).toBe(2);
});

test('a message with delivery "interrupt" stops the turn and goes first', () => {
  const { state, input } = thinking();
  const cut = applyAll(state, said('b'), said('c', { delivery: 'interrupt' }));
  expect(cut.turn?.stopping).not.toBeNull();
  const { state: after } = settle(
    applyAll(
      cut,
      { kind: 'stop-sent', at: 1 },
      { kind: 'model-answered', answer: answer(input, { blocks: [], stop: 'interrupted' }), at: 2 },
    ),
  );
  expect(after.ended.map((turn) => turn.number)).toEqual([1, 3, 2]);
});

test('an answer that the store did not take is persisted before the next model call', () => {
  const { state, input } = thinking();
  const { steps } = settle(applyAll(state, said('b'), { kind: 'model-answered', answer: answer(input, { persisted: false }), at: 1003 }));
  const kinds = steps.map((step) => step.kind);
  expect(kinds.indexOf('persist')).toBeGreaterThanOrEqual(0);
  expect(kinds.indexOf('persist')).toBeLessThan(kinds.indexOf('call-model'));
});

test('a due hand-over waits for what is in flight and starts nothing new', () => {
  const { state, input } = thinking('a', 'b');
  const due = apply(state, { kind: 'hand-over-due', reason: 'events', at: 2000 });
  expect(nextStep(due).kind).toBe('wait');
  const answered = apply(due, { kind: 'model-answered', answer: asking(input, 3), at: 2001 });
  expect(nextStep(answered)).toEqual({ kind: 'hand-over', reason: 'events' });
  const { state: after } = settle(apply(answered, { kind: 'run-continued', at: 2002 }), {
    model: (next) => answer(next),
  });
  expect(after.ended.map((turn) => turn.stopReason)).toEqual(['end', 'end']);
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
  const state = apply(open(), said('a'));
  const step = nextStep(state);
  if (step.kind !== 'record') throw new Error(step.kind);
  const unusable = recorded(step.input, { configured: { kind: 'unusable', type: 'unknown-agent', message: 'no agent x' } });
  const failed = applyAll(state, { kind: 'record-started', at: 1 }, { kind: 'recorded', recorded: unusable, at: 1 });
  expect(failed.ended).toMatchObject([{ stopReason: 'failed', error: { type: 'unknown-agent', message: 'no agent x' } }]);
  expect(settle(apply(failed, said('b'))).state.ended[1]).toMatchObject({ stopReason: 'end' });
});

test('a message id that only the store remembers is answered by its earlier turn', () => {
  const state = apply(open(), said('old'));
  const step = nextStep(state);
  if (step.kind !== 'record') throw new Error(step.kind);
  const message = { ...recorded(step.input).messages[0]!, duplicate: 'turn_0042' };
  const known = applyAll(
    state,
    { kind: 'record-started', at: 1 },
    { kind: 'recorded', recorded: { ...recorded(step.input), messages: [message] }, at: 1 },
  );
  expect(known.queue).toEqual([]);
  expect(known.turn).toBeNull();
  expect(turnOfMessage(known, 'old')).toBe('turn_0042');
});

test('a store that is away is tried again with growing pauses and loses nothing', () => {
  let state = apply(open(), said('a'));
  const failure = { type: 'StoreUnavailable', message: 'redis closed', transient: true };
  for (const at of [2000, 4000, 8000]) {
    expect(nextStep({ ...state, now: at }).kind).toBe('record');
    state = applyAll(state, { kind: 'record-started', at }, { kind: 'record-failed', failure, at });
    expect(nextStep(state)).toMatchObject({ kind: 'wait', why: 'the store' });
  }
  expect(statusOf(state, 0).phase).toBe('waiting-to-retry');
  expect(settle(apply(state, { kind: 'time-passed', at: 100_000 })).state.turnsEnded).toBe(1);
});

test('a message that waits behind hundreds of others is still known by its id', () => {
  const { state } = thinking('first');
  const many = Array.from({ length: 300 }, (_, i) => said(`other-${i}`));
  const crowded = applyAll(state, said('mine'), said('steering', { delivery: 'steer' }), ...many);
  expect(crowded.seen.some(([id]) => id === 'mine')).toBe(false);
  expect(turnOfMessage(crowded, 'first')).toBe('turn_0001');
  expect(turnOfMessage(crowded, 'mine')).toBe('turn_0002');
});
