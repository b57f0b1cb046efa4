/** The one place where an error of the product becomes Temporal's: its type, whether Temporal tries again, and when. */
import { ApplicationFailure, TemporalFailure } from '@temporalio/common';
import { isTransient, LONG_WAIT_MS } from '../records/turn-end.js';
import { ProcessorFailed } from '../memory/processors.js';
import { ModelFailure, ModelInterrupted } from '../models/model.js';
import { DocumentRefused, LifeDeleted, StoreUnavailable } from '../stores/store.js';
import { errorMessage } from '../platform/errors.js';
import type { KnownSecrets } from '../platform/known-secrets.js';

export { isTransient, LONG_WAIT_MS };

/** In the details of a failure. */
export interface FailureDetails {
  /** Where the wait is too long to be spent out of sight. */
  readonly retryAfterMs?: number;
  /** Of HTTP, where a provider refused a request. */
  readonly status?: number;
}

/** The server keeps 4 KiB of a failure's text. */
const MAX_MESSAGE = 2_000;

/**
 * Temporal's failures pass through as they are: a cancellation must stay one. `longWaitMs`: as LONG_WAIT_MS, of an effect that takes its
 * time.
 */
export function toApplicationFailure(error: unknown, longWaitMs = LONG_WAIT_MS): TemporalFailure {
  if (error instanceof TemporalFailure) return error;
  if (error instanceof ModelFailure) return failure(error.kind, error.message, { longWaitMs, ...error.options });
  if (error instanceof ModelInterrupted) return failure('interrupted', error.message);
  if (error instanceof ProcessorFailed) return failure('processor-failed', error.message);
  if (error instanceof StoreUnavailable) return failure('StoreUnavailable', error.message);
  if (error instanceof LifeDeleted) return failure('deleted', error.message);
  if (error instanceof DocumentRefused) return failure('bad-memory', error.message);
  return failure('internal', errorMessage(error));
}

function failure(
  type: string,
  message: string,
  { retryAfterMs, status, longWaitMs = LONG_WAIT_MS }: FailureDetails & { readonly longWaitMs?: number } = {},
): ApplicationFailure {
  const transient = isTransient(type);
  const long = transient && retryAfterMs !== undefined && retryAfterMs > longWaitMs;
  const created = ApplicationFailure.create({
    type,
    message: message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message,
    nonRetryable: !transient || long,
    // 0 would mean at once and for ever: then the policy's backoff is better.
    ...(transient && !long && retryAfterMs && { nextRetryDelay: retryAfterMs }),
    ...((long || status !== undefined) && {
      details: [{ ...(long && { retryAfterMs }), ...(status !== undefined && { status }) } satisfies FailureDetails],
    }),
  });
  // History is read by people and kept for long: it shows what went wrong, not where our files lie.
  created.stack = '';
  return created;
}

/** The same failure: its words, its details and what caused it, which history keeps too. */
export function failureWithoutSecrets<Failure extends Error>(failure: Failure, secrets: KnownSecrets): Failure {
  for (let at: unknown = failure; at instanceof Error; at = at.cause) {
    at.message = secrets.redact(at.message);
    at.stack = secrets.redact(at.stack ?? '');
    if (at instanceof ApplicationFailure && at.details) Object.assign(at, { details: secrets.redactIn(at.details) });
  }
  return failure;
}
