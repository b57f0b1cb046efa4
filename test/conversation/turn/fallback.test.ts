/** An agent's list of models: which one is asked next is state, and what a failure of one leaves behind. */
import { apply } from '../../../src/conversation/apply.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { statusOf } from '../../../src/conversation/views/view.js';
import { attributesDue } from '../../../src/conversation/attributes.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import type { ModelStepInput, ModelStepResult } from '../../../src/conversation/turn/model-step-effects.js';
import type { StepFailure } from '../../../src/conversation/outbox/writes.js';
import type { AgentSettings } from '../../../src/conversation/state/settings.js';
import {
  answered,
  asking,
  finished,
  interrupted,
  notAnswered,
  open,
  QUICK,
  rode,
  said,
  settle,
  SETTINGS,
  STORE_AWAY,
  stored,
  take,
  type Taken,
} from '../drive.js';

const LIST = ['anthropic/first', 'openai/second', 'gemini/third'];
const OVERLOADED: StepFailure = { type: 'overloaded', message: '529', transient: true };

/** As a worker finds them: for the model that the step asks for, with those of the list after it. */
function settingsFor({ configure }: ModelStepInput): AgentSettings {
  const model = configure?.fallback ?? configure?.model ?? LIST[0] ?? '';
  const list = configure?.model ? {} : { fallback: { first: LIST[0] ?? '', next: LIST.slice(LIST.indexOf(model) + 1), tries: 2 } };
  return { ...SETTINGS, hash: model, model, ...list };
}

function withSettings(input: ModelStepInput): Partial<Pick<ModelStepResult, 'configured'>> {
  return input.configure ? { configured: { kind: 'settings', settings: settingsFor(input) } } : {};
}

const step = (input: ModelStepInput): ModelStepResult => answered(input, { model: settingsFor(input).model }, withSettings(input));
const fail = ({ state, input, done }: Taken<'model-step'>, failure: StepFailure = OVERLOADED): ConversationState =>
  apply(state, done(notAnswered(input, failure, withSettings(input))));
const idle = (): ConversationState => settle(apply(open(), said('m1')), { step }).state;
const asked = (state: ConversationState = idle(), id = 'm2'): Taken<'model-step'> => take(apply(state, said(id)), 'model-step');

test.each(['rate-limit', 'overloaded', 'server', 'connection', 'timeout', 'broken-stream'])(
  'after %s the next model is asked at once, in a call of its own, and the one before is fenced',
  (type) => {
    const first = asked();
    const state = fail(first, { ...OVERLOADED, type, retryAfterMs: 3_600_000 });
    const second = take(state, 'model-step');
    expect(second.input.configure).toMatchObject({ model: null, fallback: 'openai/second' });
    expect(second.input.call).toMatchObject({ id: 'turn_0002/m2', slot: first.input.call.slot + 1 });
    expect(second.input.write.settle).toEqual([{ effect: 'turn_0002/m1', entry: null }]);
    expect(second.input.write.feed.map(({ event }) => event)).toEqual([
      expect.objectContaining({
        kind: 'fallback',
        call: 'turn_0002/m1',
        model: 'openai/second',
        insteadOf: 'anthropic/first',
        reason: type,
      }),
    ]);
    expect(statusOf(second.state, 0)).toMatchObject({ model: 'openai/second', fallback: { model: 'openai/second', turn: 'turn_0002' } });
  },
);

test.each(['auth', 'billing', 'forbidden', 'not-found', 'invalid-request', 'missing-key', 'processor-failed'])(
  '%s would meet another model too: the turn fails',
  (type) => {
    const state = fail(asked(), { type, message: '4xx', transient: false });
    expect(state.turn).toBeNull();
    expect(state.ended.at(-1)).toMatchObject({ stopReason: 'failed', error: { type } });
  },
);

test('a prompt that is too long is made shorter for the same model', () => {
  const state = fail(asked(), { type: 'context-full', message: '400', transient: false });
  expect(state.compaction.forced).toMatchObject({ type: 'context-full' });
  expect(state.turn?.fallback).toBeUndefined();
});

test('a store that is away, or a worker that died, says nothing of the model', () => {
  expect(fail(asked(), STORE_AWAY).turn?.fallback).toBeUndefined();
  const lost = asked();
  expect(apply(lost.state, lost.failed({ type: 'timeout', message: 'no sign of life', transient: true })).turn?.fallback).toBeUndefined();
});

test('the model that answered stays for the turn, is named in its result, and the next turn begins with the first', () => {
  const second = take(fail(asked()), 'model-step');
  const calling = asking(second.input, 1);
  const tool = take(apply(second.state, second.done(answered(second.input, calling, withSettings(second.input)))), 'run-tool');
  const third = take(apply(tool.state, tool.done(finished(tool.input))), 'model-step');
  expect(third.input).toMatchObject({ configure: null, settings: { model: 'openai/second' } });
  expect(third.input.call.soFar?.fallback).toEqual({ model: 'openai/second', insteadOf: 'anthropic/first', reason: 'overloaded' });
  const ended = apply(third.state, third.done(answered(third.input)));
  expect(ended.ended.at(-1)).toMatchObject({ stopReason: 'end', fallback: { model: 'openai/second', reason: 'overloaded' } });
  // Who looks now reads who answered last, and who answers next.
  expect(statusOf(ended, 0)).toMatchObject({ model: 'anthropic/first', fallback: { turn: 'turn_0002' } });
  const next = asked(ended, 'm3');
  expect(next.input.configure).not.toHaveProperty('fallback');
  const after = settle(apply(ended, said('m3')), { step }).state;
  expect(after.ended.at(-1)).not.toHaveProperty('fallback');
  expect(statusOf(after, 0)).not.toHaveProperty('fallback');
});

