/**
 * Follows each feed once for all its readers in this process.
 *
 * One watcher and one clock for each feed that has a reader, and none without; each line is read once. Watching is a hint: not every file
 * system reports changes, and a missing folder cannot. The clock checks the file too, less often after a silence, so that many silent feeds
 * cost little.
 */
import { watch, type FSWatcher } from 'node:fs';
import { dirname } from 'node:path';
import { OLDEST } from '../feed-cursor.js';
import { createFeedTail, type FeedTail } from '../feed-tail.js';
import type { FeedEvent } from '../feed-window.js';
import { readNewLines, type Reading } from './lines.js';

const POLL_MS = 15;
const SILENT_AFTER_MS = 2_000;
const SILENT_POLL_MS = 100;

export interface FileFollower {
  /** The tail of a feed; where it has none yet it begins at `newest`, which is the last event of what `seen` has read of the file. */
  join(path: string, newest: string | undefined, seen: Reading): FeedTail;
  leave(path: string, tail: FeedTail): void;
  /** Follows no feed any more, also for a reader that was left in the middle and never returns. */
  close(): void;
}

interface Followed {
  readonly tail: FeedTail;
  readers: number;
  readonly left: AbortController;
}

/** `decode`: undefined for a line that is no event. */
export function createFileFollower(decode: (line: string) => FeedEvent | undefined): FileFollower {
  const feeds = new Map<string, Followed>();

  const follow = async (path: string, { tail, left: { signal } }: Followed, seen: Reading): Promise<void> => {
    const folder = watchFolder(dirname(path), (file) => file === 'feed.jsonl');
    let reading = seen;
    let heardAt = performance.now();
    try {
      while (!signal.aborted) {
        const events: FeedEvent[] = [];
        let bytes = 0;
        let isAnew = false;
        const take = (line: string): void => {
          const event = decode(line);
          if (event === undefined) return;
          events.push(event);
          bytes += line.length;
        };
        const restart = (): void => {
          isAnew = true;
          events.splice(0);
          bytes = 0;
        };
        reading = await readNewLines(path, reading, take, restart);
        if (isAnew) tail.look(events.at(-1)?.cursor);
        if (events.length > 0) tail.add(events, bytes);
        if (isAnew || events.length > 0) heardAt = performance.now();
        else await folder.changed(signal, performance.now() - heardAt < SILENT_AFTER_MS ? POLL_MS : SILENT_POLL_MS);
      }
    } finally {
      folder.close();
    }
  };

  return {
    join(path, newest, seen) {
      const known = feeds.get(path);
      if (known) {
        known.readers += 1;
        return known.tail;
      }
      const followed: Followed = { tail: createFeedTail(newest ?? OLDEST), readers: 1, left: new AbortController() };
      feeds.set(path, followed);
      follow(path, followed, seen).catch((error: unknown) => {
        if (feeds.get(path) === followed) feeds.delete(path);
        followed.tail.fail(error);
      });
      return followed.tail;
    },

    leave(path, tail) {
      const known = feeds.get(path);
      if (known?.tail !== tail) return;
      known.readers -= 1;
      if (known.readers > 0) return;
      feeds.delete(path);
      known.left.abort();
    },

    close() {
      for (const { left } of feeds.values()) left.abort();
      feeds.clear();
    },
  };
}

interface FolderWatch {
  /** Resolves when something may have changed since the last call, at the latest after `ms` or when `signal` aborts. */
  changed(signal: AbortSignal, ms: number): Promise<void>;
  close(): void;
}

function watchFolder(folder: string, isOurs: (file: string) => boolean): FolderWatch {
  let watcher: FSWatcher | undefined;
  let news = false;
  let wake: (() => void) | undefined;

  function begin(): void {
    try {
      watcher = watch(folder, (_, file) => {
        if (file !== null && !isOurs(file)) return;
        news = true;
        wake?.();
      });
      // The folder is gone, or watching ended: polling goes on, and watching begins again when it can.
      watcher.on('error', end);
    } catch {
      watcher = undefined;
    }
  }

  function end(): void {
    watcher?.close();
    watcher = undefined;
  }

  return {
    async changed(signal, ms) {
      if (watcher === undefined) begin();
      if (!news && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(done, ms);
          function done(): void {
            clearTimeout(timer);
            signal.removeEventListener('abort', done);
            wake = undefined;
            resolve();
          }
          wake = done;
          signal.addEventListener('abort', done, { once: true });
        });
      }
      news = false;
    },
    close: end,
  };
}
