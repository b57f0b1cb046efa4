/** Tools that a message brings: its sender runs them, and the conversation waits for what they answer. */
import { apply } from '../../../src/conversation/apply.js';
import type { ToolPlan } from '../../../src/conversation/turn/model-step-effects.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import { readClientTools, readMessage } from '../../../src/conversation/protocol/message.js';
import type { FeedEvent } from '../../../src/conversation/protocol/contract.js';
import { readDecision } from '../../../src/conversation/protocol/human-input.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { readCarriedState } from '../../../src/conversation/opening.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { approvalsOf, decisionRefusal } from '../../../src/conversation/turn/approvals.js';
import { statusOf } from '../../../src/conversation/views/view.js';
import { answered, applyAll, askingFor, interrupted, isEffect, open, ORDINARY, said, take, USAGE } from '../drive.js';

const TOOLS = [{ name: 'look', inputSchema: { type: 'object' } }];
const plan: ToolPlan = { ...ORDINARY, fingerprint: 'f1' };
const ofClient: ToolPlan = { ...plan, workflowAction: { kind: 'ask-client', expiresMs: 60_000 } };
const afterApproval: ToolPlan = { ...ofClient, approval: { policy: 'ask', expiresMs: 60_000 } };

/** The model has asked for these, in one answer, at 1003. */
function round(...plans: ToolPlan[]): ConversationState {
  const { state, input, done } = take(apply(open(), said('a', { tools: TOOLS })), 'model-step');
  return apply(state, done(answered(input, askingFor(input, plans)), 1003));
}

function decided(state: ConversationState, callId: string, more: object, at = 2000): ConversationState {
  return apply(state, { kind: 'decided', decision: { callId, decision: 'approve', ...more }, at } as ConversationEvent);
}

const results = ({ outbox }: ConversationState): unknown[] =>
  outbox.settle.map(({ entry }) => (entry?.message.role === 'tool' ? [entry.message.outcome, entry.message.text] : entry));
const groups = ({ outbox }: ConversationState): unknown[] =>
  outbox.feed.flatMap(({ event }: { event: FeedEvent }) => (event.kind === 'asked' && event.calls ? [event.calls.ids] : []));

test('the tools of a message are those of its turn: each of its model steps names them, the next turn has none', () => {
  const { state, input, done } = take(apply(open(), said('a', { tools: TOOLS })), 'model-step');
  expect(input.write.messages[0]).toMatchObject({ tools: TOOLS });
  expect(input.call.tools).toBeUndefined();
  const waiting = apply(state, done(answered(input, askingFor(input, [ofClient]))));
  const next = take(decided(waiting, 'turn_0001/c1', { output: 'seen' }), 'model-step');
  expect(next.input.call.tools).toBe('tools-1');
  const ended = apply(next.state, next.done(answered(next.input)));
  expect(take(apply(ended, said('b')), 'model-step').input.call.tools).toBeUndefined();
});

test('those of a message that joins a running turn are not taken', () => {
  const { state, input, done } = take(applyAll(open(), said('a'), said('b', { tools: TOOLS, delivery: 'steer' })), 'model-step');
  const joined = apply(state, done(answered(input, askingFor(input, [ORDINARY]))));
  expect(joined.turn?.toolsRef).toBeUndefined();
});

test('a call waits for the client, in status and among what waits', () => {
  const state = round(ofClient);
  expect(approvalsOf(state)).toMatchObject([{ callId: 'turn_0001/c1', kind: 'client-tool', hash: 'f1', expiresAt: 61_003 }]);
  expect(statusOf(state, 0)).toMatchObject({
    phase: 'waiting-for-person',
    waiting: { kind: 'client-tool', callId: 'turn_0001/c1' },
    waitingFor: 'the client: what it answers to tool; until 1970-01-01T00:01:01.003Z',
  });
  const carried = readCarriedState(JSON.parse(JSON.stringify({ ...state, inFlight: [] })), 'l1');
  expect(carried).toMatchObject({ ok: true, value: { turn: { toolsRef: 'tools-1' } } });
});