test('lists are not told of each change there and back, which would be an event each', () => {
  const registered: ConversationState = {
    ...idle(),
    attributes: { known: 'registered', upserted: { status: 'running', turns: 1, model: 'anthropic/first' } },
  };
  const { state } = take(fail(asked(registered)), 'model-step');
  expect(attributesDue(state)).toBeUndefined();
});

test('what waits to be told to a model that takes less may be made shorter for it, though it was for the one before', () => {
  const first = asked();
  const noted = { ...first.state, turn: first.state.turn && { ...first.state.turn, deferred: ['compaction' as const] } };
  expect(fail({ ...first, state: noted }).turn?.deferred).toEqual([]);
});

test('once all have failed it waits for the first of them that may be asked again, and begins the list anew', () => {
  const second = take(fail(asked(), { ...OVERLOADED, retryAfterMs: 9_000 }), 'model-step');
  const third = take(fail(second, { ...OVERLOADED, retryAfterMs: 7_000 }), 'model-step');
  const failedAt = third.state.now;
  const waiting = settle(fail(third, { ...OVERLOADED, retryAfterMs: 3_600_000 })).state;
  expect(nextStep(waiting)).toMatchObject({ kind: 'wait', until: failedAt + 7_000 });
  expect(statusOf(waiting, 0)).toMatchObject({ phase: 'waiting-to-retry', model: 'anthropic/first' });
  const again = take(apply(waiting, { kind: 'time-passed', at: waiting.now + 7_000 }), 'model-step');
  expect(again.input.configure).not.toHaveProperty('fallback');
  const done = apply(again.state, again.done(step(again.input)));
  expect(done.ended.at(-1)).toMatchObject({ stopReason: 'end' });
  expect(done.ended.at(-1)).not.toHaveProperty('fallback');
});

test('models that never answer end the turn, after as many rounds as one model would have', () => {
  let state = apply(idle(), said('m2'));
  let calls = 0;
  for (; state.ended.length === 1; calls++) {
    const one = nextStep(state);
    if (one.kind === 'effect' && one.effect === 'store-step') {
      const store = take(state, 'store-step');
      state = apply(store.state, store.done(stored(store.input)));
    } else if (one.kind === 'wait') state = apply(state, { kind: 'time-passed', at: one.until ?? 0 });
    else state = fail(take(state, 'model-step'));
    expect(calls).toBeLessThan(500);
  }
  expect(state.ended.at(-1)).toMatchObject({ stopReason: 'failed', error: { type: 'overloaded' } });
  expect(state.turn).toBeNull();
});

test('tools that rode on the call that failed are not run again, and those that did not ride on the next', () => {
  const first = asked();
  const two = asking(first.input, 2, QUICK);
  const riding = take(apply(first.state, first.done(answered(first.input, two, withSettings(first.input)))), 'model-step');
  const [done] = rode(riding.input);
  const failed = notAnswered(riding.input, OVERLOADED, { tools: done ? [done] : [] });
  const second = take(apply(riding.state, riding.done(failed)), 'model-step');
  expect(second.input.tools.map(({ callId }) => callId)).toEqual(['turn_0002/c2']);
  expect(second.input.configure).toMatchObject({ fallback: 'openai/second' });
});

test('a stop while it falls over ends the turn, and what was tried is fenced', () => {
  const second = take(fail(asked()), 'model-step');
  const state = interrupted(second.state.now).reduce(apply, second.state);
  const ended = apply(state, second.done(answered(second.input, { stop: 'interrupted', blocks: [] }, withSettings(second.input))));
  expect(ended.turn).toBeNull();
  expect(ended.ended.at(-1)).toMatchObject({ stopReason: 'interrupted' });
  const between = interrupted(1).reduce(apply, fail(asked()));
  expect(between.ended.at(-1)).toMatchObject({ stopReason: 'interrupted' });
});

test('a model that a person chooses answers alone, also in the middle of a fallback', () => {
  const second = take(fail(asked()), 'model-step');
  const chosen = apply(second.state, { kind: 'model-set', model: 'x/chosen', at: 9 });
  expect(statusOf(chosen, 0)).toMatchObject({ model: 'x/chosen' });
  // The call in flight is still the second's, and its failure sends the turn to no third one.
  const failed = apply(chosen, second.done(notAnswered(second.input, OVERLOADED, withSettings(second.input))));
  expect(failed.turn?.fallback).toBeUndefined();
  const again = take(apply(failed, { kind: 'time-passed', at: failed.now + 60_000 }), 'model-step');
  expect(again.input.configure).toMatchObject({ model: 'x/chosen' });
  expect(again.input.configure).not.toHaveProperty('fallback');
  const waits = apply(again.state, again.done(notAnswered(again.input, OVERLOADED, withSettings(again.input))));
  expect(statusOf(waits, 0)).toMatchObject({ phase: 'waiting-to-retry', model: 'x/chosen' });
});

test('a model that the list has lost meanwhile is not said to have answered', () => {
  const second = take(fail(asked()), 'model-step');
  const settings = { ...settingsFor(second.input), model: 'anthropic/first', hash: 'edited' };
  const state = apply(second.state, second.done(answered(second.input, {}, { configured: { kind: 'settings', settings } })));
  expect(state.ended.at(-1)).not.toHaveProperty('fallback');
});
