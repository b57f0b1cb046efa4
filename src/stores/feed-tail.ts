/**
 * One feed and all its readers in this process. Somebody reads the feed once and puts what comes into the tail (`add`); each reader takes
 * it from there at its own pace.
 *
 * - A reader holds its cursor and nothing else: a slow one keeps nothing in memory, and reads events that left the window from the store.
 * - Events come in order and once. One `resync` replaces lost or trimmed ones (feed-cursor.ts).
 * - Only the store says that a feed is gone: a reader's cursor may be newer than the shared look at the store.
 */
import { createFeedPosition, cursorBefore, OLDEST, RESYNC } from './feed-cursor.js';
import { createFeedWindow, type FeedEvent, type FeedWindow } from './feed-window.js';

export interface FeedTail {
  readonly window: FeedWindow;
  readonly readers: Set<() => void>;
  /** New events. */
  add(events: readonly FeedEvent[], bytes: number): void;
  /** The feed's last event, looked up because nothing came, or after an outage. */
  look(newest: string | undefined): void;
  /** Its readers throw this. */
  fail(error: unknown): void;
  /** What changed since, for readers that wait. */
  readonly version: () => number;
  /** How often it was looked up, and what was found the last time. */
  readonly looked: () => { readonly times: number; readonly newest: string | undefined };
  throwIfFailed(): void;
}

export function createFeedTail(at: string): FeedTail {
  const window = createFeedWindow(at);
  const readers = new Set<() => void>();
  let version = 0;
  let looked: { readonly times: number; readonly newest: string | undefined } = { times: 0, newest: undefined };
  let failure: { readonly error: unknown } | undefined;
  const notify = (): void => {
    version += 1;
    for (const wake of readers) wake();
  };
  return {
    window,
    readers,
    version: () => version,
    looked: () => looked,
    add(events, bytes) {
      window.append(events, bytes);
      notify();
    },
    look(newest) {
      looked = { times: looked.times + 1, newest };
      // Another feed stands there now: what comes is to be read from its beginning.
      if (createFeedPosition(window.head()).settle(newest)) window.restart(OLDEST);
      notify();
    },
    fail(error) {
      failure = { error };
      notify();
    },
    throwIfFailed() {
      if (failure) throw failure.error;
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
  let { times } = tail.looked();
  try {
    while (!signal.aborted) {
      const version = tail.version();
      tail.throwIfFailed();
      const looked = tail.looked();
      if (looked.times !== times) {
        times = looked.times;
        const last = looked.newest === position.from() ? looked.newest : await newest();
        if (signal.aborted) return;
        if (position.settle(last)) yield { cursor: OLDEST, event: RESYNC };
      }
      const events = tail.window.after(position.from()) ?? (await page(position.from()));
      for (const { cursor, event } of events) {
        if (signal.aborted) return;
        const step = position.step(cursor);
        if (step === 'gap') yield { cursor: cursorBefore(cursor), event: RESYNC };
        if (step !== 'seen') yield { cursor, event };
      }
      if (events.length === 0 && tail.version() === version) await new Promise<void>((resolve) => (bell = resolve));
    }
  } finally {
    signal.removeEventListener('abort', wake);
    tail.readers.delete(wake);
    leave(tail);
  }
}
