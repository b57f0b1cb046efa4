/** What an activity's failure means to the conversation. Compared by type, never by class. */
import { ActivityFailure, ApplicationFailure, CancelledFailure, TimeoutFailure } from '@temporalio/common';
import type { StepFailure } from '../conversation/outbox/writes.js';
import { isTransient } from '../records/failure-kinds.js';
import { errorMessage } from '../platform/errors.js';

export function failureOf(error: unknown): StepFailure {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof ApplicationFailure) {
    const type = cause.type ?? 'internal';
    const retryAfterMs = retryAfterIn(cause.details);
    return { type, message: cause.message, transient: isTransient(type), ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  }
  if (cause instanceof TimeoutFailure) {
    const message =
      cause.timeoutType === 'HEARTBEAT'
        ? 'no sign of life from the worker; it may have died'
        : `it took longer than it may (${cause.timeoutType})`;
    return { type: 'timeout', message, transient: true };
  }
  if (cause instanceof CancelledFailure) return { type: 'cancelled', message: 'it was stopped', transient: false };
  return { type: 'internal', message: errorMessage(cause), transient: false };
}

function retryAfterIn(details: readonly unknown[] | null | undefined): number | undefined {
  const [first] = details ?? [];
  const value = typeof first === 'object' && first !== null ? (first as { retryAfterMs?: unknown }).retryAfterMs : undefined;
  return typeof value === 'number' && value >= 0 ? value : undefined;
}
