/** Which events leave a conversation for webhooks, when, and what its end waits for. */
import { apply } from '../../../src/conversation/apply.js';
import type { EffectOf } from '../../../src/conversation/effect.js';
import { nextStep, type Step } from '../../../src/conversation/next-step.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { WEBHOOK_EVENTS } from '../../../src/records/turn-end.js';
import { applyAll, open, said, SETTINGS } from '../drive.js';

const asks: ConversationState = { ...open(), settings: { ...SETTINGS, webhooks: WEBHOOK_EVENTS } };
/** A turn that was stopped before it called. */
const ended = (state: ConversationState, at = 2_000): ConversationState =>
  applyAll(state, said(`m${at}`), { kind: 'turn-begun', at }, { kind: 'interrupt-requested', reason: null, at });

function deliverStep(step: Step): EffectOf<'deliver'> {
  if (step.kind !== 'effect' || step.effect !== 'deliver') throw new Error(`not a delivery: ${JSON.stringify(step)}`);
  return step as unknown as EffectOf<'deliver'>;
}

function started(state: ConversationState): { readonly state: ConversationState; readonly effect: EffectOf<'deliver'> } {
  const { effect, id, input } = deliverStep(nextStep(state));
  return { state: apply(state, { kind: 'effect-started', effect, id, input, at: 2_000 }), effect: { effect, id, input } };
}

test('a turn that ends is an event where the settings ask for it, and else leaves no trace', () => {
  expect(ended(asks).deliveries).toMatchObject({
    count: 1,
    due: [{ number: 1, kind: 'turn-ended', ended: { stopReason: 'interrupted' } }],
  });
  for (const webhooks of [undefined, ['turn.failed', 'approval.waiting'] as const]) {
    expect(ended({ ...open(), settings: { ...SETTINGS, ...(webhooks && { webhooks }) } })).not.toHaveProperty('deliveries');
  }
});

test('a sub-agent’s turn is none', () => {
  const parent = { conversation: 'chat', life: 'l0', callId: 'turn_0001/c1', depth: 1 };
  expect(ended({ ...asks, parent })).not.toHaveProperty('deliveries');
});

test('an answer that the store does not have yet holds its event back', () => {
  const state = ended(asks);
  const [due] = state.deliveries!.due;
  if (due?.kind !== 'turn-ended') throw new Error('no end');
  const answered = { ...due, ended: { ...due.ended, answerSlot: 7 } };
  const entry = { v: 1, slot: 7, turn: 'turn_0001', seq: 2, ts: 1, message: { role: 'assistant', blocks: [] } } as never;
  const without = { ...state, deliveries: { count: 1, due: [answered] } };
  const owing = { ...without, outbox: { ...state.outbox, entries: [entry] } };
  expect(deliverStep(nextStep(without)).input.events).toEqual([answered]);
  expect(() => deliverStep(nextStep(owing))).toThrow('not a delivery');
});

test('a wait that is over by then is left out, and goes with those before it', () => {
  const state = ended(asks);
  const wait = {
    kind: 'waiting',
    number: 1,
    at: 1,
    turn: 'turn_0001',
    callId: 'c1',
    what: 'approval',
    tool: 'pay',
    hash: '',
    askedIn: 2,
    until: 9,
  } as const;
  const [end] = state.deliveries!.due;
  const both: ConversationState = { ...state, deliveries: { count: 2, due: [wait, { ...end!, number: 2 }] } };
  const { state: running, effect } = started(both);
  expect(effect.input.events.map(({ number }) => number)).toEqual([2]);
  const done = apply(running, { kind: 'effect-completed', effect: 'deliver', id: effect.id, output: undefined, at: 3_000 });
  expect(done.deliveries).toEqual({ count: 2, due: [] });
});
