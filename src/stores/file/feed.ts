/**
 * Live events in `feed.jsonl`: a line per event, `{"cursor":…,"event":…}` and its id if it has one, numbered under a lock of its own (feed-cursor.ts).
 * Not synced: a feed may be lost. It is cut to its newest events when it has twice as many as are kept, so that cutting costs
 * each event the same however long the conversation.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import type { JsonValue } from '../../records/message.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { createFeedPosition, cursorBefore, OLDEST, parseCursor, RESYNC, toCursor } from '../feed-cursor.js';
import { toUnavailable } from './errors.js';
import type { FileHandles } from './handles.js';
import { readNewLines, UNREAD, type Reading } from './lines.js';
import { type WithLock, createTurns, type Turns } from './lock.js';
import { conversationDir } from './paths.js';
import { REMEMBERED_EVENT_IDS, type Feed, type LiveEvent } from '../store.js';
import { watch, type FSWatcher } from 'node:fs';

interface FeedEvent {
  readonly cursor: string;
  readonly id?: string;
  readonly event: JsonValue;
}

/** What a writer knows of a feed: how far it has read, and the numbers it found. */
interface FeedEnd {
  readonly inTurn: Turns;
  reading: Reading;
  birth: number;
  first: number;
  last: number;
  /** The last ones that events had, oldest first. */
  readonly ids: Set<string>;
}

/** Feeds whose end is remembered; others are read from their start. */
const REMEMBERED = 256;

export interface FileFeedOptions {
  readonly maxLength: number;
  readonly handles: FileHandles;
  readonly withLock: WithLock;
}

/** `close` ends all its readers, and waits for the events that are being written. */
export function createFileFeed(dir: string, { maxLength, handles, withLock }: FileFeedOptions): Feed & { close(): Promise<void> } {
  const closing = new AbortController();
  const ends = new Map<string, FeedEnd>();

  function endOf(path: string): FeedEnd {
    const end = ends.get(path) ?? { inTurn: createTurns(), reading: UNREAD, birth: 0, first: 1, last: 0, ids: new Set<string>() };
    ends.delete(path);
    ends.set(path, end);
    const [oldest] = ends.keys();
    if (ends.size > REMEMBERED && oldest !== undefined) ends.delete(oldest);
    return end;
  }

  return {
    async publish(key, events) {
      if (events.length === 0) return;
      const folder = conversationDir(dir, key);
      const path = join(folder, 'feed.jsonl');
      const end = endOf(path);
      try {
        await end.inTurn(() =>
          withLock(join(folder, 'feed.lock'), async () => {
            await readEnd(path, end);
            if (end.last - end.first + 1 >= 2 * maxLength) await cut(path, end, maxLength);
            const fresh = withoutKnown(events, end.ids);
            if (fresh.length === 0) return;
            const lines = fresh.map(
              ({ id, event }, i) => `${JSON.stringify({ cursor: toCursor(end.birth, end.last + 1 + i), id, event })}\n`,
            );
            const { reading: after } = await handles.append(path, lines.join(''), end.reading, { sync: false });
            // Otherwise the next one reads what is there.
            if (after === undefined) return;
            Object.assign(end, { reading: after, last: end.last + fresh.length });
            for (const { id } of fresh) remember(end.ids, id);
          }),
        );
      } catch (error) {
        throw toUnavailable(`publish ${events.length} live events of ${key.conversation}`, path, error);
      }
    },

    async newest(key) {
      const path = join(conversationDir(dir, key), 'feed.jsonl');
      const end = endOf(path);
      try {
        await end.inTurn(() => readEnd(path, end));
      } catch (error) {
        throw toUnavailable(`look for the latest live event of ${key.conversation}`, path, error);
      }
      return end.last === 0 ? OLDEST : toCursor(end.birth, end.last);
    },

    async *read(key, after, signal) {
      const path = join(conversationDir(dir, key), 'feed.jsonl');
      try {
        yield* follow(path, after, AbortSignal.any([signal, closing.signal]));
      } catch (error) {
        throw toUnavailable(`read the feed of ${key.conversation}`, path, error);
      }
    },

    async close() {
      closing.abort();
      await Promise.all([...ends.values()].map(({ inTurn }) => inTurn(async () => undefined)));
    },
  };
}

