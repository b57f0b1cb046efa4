/**
 * One feed and all its readers in this process. A follower looks once for all of them whether something is new, and each reader then takes
 * it from the store, at its pace.
 *
 * - A reader has its cursor and nothing else: a slow one costs no memory.
 * - Events come in order and once. One `resync` replaces lost or trimmed ones (feed-cursor.ts).
 * - Only the store can report that a feed is gone: a reader's cursor may be newer than the shared look at the store.
 */
import type { JsonValue } from '../records/message.js';
import { createFeedPosition, cursorBefore, OLDEST, RESYNC } from './feed-cursor.js';

export interface FeedEvent {
  readonly cursor: string;
  readonly event: JsonValue;
}

export interface FeedTail {
  /** The cursor of the latest event that it received, or where it began. */
  head(): string;
  /** Something came; `latest` where the follower knows its cursor. */
  ring(latest?: string): void;
  /** The feed's last event, looked up because nothing came, or after an outage; undefined where there is none, or each reader is to look. */
  look(newest: string | undefined): void;
  /** The feed is that of another server, which may lack events and have others in their place: its readers begin anew after a resync. */
  restart(newest: string | undefined): void;
  /** Its readers throw this. */
  fail(error: unknown): void;
  readonly readers: Set<() => void>;
  /** Numbers that change with the feed, for readers that wait; throws the error with which the tail failed. */
  state(): { readonly version: number; readonly looks: number; readonly restarts: number; readonly newest: string | undefined };
}

export function createFeedTail(at: string): FeedTail {
  const readers = new Set<() => void>();
  let state = { version: 0, looks: 0, restarts: 0, newest: undefined as string | undefined };
  let failure: { readonly error: unknown } | undefined;
  let head = at;

  const change = (what: Partial<typeof state> = {}): void => {
    state = { ...state, ...what, version: state.version + 1 };
    for (const wake of readers) wake();
  };
  return {
    readers,
    head: () => head,
    ring(latest = head) {
      head = latest;
      change();
    },
    look(newest) {
      // Another feed is there now: what comes is to be read from its beginning.
      if (createFeedPosition(head).settle(newest)) head = OLDEST;
      change({ looks: state.looks + 1, newest });
    },
    restart(newest) {
      head = newest ?? OLDEST;
      change({ restarts: state.restarts + 1, newest });
    },
    fail(error) {
      failure = { error };
      change();
    },
    state() {
      if (failure) throw failure.error;
      return state;
    },
  };
}

/** Looks for all readers of a process whether their feeds have something new. */
export interface FeedFollower {
  /** The tail of a feed, which begins at `newest` where it has none yet. */
  join(feed: string, newest: string | undefined): FeedTail;
  leave(feed: string, tail: FeedTail): void;
  /** Follows no feed any more, also for a reader that was left in the middle and never returns. */
  close(): void;
}

/** A feed that has readers, and what its follower knows of it beside. */
export type Followed<Known> = Known & { readonly tail: FeedTail; readers: number };

interface Following<Known> {
  /** Of a feed whose first reader has come. */
  readonly begin: () => Known;
  readonly begun: (feed: string, followed: Followed<Known>) => void;
  /** The last reader of a feed has gone. */
  readonly left: (followed: Followed<Known>) => void;
}

/** `feeds` has those with a reader, and no others; a follower may take out one that has failed. */
export function countReaders<Known>(
  feeds: Map<string, Followed<Known>>,
  { begin, begun, left }: Following<Known>,
): Pick<FeedFollower, 'join' | 'leave'> {
  return {
    join(feed, newest) {
      const known = feeds.get(feed);
      if (known) {
        known.readers += 1;
        return known.tail;
      }
      const followed: Followed<Known> = { ...begin(), tail: createFeedTail(newest ?? OLDEST), readers: 1 };
      feeds.set(feed, followed);
      begun(feed, followed);
      return followed.tail;
    },

    leave(feed, tail) {
      const known = feeds.get(feed);
      if (known?.tail !== tail) return;
      known.readers -= 1;
      if (known.readers > 0) return;
      feeds.delete(feed);
      left(known);
    },
  };
}

/** How one reader reads the store itself. */
export interface FeedLookUp {
  newest(): Promise<string | undefined>;
  /** Events after a cursor, at most so many. */
  page(after: string): Promise<readonly FeedEvent[]>;
  readonly pageSize: number;
  /** The feed's tail, which begins at `newest` where it has no reader yet. */
  join(newest: string | undefined): FeedTail;
  leave(tail: FeedTail): void;
}

/** Ends when `signal` aborts. */
export async function* readFeed(after: string, signal: AbortSignal, look: FeedLookUp): AsyncGenerator<FeedEvent> {
  const { newest, page, pageSize, join, leave } = look;
  const position = createFeedPosition(after);
  const found = await newest();
  if (signal.aborted) return;
  if (position.settle(found)) yield { cursor: OLDEST, event: RESYNC };
  const tail = join(found);
  let bell: (() => void) | undefined;
  const wake = (): void => bell?.();
  tail.readers.add(wake);
  signal.addEventListener('abort', wake, { once: true });
  try {
    for (let { looks, restarts } = tail.state(); !signal.aborted;) {
      const state = tail.state();
      if (state.restarts !== restarts) {
        restarts = state.restarts;
        if (position.restart()) yield { cursor: OLDEST, event: RESYNC };
      }
      if (state.looks !== looks) {
        looks = state.looks;
        const last = state.newest === position.from() ? state.newest : await newest();
        if (signal.aborted) return;
        if (position.settle(last)) yield { cursor: OLDEST, event: RESYNC };
      }
      const events = await page(position.from());
      if (signal.aborted) return;
      for (const { cursor, event } of events) {
        if (signal.aborted) return;
        const step = position.step(cursor);
        if (step === 'gap') yield { cursor: cursorBefore(cursor), event: RESYNC };
        if (step !== 'seen') yield { cursor, event };
      }
      // A reader may have stopped at the last of them: then nothing would wake it any more.
      const isThrough = events.length < pageSize && tail.state().version === state.version;
      if (isThrough && !signal.aborted) await new Promise<void>((resolve) => (bell = resolve));
    }
  } finally {
    signal.removeEventListener('abort', wake);
    tail.readers.delete(wake);
    leave(tail);
  }
}