test('calls that begin to wait together are announced as that, with what the turn has used', () => {
  const state = round(ofClient, plan, ofClient);
  expect(groups(state)).toEqual([['turn_0001/c1', 'turn_0001/c3']]);
  const last = state.outbox.feed.map(({ event }) => event).findLast((event) => event.kind === 'asked');
  expect(last).toMatchObject({ callId: 'turn_0001/c3', what: 'client-tool', calls: { askedIn: 2, usage: USAGE } });
});

test('one that a person must allow first waits for its client from then on, in a group of its own', () => {
  const state = round(ofClient, afterApproval);
  expect(groups(state)).toEqual([['turn_0001/c1']]);
  expect(approvalsOf(state).map(({ kind }) => kind)).toEqual(['client-tool', 'approval']);
  expect(decisionRefusal(state, { callId: 'turn_0001/c2', decision: 'approve', output: 'x' })).toContain('no tool of the client');
  const allowed = decided(state, 'turn_0001/c2', {});
  expect(groups(allowed)).toEqual([['turn_0001/c1'], ['turn_0001/c2']]);
});

test.each([
  ['a text', { output: 'seen' }, ['ok', 'seen']],
  ['JSON', { output: { at: [1, 'ä'] } }, ['ok', '{"at":[1,"ä"]}']],
  ['nothing', { output: '' }, ['ok', '(The tool answered without a word.)']],
  ['an error', { output: 'no such file', isError: true }, ['error', 'no such file']],
  ['a note, as a person types it', { note: 'seen' }, ['ok', 'seen']],
  ['a refusal', { decision: 'deny', note: 'not here' }, ['rejected', 'Not run. They say: not here']],
])('%s is what the model reads', (_, decision, result) => {
  expect(results(decided(round(ofClient), 'turn_0001/c1', decision))).toEqual([result]);
});

test('an answer counts once; one to an unknown call, without an answer, or to what is no tool of the client counts for nothing', () => {
  const state = round(ofClient, { ...plan, workflowAction: { kind: 'ask-person', expiresMs: 60_000 } });
  const refused = (decision: object): string | undefined =>
    decisionRefusal(state, { callId: 'turn_0001/c1', decision: 'approve', ...decision });
  expect(refused({})).toContain('decision.output');
  expect(refused({ output: 'x', input: {} })).toContain('decision.output');
  expect(refused({ output: 'x', hash: 'f2' })).toContain('other arguments');
  expect(refused({ callId: 'turn_0001/c2', output: 'x' })).toContain('no tool of the client');
  expect(refused({ callId: 'turn_0001/c9', output: 'x' })).toContain('does not wait');
  const once = decided(state, 'turn_0001/c1', { output: 'first' });
  const twice = decided(once, 'turn_0001/c1', { output: 'second' });
  expect(results(twice)).toEqual([['ok', 'first']]);
  expect(twice.rejected.last).toMatchObject([{ name: 'decide' }]);
});

test('a client that never comes back is waited for no longer than its time, and whether it ran the tool stays open', () => {
  const late = apply(round(ofClient), { kind: 'time-passed', at: 61_003 });
  expect(results(late)).toEqual([['unknown', 'The client did not answer until 1970-01-01T00:01:01.003Z: whether it ran this is unknown.']]);
  expect(isEffect(nextStep(late), 'model-step')).toBe(true);
});

test.each<[string, ConversationEvent[]]>([
  ['an interrupt', interrupted(2000)],
  ['/new', [{ kind: 'reset-requested', resetId: 'r', at: 2000 }]],
  ['a message that interrupts', [said('b', { delivery: 'interrupt', at: 2000 })]],
])('%s ends the wait, and an answer after it counts for nothing', (_, events) => {
  const stopped = applyAll(round(ofClient), ...events);
  expect(stopped.turn).toBeNull();
  expect(results(stopped)).toEqual([['unknown', 'Interrupted before the client had answered: whether it ran this is unknown.']]);
  expect(decided(stopped, 'turn_0001/c1', { output: 'late' }).outbox.settle).toEqual(stopped.outbox.settle);
});

