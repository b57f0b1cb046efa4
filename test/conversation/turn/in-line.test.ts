/** A call that waits in line for a provider's limit: no failure, however long it takes (turn/line-is-no-failure). */
import { apply } from '../../../src/conversation/apply.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { explainWaiting, statusOf, waitingOf } from '../../../src/conversation/views/view.js';
import type { StepFailure } from '../../../src/conversation/outbox/writes.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { answered, applyAll, interrupted, notAnswered, open, said, settle, stored, take, type Taken } from '../drive.js';

const line = (position: number): StepFailure => ({
  ...{ type: 'rate-limit', transient: true, retryAfterMs: 12_000, isInLine: true },
  message: `${position}th in line for anthropic/claude, about 12 s`,
});
const asked = (): Taken<'model-step'> => take(apply(settle(apply(open(), said('m1'))).state, said('m2')), 'model-step');
const wait = ({ state, input, done }: Taken<'model-step'>, failure = line(9)): ConversationState =>
  apply(state, done(notAnswered(input, failure)));
/** What people are told is written at once; then time passes. */
const told = (state: ConversationState): Taken<'store-step'> => take(state, 'store-step');
const later = (state: ConversationState): ConversationState => ({ ...state, now: Object.values(state.retries)[0]?.until ?? 0 });

test('it waits as long as it is told, and says where it stands', () => {
  const first = asked();
  const state = wait(first);
  expect(statusOf(state, 0).phase).toBe('waiting-to-retry');
  const waiting = waitingOf(state);
  expect(waiting && explainWaiting(waiting)).toMatch(/^rate-limit: 9th in line for anthropic\/claude, about 12 s; trying again at /);
  const news = told(state);
  expect(news.input.write.feed.map(({ event }) => event)).toEqual([
    expect.objectContaining({ kind: 'waiting', reason: 'rate-limit', for: '9th in line for anthropic/claude, about 12 s' }),
  ]);
  const waits = apply(news.state, news.done(stored(news.input)));
  expect(nextStep(waits)).toMatchObject({ kind: 'wait', until: state.now + 12_000 });
  expect(take(later(waits), 'model-step').input.call).toEqual(first.input.call);
});

test('of a short wait no one is told, which would cost a step', () => {
  const state = wait(asked(), { ...line(1), retryAfterMs: 3_000 });
  expect(nextStep(state)).toMatchObject({ kind: 'wait', until: state.now + 3_000 });
});

test('it waits more often than a model may fail, and the answer ends the turn', () => {
  let taken = asked();
  for (let i = 0; i < 60; i++) taken = take(later(wait(taken, { ...line(1), retryAfterMs: 3_000 })), 'model-step');
  expect(taken.input.call).not.toHaveProperty('doubtsReason');
  const ended = apply(taken.state, taken.done(answered(taken.input)));
  expect(ended.ended.at(-1)).toMatchObject({ number: 2, stopReason: 'end' });
  expect(ended.retries).toEqual({});
});

test('a person can stop it', () => {
  const state = wait(asked());
  expect(applyAll(state, ...interrupted(state.now)).ended.at(-1)).toMatchObject({ number: 2, stopReason: 'interrupted' });
});
