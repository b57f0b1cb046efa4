/** When to try again what failed for a passing reason. */
import type { StepFailure } from '../outbox/writes.js';
import type { Retry } from './turn-state.js';
import type { ConversationState } from '../state.js';

const FIRST_MS = 2_000;
const MAX_MS = 60_000;
/** A provider may ask for more; beyond a day an error serves the person better than a wait. */
const MAX_ASKED_MS = 24 * 3_600_000;

/** `attempts` counts this failure too. A delay that the other side requests replaces the doubled one. */
export function retryAfter(failure: StepFailure, attempts: number, at: number): Retry {
  const backoff = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(attempts - 1, 10));
  const delay = failure.retryAfterMs === undefined ? backoff : Math.min(failure.retryAfterMs, MAX_ASKED_MS);
  return { until: at + delay, attempts, failure };
}

const STORE_MAX_MS = 15_000;

/** A store that is back should be noticed soon: from half a second to fifteen. */
export function storeRetryAfter(failure: StepFailure, attempts: number, at: number): Retry {
  return { until: at + Math.min(STORE_MAX_MS, 500 * 2 ** Math.min(attempts - 1, 10)), attempts, failure };
}

export function withRetry(state: ConversationState, of: string, retry: Retry): ConversationState {
  return { ...state, retries: { ...state.retries, [of]: retry } };
}

export function withoutRetry(state: ConversationState, of: string): ConversationState {
  if (!state.retries[of]) return state;
  const { [of]: _over, ...retries } = state.retries;
  return { ...state, retries };
}

/** True until the time at which it is tried again. */
export function isResting(state: Pick<ConversationState, 'retries' | 'now'>, of: string): boolean {
  const retry = state.retries[of];
  return retry !== undefined && state.now < retry.until;
}
