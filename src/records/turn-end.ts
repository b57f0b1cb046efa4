/** How turns end: without a whole answer, by a failure, and which of that programs outside are told. */

export const UNFINISHED = ['end', 'interrupted', 'tool-limit', 'budget', 'refused', 'failed'] as const;

/** How a turn ended that has no whole answer. */
export interface TurnEnd {
  readonly v: 1;
  readonly turn: string;
  /** `end` has an `error` too: an answer that was cut. */
  readonly stopReason: (typeof UNFINISHED)[number];
  readonly error?: { readonly type: string; readonly message: string };
}

/** UTF-16 units of a message: it says what to do in its first sentences. */
export const MAX_ERROR = 2_000;

/** `turn_9999` is before `turn_10000`. */
export function byTurn(a: Pick<TurnEnd, 'turn'>, b: Pick<TurnEnd, 'turn'>): number {
  return a.turn.length - b.turn.length || (a.turn < b.turn ? -1 : a.turn > b.turn ? 1 : 0);
}

/**
 * What webhooks are sent (docs/reference/protocols.md, Webhooks). `turn.finished`: also one that was interrupted or reached a limit; its
 * stop reason says so. `turn.failed`: one that an error ended. `budget.reached`: a tenant has used so much of its budget.
 */
export const WEBHOOK_EVENTS = ['turn.finished', 'turn.failed', 'approval.waiting', 'question.waiting', 'budget.reached'] as const;

export type WebhookEventType = (typeof WEBHOOK_EVENTS)[number];

/** Type of the failure of an attempt whose worker has ended, or has lost its lease. Another attempt goes on. */
export const WORKER_LOST = 'worker-lost';
/** Its words: of what takes over, and of the worker itself where that finds out. The timeline knows a worker's death by them. */
export const WORKER_ENDED = 'its worker ended in the middle of it';
export const LEASE_ENDED = 'the lease of this worker has ended, and another one goes on with this';

/** The failures that may pass by themselves, by the type an `ApplicationFailure` carries. The workflow retries these and shows the rest. */
const TRANSIENT: readonly string[] = [
  'rate-limit',
  'overloaded',
  'server',
  'connection',
  'timeout',
  'broken-stream',
  'worker-shutdown',
  WORKER_LOST,
  'traces-lost',
  'StoreUnavailable',
];

export function isTransient(type: string): boolean {
  return TRANSIENT.includes(type);
}

/** Two workers stood still in a piece of work, or ended in the middle of it; a third one would too. */
export const HUNG_WORKER = 'hung-worker';

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
