/** Another model while the conversation runs: when it answers, and what is said of it meanwhile. */
import { apply } from '../../../src/conversation/apply.js';
import { readModelChoice } from '../../../src/conversation/protocol/input.js';
import { attributesDue } from '../../../src/conversation/attributes.js';
import { statusOf } from '../../../src/conversation/views/view.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { answered, asking, finished, notAnswered, open, said, settle, SETTINGS, take } from '../drive.js';

const OTHER = 'openai/other';
const set = (model: string | null) => ({ kind: 'model-set', model, at: 5 }) as const;
const idle = (): ConversationState => settle(apply(open(), said('m1'))).state;
const modelIn = (state: ConversationState): unknown => statusOf(state, 0).model;

test('a model that was chosen is asked for by the next turn, and is the agent’s again with null', () => {
  const chosen = apply(idle(), set(OTHER));
  expect(statusOf(chosen, 0)).toMatchObject({ model: OTHER, chosenModel: OTHER });
  const { input } = take(apply(chosen, said('m2')), 'model-step');
  expect(input.configure).toMatchObject({ model: OTHER });
  const back = apply(chosen, set(null));
  // The settings at hand are those of another model perhaps: nothing is claimed.
  expect(statusOf(back, 0)).toMatchObject({ model: null, chosenModel: null });
  const { state } = settle(apply(back, said('m2')));
  expect(modelIn(state)).toBe(SETTINGS.model);
});

test('chosen while a call runs, it answers from the next call of the same turn on, and the call that runs does not hide that', () => {
  const calling = take(apply(idle(), said('m2')), 'model-step');
  const chosen = apply(calling.state, set(OTHER));
  const after = apply(chosen, calling.done(answered(calling.input, asking(calling.input, 1))));
  expect(after.turn?.isConfigured).toBe(false);
  expect(modelIn(after)).toBe(OTHER);
  // The same while a tool runs, when the turn has read its settings long since.
  const tool = take(apply(calling.state, calling.done(answered(calling.input, asking(calling.input, 1)))), 'run-tool');
  const meanwhile = apply(tool.state, set(OTHER));
  const next = take(apply(meanwhile, tool.done(finished(tool.input))), 'model-step');
  expect(next.input).toMatchObject({ configure: { model: OTHER } });
});

test('a call that waits for a model that fails does not wait for the one that was chosen instead', () => {
  const calling = take(apply(idle(), said('m2')), 'model-step');
  const failure = { type: 'overloaded', message: '529', transient: true, retryAfterMs: 60_000 };
  const waiting = apply(calling.state, calling.done(notAnswered(calling.input, failure)));
  expect(statusOf(waiting, 0)).toMatchObject({ phase: 'waiting-to-retry' });
  const { input } = take(apply(waiting, set(OTHER)), 'model-step');
  expect(input).toMatchObject({ configure: { model: OTHER }, call: { id: calling.input.call.id } });
});

test('lists show the other model once it has answered', () => {
  const registered: ConversationState = {
    ...idle(),
    attributes: { known: 'registered', upserted: { status: 'running', turns: 1, model: 'x/y' } },
  };
  expect(attributesDue(registered)).toMatchObject({ AgentModel: SETTINGS.model });
  const told = apply(registered, { kind: 'attributes-upserted', status: 'running', turns: 1, model: SETTINGS.model, at: 6 });
  expect(attributesDue(told)).toBeUndefined();
});

test.each([
  [{ model: OTHER }, OTHER],
  [{ model: null }, null],
])('%j can be chosen', (payload, value) => expect(readModelChoice(payload)).toEqual({ ok: true, value }));

test.each([
  undefined,
  null,
  'a/b',
  {},
  { model: 'default' },
  { model: 'a b/c' },
  { model: `a/${'x'.repeat(129)}` },
  { model: 7 },
  { model: 'a/b', more: 1 },
])('%j cannot', (payload) =>
  expect(readModelChoice(payload)).toMatchObject({ ok: false, reason: expect.stringContaining('setModel') as unknown }),
);
