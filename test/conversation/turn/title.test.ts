/** Titles that nobody has given: once in a life, from the first message, and never over a person's own. */
import { apply } from '../../../src/conversation/apply.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { openConversation, type ConversationState } from '../../../src/conversation/state.js';
import { readCarriedState } from '../../../src/conversation/opening.js';
import { readStart } from '../../../src/conversation/protocol/input.js';
import { detailsOf, statusOf } from '../../../src/conversation/views/view.js';
import { running } from '../../../src/conversation/effect.js';
import type { ModelAnswer } from '../../../src/conversation/turn/model-step-effects.js';
import { answered, notAnswered, open, said, SETTINGS, stored, take, USAGE } from '../drive.js';

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

const TITLES = { kind: 'settings', settings: { ...SETTINGS, titles: 'model' } } as const;

/** After the first turn, whose agent wants a model's title, and before anything is done about it. */
function exchanged(before = open(), more: Partial<ModelAnswer> = {}): ConversationState {
  const { state, input, done } = take(apply(before, said('a')), 'model-step');
  const titled = apply(state, done({ ...answered(input, more), configured: TITLES, title: 'Trip' }));
  return apply(titled, { kind: 'title-upserted', at: 9 });
}

test('where the agent wants it a model makes one of the first exchange: asked once, counted, and told to lists once more', () => {
  const { state, input, done } = take(exchanged(), 'title');
  expect(input).toMatchObject({ turn: 'turn_0001', question: 1, answer: 2, model: SETTINGS.model });
  const made = apply(state, done({ title: 'A journey to Delft', usage: USAGE }));
  expect(made.usage.inputTokens).toBe(2 * USAGE.inputTokens);
  expect(nextStep(made)).toEqual({ kind: 'upsert-title', title: 'A journey to Delft' });
  const told = apply(made, { kind: 'title-upserted', at: 9 });
  expect(told).not.toHaveProperty('betterTitle');
  expect(nextStep(told).kind).toBe('wait');
});

test('the next turn does not wait for it', () => {
  const asked = take(exchanged(), 'title');
  const { state } = take(apply(asked.state, said('b')), 'model-step');
  expect(running(state, 'title')).toBeDefined();
  expect(statusOf(apply(state, asked.done({ title: 'Late', usage: USAGE })), 0).title).toBe('Late');
});

test('a model that fails, or is of no use, leaves the first words, and is not asked again', () => {
  const { state, done, failed } = take(exchanged(), 'title');
  const ends = [failed({ type: 'auth', message: 'no', transient: false }), done({ usage: USAGE })];
  for (const end of ends) {
    const after = apply(state, end);
    expect([statusOf(after, 0).title, nextStep(after).kind]).toEqual(['Trip', 'wait']);
    expect(take(apply(after, said('b')), 'model-step').state).not.toHaveProperty('betterTitle');
  }
});

test('what a person calls it meanwhile stays; what was paid counts', () => {
  const { state, done } = take(exchanged(), 'title');
  const after = apply(apply(state, renamed), done({ title: 'A journey', usage: USAGE }));
  expect([statusOf(after, 0).title, nextStep(after).kind]).toEqual(['Mine', 'wait']);
  expect(after.usage.inputTokens).toBe(2 * USAGE.inputTokens);
  expect(nextStep(apply(exchanged(), renamed)).kind).toBe('wait');
});

test('a reset meanwhile changes nothing about it', () => {
  const asked = take(exchanged(), 'title');
  const reset = apply(asked.state, { kind: 'reset-requested', resetId: 'r1', at: 20 });
  expect(statusOf(apply(reset, asked.done({ title: 'A journey', usage: USAGE })), 0).title).toBe('A journey');
});

test('step by step no model is called that was not asked for: it waits until the conversation goes on by itself', () => {
  const stepping = apply(exchanged(), { kind: 'mode-set', mode: 'stepping', at: 10 });
  expect(nextStep(stepping).kind).toBe('wait');
  expect(take(apply(stepping, { kind: 'mode-set', mode: 'auto', at: 11 }), 'title').input.question).toBe(1);
});

test('it waits for an answer, for the store and for budget, and what is closing asks for none', () => {
  const unanswered = take(exchanged(open(), { blocks: [], stop: 'refusal' }), 'store-step');
  const refused = apply(unanswered.state, unanswered.done(stored(unanswered.input)));
  expect([nextStep(refused).kind, refused.betterTitle]).toEqual(['wait', { slot: 1 }]);
  const unwritten = exchanged(open(), { persisted: false });
  expect(nextStep(unwritten)).toMatchObject({ effect: 'store-step' });
  const spent = apply(exchanged(), { kind: 'budget-raised', budget: { maxTokens: 1 }, at: 10 });
  expect(nextStep(spent).kind).toBe('wait');
  expect(take(apply(spent, { kind: 'budget-raised', budget: { maxTokens: 1_000 }, at: 11 }), 'title').input.answer).toBe(2);
  expect(nextStep(apply(exchanged(), { kind: 'close-requested', at: 10, memory: false })).kind).toBe('finish');
});

test('a hand-over waits for one that runs and carries one that is still to come', () => {
  const due = { kind: 'hand-over-due', reason: 'events', at: 12 } as const;
  const { state, done } = take(exchanged(), 'title');
  const waiting = apply(state, due);
  expect(nextStep(waiting).kind).toBe('wait');
  expect(nextStep(apply(waiting, done({ usage: USAGE }))).kind).toBe('hand-over');
  const carried = readCarriedState(JSON.parse(JSON.stringify(apply(exchanged(), due))), 'l1');
  expect(carried).toMatchObject({ ok: true, value: { betterTitle: { slot: 1 } } });
});
