/** Observers get what happens in the conversations of a worker, each through a queue. */
import type { ConversationEvent } from '../conversation/event.js';
import type { Notification, StateChange } from '../conversation/views/observation.js';
import { orUndefinedAfter, withTimeout } from '../platform/promises.js';

/** Whose event it is, and what came of it. */
export interface Observed {
  readonly namespace: string;
  readonly conversation: string;
  readonly runId: string;
  /** The seed's notifications that follow from this event: dispatched, reducer executed, state changed, compaction, truncation, step. */
  readonly notifications: readonly Notification[];
  readonly change: StateChange | null;
}

/**
 * Told what happens in the conversations that this worker runs, as it happens, one after the other. Nothing waits for it, what it
 * throws is logged, and one that hangs loses the oldest of what it has not taken. When a worker dies an event may come twice or
 * not at all: the record is the history, this is news.
 */
export type Observer = (event: ConversationEvent, of: Observed) => void | Promise<void>;

/** What follows from an event, in the seed's steps; none, one or several. */
export function toNotifications(event: ConversationEvent, change: StateChange | undefined): Notification[] {
  return [
    ...dispatched(event),
    ...reduced(event),
    ...(change?.context ? [{ kind: 'state-changed', before: change.before, after: change.after } as const] : []),
    ...made(event),
    ...(change?.step ? [{ kind: 'step', result: change.step } as const] : []),
  ];
}

function dispatched(event: ConversationEvent): Notification[] {
  switch (event.kind) {
    case 'message-received':
      return [{ kind: 'event-dispatched', id: event.messageId, type: 'message' }];
    case 'reset-requested':
      return [{ kind: 'event-dispatched', id: event.resetId, type: 'reset' }];
    case 'app-event-received':
      return [{ kind: 'event-dispatched', id: event.id, type: event.type }];
    default:
      return [];
  }
}

function reduced(event: ConversationEvent): Notification[] {
  if (event.kind !== 'app-event-reduced') return [];
  const { id, reduced: what } = event;
  const operations = what.kind === 'reduced' ? what.operations.length : 0;
  return [{ kind: 'reducer-executed', id, outcome: what.kind, operations, ...(what.kind === 'parked' && { error: what.error }) }];
}

function made(event: ConversationEvent): Notification[] {
  if (event.kind !== 'effect-completed') return [];
  if (event.effect === 'compact' && event.output.kind === 'compacted') {
    const { epoch, turns, method, record, tokensBefore, tokensAfter } = event.output;
    return [{ kind: 'compaction', epoch, turns, method, compactor: record.compactor, tokensBefore, tokensAfter }];
  }
  if (event.effect !== 'truncate' || event.output.entries === 0) return [];
  const { epoch, entries, tokens } = event.output;
  return [{ kind: 'truncation', epoch, entries, tokens }];
}

// A queue between what happens and those who are notified of it.
//
// - Taking something in never waits and never throws.
// - It delivers in order, one batch at a time, and gives up a batch that hangs after `patienceMs`.
// - It is bounded in count and in characters: when full it drops the oldest, counts it and says so, at most once a minute.

export interface DeliveryLog {
  warn(message: string, meta?: Readonly<Record<string, unknown>>): void;
}

export interface DeliveryOptions<T> {
  /** For the log: `observers[0]`, `the audit file`. */
  readonly to: string;
  readonly deliver: (batch: readonly T[]) => void | Promise<void>;
  readonly log: () => DeliveryLog;
  /** Things that wait. */
  readonly limit?: number;
  readonly sizeOf?: (item: T) => number;
  /** Sum of `sizeOf` of what waits. */
  readonly sizeLimit?: number;
  /** The most of one batch. */
  readonly batch?: number;
  readonly patienceMs?: number;
  /** Told of every loss: for a counter. */
  readonly onLost?: (count: number) => void;
}

export interface Delivery<T> {
  take(item: T): void;
  /** What was lost so far: dropped, or in a batch that failed or hung. */
  readonly lost: () => number;
  /** Waits until all is delivered, at most `ms`; what is left then is lost, and reported. Nothing is taken afterwards. */
  close(ms: number): Promise<void>;
}

const SAID_EVERY_MS = 60_000;

export function createDelivery<T>(options: DeliveryOptions<T>): Delivery<T> {
  const { to, deliver, log, limit = 1_000, sizeOf = () => 0, sizeLimit = Infinity, batch = 1, patienceMs = 30_000 } = options;
  const waiting: { readonly item: T; readonly size: number }[] = [];
  let size = 0;
  let lost = 0;
  let saidLost = 0;
  let saidAt = -Infinity;
  let hasFailed = false;
  let closed = false;
  let working: Promise<void> | undefined;

  const lose = (count: number): void => {
    lost += count;
    options.onLost?.(count);
    if (Date.now() - saidAt < SAID_EVERY_MS) return;
    saidAt = Date.now();
    sayLost();
  };
  const sayLost = (): void => {
    if (lost === saidLost) return;
    log().warn(`${to}: events were lost, the oldest first, since it takes them too slowly or not at all`, {
      lost: lost - saidLost,
      inAll: lost,
    });
    saidLost = lost;
  };

  const work = async (): Promise<void> => {
    while (waiting.length > 0) {
      const taken = waiting.splice(0, batch);
      size -= taken.reduce((sum, one) => sum + one.size, 0);
      try {
        const delivered = (async () => deliver(taken.map(({ item }) => item)))();
        await withTimeout(patienceMs, delivered, (ms) => new Hung(`it did not end within ${ms} ms`));
        hasFailed = false;
      } catch (error) {
        if (!hasFailed) log().warn(`${to} failed; it still gets events, and further failures in a row are not logged`, { error });
        hasFailed = true;
        if (batch > 1 || error instanceof Hung) lose(taken.length);
      }
    }
    working = undefined;
  };

  return {
    lost: () => lost,
    take(item) {
      if (closed) return;
      const itemSize = waiting.length === 0 ? 0 : sizeOf(item);
      waiting.push({ item, size: itemSize });
      size += itemSize;
      while (waiting.length > limit || (size > sizeLimit && waiting.length > 1)) {
        size -= waiting.shift()?.size ?? 0;
        lose(1);
      }
      // Not in the caller's turn of the event loop.
      working ??= Promise.resolve().then(work);
    },
    async close(ms) {
      closed = true;
      const done = new Promise<void>((resolve) => void (working ?? Promise.resolve()).then(resolve));
      await orUndefinedAfter(ms, done);
      const left = waiting.splice(0).length;
      if (left > 0) lost += left;
      if (left > 0) options.onLost?.(left);
      sayLost();
    },
  };
}

class Hung extends Error {
  override readonly name = 'Hung';
}
