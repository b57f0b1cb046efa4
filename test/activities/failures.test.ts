import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { isTransient, LONG_WAIT_MS, toApplicationFailure } from '../../src/activities/failures.js';
import { ModelFailure, type ModelFailureKind, ModelInterrupted } from '../../src/models/model.js';
import { StoreUnavailable } from '../../src/stores/store.js';

const transient: ModelFailureKind[] = ['rate-limit', 'overloaded', 'server', 'connection', 'timeout', 'broken-stream'];
const lasting: ModelFailureKind[] = [
  'auth',
  'billing',
  'forbidden',
  'not-found',
  'invalid-request',
  'too-large',
  'context-full',
  'missing-key',
];

test.each(transient)('%s may pass: Temporal tries again', (kind) => {
  expect(toApplicationFailure(new ModelFailure(kind, 'why'))).toMatchObject({ type: kind, message: 'why', nonRetryable: false });
});

test.each(lasting)('%s will not pass by itself', (kind) => {
  expect(toApplicationFailure(new ModelFailure(kind, 'why', { retryAfterMs: 2_000 }))).toMatchObject({
    type: kind,
    nonRetryable: true,
    nextRetryDelay: undefined,
    details: undefined,
  });
});

test('a short wait is waited inside the activity’s retries', () => {
  expect(toApplicationFailure(new ModelFailure('rate-limit', 'why', { retryAfterMs: LONG_WAIT_MS }))).toMatchObject({
    nonRetryable: false,
    nextRetryDelay: 5_000,
    details: undefined,
  });
});

test('a longer one goes to the workflow, which shows it', () => {
  expect(toApplicationFailure(new ModelFailure('overloaded', 'why', { retryAfterMs: LONG_WAIT_MS + 1 }))).toMatchObject({
    type: 'overloaded',
    nonRetryable: true,
    nextRetryDelay: undefined,
    details: [{ retryAfterMs: 5_001 }],
  });
});

test('no wait at all leaves the delay to the retry policy', () => {
  expect(toApplicationFailure(new ModelFailure('rate-limit', 'why', { retryAfterMs: 0 }))).toMatchObject({
    nonRetryable: false,
    nextRetryDelay: undefined,
  });
});

test('a store that does not answer may answer later', () => {
  expect(toApplicationFailure(new StoreUnavailable('redis closed'))).toMatchObject({ type: 'StoreUnavailable', nonRetryable: false });
  expect(isTransient('StoreUnavailable')).toBe(true);
});

test('a bug is not tried again, and shows its message but no paths', () => {
  const failure = toApplicationFailure(new TypeError('x is undefined'));
  expect(failure).toMatchObject({ type: 'internal', message: 'x is undefined', nonRetryable: true });
  expect(failure.stack).toBe('');
  expect(failure.cause).toBeUndefined();
});

test('what was thrown without being an error is reported in its words', () => {
  expect(toApplicationFailure('nope')).toMatchObject({ type: 'internal', message: 'nope', nonRetryable: true });
});

test('an interrupted call is not repeated', () => {
  const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 1 };
  expect(toApplicationFailure(new ModelInterrupted([], usage))).toMatchObject({ type: 'interrupted', nonRetryable: true });
});

test('Temporal’s own failures stay what they are', () => {
  const cancelled = new CancelledFailure('stop');
  const failed = ApplicationFailure.nonRetryable('no', 'custom');
  expect(toApplicationFailure(cancelled)).toBe(cancelled);
  expect(toApplicationFailure(failed)).toBe(failed);
});

test('a message fits into what the server keeps', () => {
  expect(toApplicationFailure(new Error('x'.repeat(10_000))).message.length).toBe(2_001);
});
