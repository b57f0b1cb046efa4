/** What a person has allowed for good in a conversation: for which calls it counts, for how long, and what it is never more than. */
import { apply } from '../../../src/conversation/apply.js';
import type { ToolPlan } from '../../../src/conversation/turn/model-step-effects.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { readDecision, readChildNews } from '../../../src/conversation/protocol/human-input.js';
import { readCarriedState } from '../../../src/conversation/opening.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { approvalsOf, decisionRefusal } from '../../../src/conversation/turn/approvals.js';
import { statusOf } from '../../../src/conversation/views/view.js';
import { answered, askingFor, finished, isEffect, open, ORDINARY, said, settle, take } from '../drive.js';

const asks = (same?: string): ToolPlan => ({
  ...ORDINARY,
  approval: { policy: 'ask', expiresMs: 60_000, ...(same !== undefined && { same }) },
});
const ALWAYS = { callId: 'turn_0001/c1', decision: 'approve', always: true } as const;

/** The model asks for these, in one answer of a turn of its own. */
function round(before: ConversationState, message: string, ...plans: ToolPlan[]): ConversationState {
  const { state, input, done } = take(apply(before, said(message)), 'model-step');
  return apply(state, done(answered(input, askingFor(input, plans))));
}

const waiting = (state: ConversationState): string[] => approvalsOf(state).map(({ callId }) => callId);
const allowed = (): ConversationState => apply(round(open(), 'a', asks('s1')), { kind: 'decided', decision: ALWAYS, at: 2_000 });

function ended(state: ConversationState): ConversationState {
  return settle(state, { tool: (run) => finished(run) }).state;
}

test('the same call runs without asking from then on, and says so to its run', () => {
  const next = round(ended(allowed()), 'b', asks('s1'));
  expect(waiting(next)).toEqual([]);
  const step = nextStep(next);
  expect(isEffect(step, 'run-tool') && step.input.person).toEqual({ standing: true });
  expect(statusOf(next, 0).allowedCalls).toEqual([{ tool: 'tool', target: '', callId: 'turn_0001/c1' }]);
});

test('the first time it ran by the person’s own word', () => {
  const step = nextStep(allowed());
  expect(isEffect(step, 'run-tool') && step.input.person).toBeUndefined();
});

test.each([['another'], [undefined]])('a call that is %s is asked about', (same) => {
  expect(waiting(round(ended(allowed()), 'b', asks(same)))).toEqual(['turn_0002/c1']);
});

test('what the rules deny by now is not run', () => {
  const denied: ToolPlan = { ...ORDINARY, approval: { policy: 'deny', why: 'no' } };
  const state = round(ended(allowed()), 'b', denied);
  expect(state.outbox.settle.map(({ entry }) => entry?.message)).toMatchObject([{ outcome: 'rejected', text: 'Not run: no' }]);
});

test('the same call that waits beside it starts with it, another one goes on waiting', () => {
  const state = apply(round(open(), 'a', asks('s1'), asks('s2'), asks('s1')), { kind: 'decided', decision: ALWAYS, at: 2_000 });
  expect(waiting(state)).toEqual(['turn_0001/c2']);
});

test('an approval without `always` is for once', () => {
  const { always: _, ...once } = ALWAYS;
  const state = ended(apply(round(open(), 'a', asks('s1')), { kind: 'decided', decision: once, at: 2_000 }));
  expect(waiting(round(state, 'b', asks('s1')))).toEqual(['turn_0002/c1']);
});

test('what is asked about each time, and a question, cannot be allowed for good, and nothing happens to them', () => {
  const question: ToolPlan = { ...ORDINARY, workflowAction: { kind: 'ask-person', expiresMs: 60_000 } };
  for (const plan of [asks(), question]) {
    const state = round(open(), 'a', plan);
    expect(approvalsOf(state)[0]).not.toHaveProperty('mayAlways');
    expect(decisionRefusal(state, ALWAYS)).toMatch(/cannot be allowed for good/);
    const after = apply(state, { kind: 'decided', decision: ALWAYS, at: 2_000 });
    expect([after.allowedCalls, waiting(after).length]).toEqual([undefined, 1]);
    expect(after.rejected.count).toBe(1);
  }
  expect(approvalsOf(round(open(), 'a', asks('s1')))[0]).toMatchObject({ mayAlways: true });
});

test('a hand-over carries it, and the session’s end ends it', () => {
  const state = ended(allowed());
  expect(readCarriedState(JSON.parse(JSON.stringify(state)), 'l1')).toMatchObject({ ok: true });
  const carried = apply(state, { kind: 'run-continued', at: 3_000 });
  expect(waiting(round(carried, 'b', asks('s1')))).toEqual([]);
  const cleared = settle(apply(state, { kind: 'reset-requested', resetId: 'r', at: 3_000 })).state;
  expect(cleared.session).toBe(2);
  expect(cleared).not.toHaveProperty('allowedCalls');
  expect(waiting(round(cleared, 'b', asks('s1')))).toEqual(['turn_0002/c1']);
});

test('a conversation of its own begins with nothing allowed', () => {
  expect(open()).not.toHaveProperty('allowedCalls');
});

test('it grows to a hundred calls, and then the oldest is asked about again', () => {
  let state = open();
  for (let i = 1; i <= 101; i++) {
    const turn = `turn_${String(i).padStart(4, '0')}`;
    const asked = round(state, `m${i}`, asks(`s${i}`));
    state = ended(apply(asked, { kind: 'decided', decision: { ...ALWAYS, callId: `${turn}/c1` }, at: asked.now }));
  }
  expect(state.allowedCalls).toHaveLength(100);
  expect(waiting(round(state, 'last', asks('s1'), asks('s101')))).toEqual(['turn_0102/c1']);
});

test.each([
  [{ ...ALWAYS, always: false }],
  [{ ...ALWAYS, always: 'yes' }],
  [{ ...ALWAYS, decision: 'deny' }],
  [{ ...ALWAYS, input: { a: 1 } }],
])('%j is refused', (payload) =>
  expect(readDecision(payload)).toMatchObject({ ok: false, reason: expect.stringContaining('always') as unknown }),
);

test('a decision that says it is read whole, and a sub-agent’s wait shows that it may', () => {
  expect(readDecision(ALWAYS)).toEqual({ ok: true, value: ALWAYS });
  const ask = { ...approvalsOf(round(open(), 'a', asks('s1')))[0], conversation: 'chat:turn_0001:1' };
  const news = readChildNews({ callId: 'turn_0001/c1', kind: 'asks', asks: [ask] });
  expect(news).toMatchObject({ ok: true, value: { asks: [{ mayAlways: true }] } });
  const odd = readChildNews({ callId: 'turn_0001/c1', kind: 'asks', asks: [{ ...ask, mayAlways: 'yes' }] });
  expect(odd).toMatchObject({ ok: false, reason: expect.stringContaining('mayAlways') as unknown });
});
