/**
 * What outside asks of a conversation under an id, and how it was answered: one registry, in the state, so that a lost reply, a second
 * sender and a hand-over cost nothing. A step that runs is the lock of stepping/control.ts; it is here once it is answered.
 *
 * @rule conversation/answered-once: A request id is answered once: the same id again, for the same kind of request, changes nothing and gets
 *   the first answer. (test: test/conversation/requests.test.ts)
 * @rule conversation/answers-bounded: Of each kind only the last answers are remembered; what waits for its answer is never forgotten. (test:
 *   test/conversation/requests.test.ts)
 */
import type { CompactionOutcome, ResetResult } from './protocol/contract.js';
import { LIMITS } from './protocol/limits.js';
import type { RewindResult } from './protocol/input.js';
import type { AppEventOutcome, StepResult } from './protocol/stepping.js';
import type { SlotRange } from '../records/slots.js';

/** By kind: what it brings until it is answered, and the answer. */
interface Kinds {
  /** Answered with the number of its turn: on arrival, or when a steering message joins one. */
  readonly message: { readonly pending: object; readonly outcome: number };
  /** Of the application; null: it was accepted. */
  readonly event: { readonly pending: object; readonly outcome: null };
  /** Such an event again, whose sender waits until it is reduced. */
  readonly dispatch: { readonly pending: object; readonly outcome: AppEventOutcome };
  /** The number of the queue's item that carries it out. */
  readonly reset: { readonly pending: { readonly input: number }; readonly outcome: ResetResult | 'withdrawn' };
  /** With slots: these, and nothing else (context/chosen-chunks.ts). */
  readonly compact: { readonly pending: { readonly input?: readonly SlotRange[] }; readonly outcome: CompactionOutcome };
  readonly truncate: { readonly pending: { readonly input?: readonly SlotRange[] }; readonly outcome: CompactionOutcome };
  readonly undo: { readonly pending: object; readonly outcome: CompactionOutcome };
  readonly rewind: { readonly pending: { readonly input: RewindTarget }; readonly outcome: RewindOutcome };
  readonly step: { readonly pending: object; readonly outcome: StepResult };
}

export type RequestKind = keyof Kinds;
export type Outcome<K extends RequestKind> = Kinds[K]['outcome'];

export type PendingRequest<K extends RequestKind = RequestKind> = {
  readonly [P in K]: { readonly kind: P; readonly id: string } & Kinds[P]['pending'];
}[K];

type AnsweredRequest<K extends RequestKind = RequestKind> = {
  readonly [P in K]: { readonly kind: P; readonly id: string; readonly outcome: Outcome<P> };
}[K];

interface RewindTarget {
  readonly to: string;
  /** True: that turn goes too. */
  readonly before?: true;
  /** Sent in place of what goes: it is withdrawn where the rewind fails. */
  readonly messageId?: string;
}

type RewindOutcome =
  | { readonly kind: 'rewound'; readonly result: RewindResult }
  | { readonly kind: 'failed'; readonly type: string; readonly message: string };

/** In the order in which they came, and in which they were answered. */
export interface Requests {
  readonly pending: readonly PendingRequest[];
  readonly answered: readonly AnsweredRequest[];
}

export const NO_REQUESTS: Requests = { pending: [], answered: [] };

/** Answers that are remembered (conversation/answers-bounded). */
const REMEMBERED: Readonly<Record<RequestKind, number>> = {
  message: LIMITS.rememberedIds,
  event: LIMITS.rememberedEvents,
  dispatch: 20,
  reset: 50,
  compact: 16,
  truncate: 16,
  undo: 16,
  rewind: 16,
  step: 16,
};

interface WithRequests {
  readonly requests: Requests;
}

/** Waits for its answer from now on. */
export function request<S extends WithRequests>(state: S, next: PendingRequest): S {
  const { pending, answered } = state.requests;
  return isKnown(state, next.kind, next.id) ? state : { ...state, requests: { pending: [...pending, next], answered } };
}

/** The same answer for all of them, also for those that never waited. */
export function answer<S extends WithRequests, K extends RequestKind>(state: S, kind: K, ids: readonly string[], outcome: Outcome<K>): S {
  const open = ids.filter((id) => outcomeFor(state, kind, id) === undefined);
  return open.length === 0 ? state : { ...state, requests: answeredWith(state.requests, kind, open, outcome) };
}

/** A message's turn may change: the store knows a message from long ago, or one is withdrawn before it has a turn. */
export function assignTurn<S extends WithRequests>(state: S, messageId: string, turn: number): S {
  const { pending, answered } = state.requests;
  const others = answered.filter((one) => !isRequest(one, 'message', messageId));
  return { ...state, requests: answeredWith({ pending, answered: others }, 'message', [messageId], turn) };
}

/** Those that wait, in their order. */
export function pendingRequests<K extends RequestKind>({ requests }: WithRequests, ...kinds: readonly K[]): readonly PendingRequest<K>[] {
  // `kind` says which it is; a generic union does not remember that.
  return requests.pending.filter(({ kind }) => kinds.some((one) => one === kind)) as unknown as readonly PendingRequest<K>[];
}

export function isKnown(state: WithRequests, kind: RequestKind, id: string): boolean {
  return outcomeFor(state, kind, id) !== undefined || isPending(state, kind, id);
}

export function isPending({ requests }: WithRequests, kind: RequestKind, id: string): boolean {
  return requests.pending.some((one) => isRequest(one, kind, id));
}

/** Undefined while it waits, or where it is not remembered. */
export function outcomeFor<K extends RequestKind>({ requests }: WithRequests, kind: K, id: string): Outcome<K> | undefined {
  return (requests.answered.find((one) => isRequest(one, kind, id)) as AnsweredRequest<K> | undefined)?.outcome;
}

function answeredWith<K extends RequestKind>(
  { pending, answered }: Requests,
  kind: K,
  ids: readonly string[],
  outcome: Outcome<K>,
): Requests {
  const news = ids.map((id) => ({ kind, id, outcome }) as unknown as AnsweredRequest);
  const before = answered.filter((one) => one.kind === kind);
  // Answers that come together are remembered together: who waits for them has not looked yet.
  const excess = before.length + news.length - Math.max(REMEMBERED[kind], news.length);
  const forgotten = new Set<AnsweredRequest>(before.slice(0, Math.max(0, excess)));
  return {
    pending: pending.filter((one) => one.kind !== kind || !ids.includes(one.id)),
    answered: [...answered.filter((one) => !forgotten.has(one)), ...news],
  };
}

function isRequest(one: PendingRequest | AnsweredRequest, kind: RequestKind, id: string): boolean {
  return one.kind === kind && one.id === id;
}
