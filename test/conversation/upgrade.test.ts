/** When a run hands over for another build of the workers, and to which build. */
import { apply } from '../../src/conversation/apply.js';
import { HAND_OVER, handOverReason, nextBuild, openCarried, upgradeMoment } from '../../src/conversation/opening.js';
import { nextStep } from '../../src/conversation/next-step.js';
import type { ConversationState } from '../../src/conversation/state.js';
import { approvalsOf } from '../../src/conversation/turn/approvals.js';
import { answered, applyAll, askingFor, open, ORDINARY, said, settle, take } from './drive.js';

const SHORT = { events: 10, bytes: 10, updates: 0 };
const due = { kind: 'upgrade-due', at: 5_000 } as const;
const reason = (state: ConversationState) => handOverReason(state, SHORT);

function waiting(): ConversationState {
  const { state, input, done } = take(apply(open(), said('a')), 'model-step');
  const asks = { ...ORDINARY, fingerprint: 'f1', approval: { policy: 'ask', expiresMs: 60_000 } } as const;
  return settle(apply(state, done(answered(input, askingFor(input, [asks])), 1003))).state;
}

test('nothing moves that was not told to', () => {
  expect(reason(open())).toBeUndefined();
  expect('upgrade' in open()).toBe(false);
});

test('between turns it moves to the current build', () => {
  const told = apply(open(), due);
  expect(reason(told)).toBe('another build');
  expect(nextBuild(told)).toBe('current');
});

test('a running turn stays, also where it is parked, unless parked ones are to move', () => {
  const { state } = take(apply(open(), said('a')), 'model-step');
  for (const event of [due, { ...due, parked: true } as const]) expect(reason(apply(state, event))).toBeUndefined();
  const parked = waiting();
  expect(approvalsOf(parked)).toHaveLength(1);
  expect(reason(apply(parked, due))).toBeUndefined();
  const moving = apply(apply(parked, { ...due, parked: true }), due);
  expect([reason(moving), nextBuild(moving)]).toEqual(['another build', 'current']);
});

test('a turn that its limits cut goes on where it began', () => {
  const { state } = take(apply(open(), said('a')), 'model-step');
  const moving = apply(state, { ...due, parked: true });
  expect(handOverReason(moving, { ...SHORT, events: HAND_OVER.events })).toBe(`${HAND_OVER.events} events`);
  expect(nextBuild(moving)).toBe('same');
});

test('what a parked turn hands over is what the next run has, approval and hash included, and it is told no more', () => {
  const parked = waiting();
  const moving = applyAll(parked, { ...due, parked: true }, { kind: 'hand-over-due', reason: 'another build', at: 5_001 });
  expect(nextStep(moving)).toEqual({ kind: 'hand-over', reason: 'another build' });
  const carried: unknown = JSON.parse(JSON.stringify(moving));
  const { conversation, identity } = moving;
  const opened = openCarried(carried, { conversation, life: identity.life, rules: 1, at: 5_002 });
  if (!opened.ok) throw new Error(opened.reason);
  expect(approvalsOf(opened.value)).toEqual(approvalsOf(parked));
  expect('upgrade' in opened.value).toBe(false);
  expect(reason(opened.value)).toBeUndefined();
});

test('it is asked before a turn and once nothing goes on; in a turn, of a sub-agent and while it leaves it is not', () => {
  const queued = apply(open(), said('a'));
  expect(upgradeMoment(queued, 'begin-turn')).toBe('before-0');
  expect(upgradeMoment(open(), 'wait')).toBe('after-0');
  expect(upgradeMoment(waiting(), 'wait')).toBeUndefined();
  expect(upgradeMoment(apply(open(), due), 'wait')).toBeUndefined();
  expect(upgradeMoment(apply(open(), { kind: 'hand-over-due', reason: 'x', at: 1 }), 'wait')).toBeUndefined();
  const parent = { conversation: 'p', life: 'l', callId: 'turn_0001/c1', turn: 1 };
  expect(upgradeMoment({ ...open(), parent: parent as never }, 'wait')).toBeUndefined();
});
