/**
 * One feed and all its readers in this process. A follower reads the feed once and puts what comes into the tail (`add`); each reader takes
 * it from there at its pace.
 *
 * - The tail has the latest batch alone, and a reader its cursor alone: a slow one costs no memory, and reads what it missed from the store.
 * - Events come in order and once. One `resync` replaces lost or trimmed ones (feed-cursor.ts).
 * - Only the store says that a feed is gone: a reader's cursor may be newer than the shared look at the store.
 */
import type { JsonValue } from '../records/message.js';
import { compareCursors, createFeedPosition, cursorBefore, OLDEST, RESYNC } from './feed-cursor.js';

export interface FeedEvent {
  readonly cursor: string;
  readonly event: JsonValue;
}

export interface FeedTail {
  /** The cursor of the latest event that it was given, or where it began. */
  head(): string;
  /** All that came after `cursor`; undefined where the tail no longer has all of that. */
  after(cursor: string): readonly FeedEvent[] | undefined;
  /** `bytes`: of all of them. What it was given before is left out; what is missing between them the store had no longer. */
  add(events: readonly FeedEvent[], bytes: number): void;
  /** The feed's last event, looked up because nothing came, or after an outage. */
  look(newest: string | undefined): void;
  /** Its readers throw this. */
  fail(error: unknown): void;
  readonly readers: Set<() => void>;
  /** What changed since, for readers that wait; throws what the tail failed with. */
  state(): { readonly version: number; readonly looks: number; readonly newest: string | undefined };
}

/** A larger batch is read from the store by each reader: many silent feeds must not fill the memory. */
export const MAX_BATCH_BYTES = 32 * 1024;

export function createFeedTail(at: string): FeedTail {
  const readers = new Set<() => void>();
  let state = { version: 0, looks: 0, newest: undefined as string | undefined };
  let failure: { readonly error: unknown } | undefined;
  /** Everything after `base` is in `batch`, as far as `head`. */
  let base = at;
  let head = at;
  let batch: readonly FeedEvent[] = [];

  const change = (what: Partial<typeof state> = {}): void => {
    state = { ...state, ...what, version: state.version + 1 };
    for (const wake of readers) wake();
  };
  return {
    readers,
    head: () => head,
    after(cursor) {
      if (base !== OLDEST && (cursor === OLDEST || compareCursors(cursor, base) < 0)) return undefined;
      return batch.filter((event) => cursor === OLDEST || compareCursors(event.cursor, cursor) > 0);
    },
    add(events, bytes) {
      const fresh = events.filter(({ cursor }) => head === OLDEST || compareCursors(cursor, head) > 0);
      const last = fresh.at(-1)?.cursor;
      if (last !== undefined) {
        const isLarge = bytes > MAX_BATCH_BYTES;
        base = isLarge ? last : head;
        batch = isLarge ? [] : fresh;
        head = last;
      }
      change();
    },
    look(newest) {
      // Another feed stands there now: what comes is to be read from its beginning.
      if (createFeedPosition(head).settle(newest)) {
        base = head = OLDEST;
        batch = [];
      }
      change({ looks: state.looks + 1, newest });
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

/** How one reader asks the store itself. */
export interface FeedLookUp {
  newest(): Promise<string | undefined>;
  /** Events after a cursor, some of them where there are many. */
  page(after: string): Promise<readonly FeedEvent[]>;
  /** The feed's tail, which begins at `newest` where it has no reader yet. */
  join(newest: string | undefined): FeedTail;
  leave(tail: FeedTail): void;
}

/** Ends when `signal` aborts. */
export async function* readFeed(after: string, signal: AbortSignal, { newest, page, join, leave }: FeedLookUp): AsyncGenerator<FeedEvent> {
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
    for (let { looks } = tail.state(); !signal.aborted;) {
      const state = tail.state();
      if (state.looks !== looks) {
        looks = state.looks;
        const last = state.newest === position.from() ? state.newest : await newest();
        if (signal.aborted) return;
        if (position.settle(last)) yield { cursor: OLDEST, event: RESYNC };
      }
      const events = tail.after(position.from()) ?? (await page(position.from()));
      for (const { cursor, event } of events) {
        if (signal.aborted) return;
        const step = position.step(cursor);
        if (step === 'gap') yield { cursor: cursorBefore(cursor), event: RESYNC };
        if (step !== 'seen') yield { cursor, event };
      }
      if (events.length === 0 && tail.state().version === state.version) await new Promise<void>((resolve) => (bell = resolve));
    }
  } finally {
    signal.removeEventListener('abort', wake);
    tail.readers.delete(wake);
    leave(tail);
  }
}
