/** The failures that may pass by themselves, by the type an `ApplicationFailure` carries. The workflow retries these and shows the rest. */
const TRANSIENT: readonly string[] = [
  'rate-limit',
  'overloaded',
  'server',
  'connection',
  'timeout',
  'broken-stream',
  'worker-shutdown',
  'traces-lost',
  'StoreUnavailable',
];

export function isTransient(type: string): boolean {
  return TRANSIENT.includes(type);
}

/** Of a model that cannot answer any request now: another one may. A request that was refused would be refused again. */
const AWAY: readonly string[] = ['rate-limit', 'overloaded', 'server', 'connection', 'timeout', 'broken-stream'];

export function isModelAway(type: string): boolean {
  return AWAY.includes(type);
}

/**
 * The longest wait that a provider may ask for and get inside an activity's retries, where no person sees it.
 * A longer one goes back to the workflow, which shows it and can be stopped.
 */
export const LONG_WAIT_MS = 5_000;

/** Type of the failure of a query that came before the workflow could answer it; the same query again is answered. */
export const ASK_AGAIN = 'AskAgain';