/** Without events whose id was published, each of the others once. */
function withoutKnown(events: readonly LiveEvent[], known: ReadonlySet<string>): readonly LiveEvent[] {
  const seen = new Set<string>();
  return events.filter(({ id }) => {
    if (id === undefined) return true;
    if (known.has(id) || seen.has(id)) return false;
    seen.add(id);
    return true;
  });
}

function remember(ids: Set<string>, id: string | undefined): void {
  if (id === undefined) return;
  ids.add(id);
  for (const oldest of ids) if (ids.size > REMEMBERED_EVENT_IDS) ids.delete(oldest);
}

async function readEnd(path: string, end: FeedEnd): Promise<void> {
  const forget = () => {
    end.ids.clear();
    Object.assign(end, { birth: 0, first: 1, last: 0 });
  };
  end.reading = await readNewLines(
    path,
    end.reading,
    (line) => {
      const event = decodeEvent(line);
      const cursor = parseCursor(event?.cursor ?? '');
      if (cursor === undefined) return;
      remember(end.ids, event?.id);
      if (cursor.birth !== end.birth) Object.assign(end, { birth: cursor.birth, first: cursor.n });
      end.last = cursor.n;
    },
    forget,
  );
  if (end.birth === 0) end.birth = Date.now();
}

/** The new file takes the old one's place in one step: a reader finds the one or the other. */
async function cut(path: string, end: FeedEnd, keep: number): Promise<void> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => decodeEvent(line) !== undefined);
  await writeFileAtomic(path, `${lines.slice(-keep).join('\n')}\n`, { fsync: false });
  await readEnd(path, end);
}

/** Ends when `signal` aborts. */
async function* follow(path: string, after: string, signal: AbortSignal): AsyncGenerator<FeedEvent> {
  const position = createFeedPosition(after);
  const folder = watchFolder(dirname(path), (file) => file === 'feed.jsonl');
  let reading = UNREAD;
  let anew = true;
  try {
    while (!signal.aborted) {
      let events: FeedEvent[] = [];
      reading = await readNewLines(
        path,
        reading,
        (line) => {
          const event = decodeEvent(line);
          if (event !== undefined) events.push(event);
        },
        () => {
          anew = true;
          events = [];
        },
      );
      if (anew && position.settle(events.at(-1)?.cursor)) yield { cursor: OLDEST, event: RESYNC };
      anew = false;
      for (const event of events) {
        if (signal.aborted) return;
        const step = position.step(event.cursor);
        if (step === 'gap') yield { cursor: cursorBefore(event.cursor), event: RESYNC };
        if (step !== 'seen') yield { cursor: event.cursor, event: event.event };
      }
      if (events.length === 0) await folder.changed(signal);
    }
  } finally {
    folder.close();
  }
}

function decodeEvent(line: string): FeedEvent | undefined {
  const value = decodeJson(line);
  if (typeof value !== 'object' || value === null) return undefined;
  const { cursor, id, event } = value as { readonly [field: string]: unknown };
  if (typeof cursor !== 'string' || parseCursor(cursor) === undefined || event === undefined) return undefined;
  return { cursor, ...(typeof id === 'string' && { id }), event: event as JsonValue };
}

/** Waiting for news in a folder. */

/** Waiting never lasts longer, as not every file system reports changes, and a folder that is not there yet cannot. */
const POLL_MS = 15;

interface FolderWatch {
  /** Resolves when something may have changed since the last call, at the latest after 15 ms or when `signal` aborts. */
  changed(signal: AbortSignal): Promise<void>;
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
    async changed(signal) {
      if (watcher === undefined) begin();
      if (!news && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(done, POLL_MS);
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