test('a message that only queues waits for its turn, and the call goes on waiting', () => {
  const state = apply(round(ofClient), said('b', { at: 2000 }));
  expect(approvalsOf(state)).toHaveLength(1);
});

test('answers that the store has not taken do not pile up in the state', () => {
  const calls = Array.from({ length: 12 }, () => ofClient);
  const last = calls.reduce<ConversationState>(
    (state, _, i) => {
      const decision = { callId: `turn_0001/c${i + 1}`, decision: 'approve', output: 'x'.repeat(100_000) } as const;
      return decisionRefusal(state, decision) === undefined ? apply(state, { kind: 'decided', decision, at: 2000 }) : state;
    },
    round(...calls),
  );
  expect(results(last)).toHaveLength(6);
  expect(decisionRefusal(last, { callId: 'turn_0001/c12', decision: 'approve', output: 'x' })).toContain('try again');
});

describe('what comes in', () => {
  const good = { name: 'look', description: 'Looks.', inputSchema: { type: 'object', properties: {} } };
  test('tools of a message are read as they are, and no tools are none', () => {
    expect(readMessage({ text: 'a', tools: [good, { name: 'b', inputSchema: {} }] })).toMatchObject({
      ok: true,
      value: { tools: [good, { name: 'b', inputSchema: { type: 'object' } }] },
    });
    expect(readMessage({ text: 'a', tools: [] })).not.toHaveProperty('value.tools');
    expect(readMessage({ text: '/new', tools: [good] })).toMatchObject({ value: { kind: 'reset' } });
  });

  test.each<[string, unknown, string]>([
    ['no list', {}, 'must be a list'],
    ['too many', Array.from({ length: 65 }, (_, i) => ({ ...good, name: `t${i}` })), 'of at most 64, not a list of 65'],
    ['too much', [{ ...good, description: 'x'.repeat(70_000) }], 'the limit is 65536'],
    ['one without a name', [{ inputSchema: {} }], 'tools[0].name'],
    ['a name that is too long', [{ ...good, name: 'x'.repeat(57) }], 'tools[0].name'],
    ['a name with other characters', [{ ...good, name: 'a b' }], 'tools[0].name'],
    ['two of one name', [good, good], 'two tools of one name'],
    ['a schema of something else', [{ ...good, inputSchema: { type: 'string' } }], 'inputSchema must have the type'],
    ['no schema', [{ name: 'a' }], 'inputSchema'],
    ['unknown fields', [{ ...good, strict: true }], 'strict is not a field'],
    ['one that is too deep', [{ ...good, inputSchema: deep(70) }], 'deeper'],
  ])('%s is refused', (_, tools, why) => {
    expect(readClientTools(tools)).toMatchObject({ ok: false, reason: expect.stringContaining(why) as string });
    expect(readMessage({ text: 'a', tools }).ok).toBe(false);
  });

  test.each<[string, object, string]>([
    ['an answer that is too long', { output: 'x'.repeat(132_000) }, 'the limit is 131072'],
    ['an answer with a refusal', { decision: 'deny', output: 'x' }, 'takes output with "approve"'],
    ['an isError that is none', { output: 'x', isError: 'yes' }, 'isError'],
  ])('%s is refused', (_, more, why) => {
    expect(readDecision({ callId: 'turn_0001/c1', decision: 'approve', ...more })).toMatchObject({
      ok: false,
      reason: expect.stringContaining(why) as string,
    });
  });
});

function deep(levels: number): object {
  return levels === 0 ? {} : { type: 'object', properties: deep(levels - 1) };
}
