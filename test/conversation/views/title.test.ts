/** Titles that nobody has given: once in a life, from the first message, and never over a person's own. */
import { apply } from '../../../src/conversation/apply.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { openConversation, type ConversationState } from '../../../src/conversation/state.js';
import { readCarriedState } from '../../../src/conversation/state/carried-state.js';
import { readStart } from '../../../src/conversation/protocol/input.js';
import { detailsOf, statusOf } from '../../../src/conversation/views/view.js';
import { answered, notAnswered, open, said, take } from '../drive.js';

type Start = Parameters<typeof openConversation>[0];
const opened = (more: Partial<Start> = {}): ConversationState =>
  openConversation({
    identity: { life: 'l1', agent: 'a', scope: 's' },
    conversation: 'chat',
    title: null,
    model: null,
    rules: 1,
    at: 1,
    ...more,
  });
const renamed = { kind: 'renamed', title: 'Mine', at: 5 } as const;

/** The first turn of it, whose step has found this title. */
function answeredWith(title: string, before = open(), id = 'a'): ConversationState {
  const { state, input, done } = take(apply(before, said(id)), 'model-step');
  return apply(state, done({ ...answered(input), ...(input.wantsTitle && { title }) }));
}

test('the first message gives it, lists are reported once, and the next turn asks for none', () => {
  const state = answeredWith('Trip');
  expect(statusOf(state, 0).title).toBe('Trip');
  expect(detailsOf(state)).toContain('`Trip`');
  expect(nextStep(state)).toEqual({ kind: 'upsert-title', title: 'Trip' });
  const told = apply(state, { kind: 'title-upserted', at: 9 });
  expect(nextStep(told).kind).toBe('wait');
  expect(take(apply(told, said('b')), 'model-step').input).not.toHaveProperty('wantsTitle');
});

test('a step that fails has written the message all the same, and its title counts', () => {
  const { state, input, done } = take(apply(open(), said('a')), 'model-step');
  const failed = apply(state, done({ ...notAnswered(input, { type: 'overloaded', message: '529', transient: true }), title: 'Trip' }));
  expect(statusOf(failed, 0).title).toBe('Trip');
});

test('a first message that says nothing leaves it to the next', () => {
  const { state, input, done } = take(apply(open(), said('a')), 'model-step');
  const untitled = apply(state, done(answered(input)));
  expect(statusOf(answeredWith('Trip', untitled, 'b'), 0).title).toBe('Trip');
});

test('a person’s own stays, from the start or given meanwhile or later', () => {
  expect(take(apply(opened({ title: 'Mine' }), said('a')), 'model-step').input).not.toHaveProperty('wantsTitle');
  const { state, input, done } = take(apply(open(), said('a')), 'model-step');
  const meanwhile = apply(apply(state, renamed), done({ ...answered(input), title: 'Trip' }));
  expect([statusOf(meanwhile, 0).title, nextStep(meanwhile).kind]).toEqual(['Mine', 'wait']);
  const later = apply(answeredWith('Trip'), renamed);
  expect([statusOf(later, 0).title, nextStep(later).kind]).toEqual(['Mine', 'wait']);
});

test('a one-shot and a sub-agent get none', () => {
  expect(opened({ autoTitle: false })).not.toHaveProperty('autoTitle');
  const delegation = { parent: { conversation: 'p', life: 'l', callId: 'turn_0001/c1', depth: 1 }, task: 'x' };
  expect(opened({ delegation })).not.toHaveProperty('autoTitle');
  expect(readStart({ autoTitle: false })).toMatchObject({ ok: true, value: { autoTitle: false } });
  expect(readStart({ autoTitle: 'no' })).toMatchObject({ ok: false, reason: expect.stringContaining('start.autoTitle') as unknown });
});

test('a life of before, whose state says nothing of it, stays without', () => {
  const { autoTitle: _, ...before } = open();
  expect(take(apply(before, said('a')), 'model-step').input).not.toHaveProperty('wantsTitle');
});

test('a hand-over carries what lists do not know yet', () => {
  const state = answeredWith('Trip');
  expect(readCarriedState(JSON.parse(JSON.stringify(state)), 'l1')).toMatchObject({ ok: true, value: { autoTitle: 'due' } });
});
