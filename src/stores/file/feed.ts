/**
 * Live events in `feed.jsonl`: a line per event, `{"cursor":…,"event":…}` and its id if it has one, numbered under feed.lock
 * (feed-cursor.ts). Not synced: a feed may be lost. It is cut to its newest events when it has twice as many as it is to have, so that
 * cutting costs each event the same however long the conversation.
 *
 * Readers of this process share one follower for each feed: it polls the size of the file.
 */
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import type { JsonValue } from '../../records/message.js';
import type { AtRest } from '../../platform/at-rest.js';
import { decodeJson } from '../codecs.js';
import { compareCursors, OLDEST, parseCursor, toCursor } from '../feed-cursor.js';
import { countReaders, readFeed, type FeedEvent, type FeedFollower, type Followed } from '../feed-tail.js';
import { toUnavailable } from './errors.js';
import type { FileHandles } from './handles.js';
import { createTurns, readNewLines, UNREAD, type Reading, type Turns } from './lines.js';
import type { WithLock } from './lock.js';
import { conversationDir } from './paths.js';
import { REMEMBERED_EVENT_IDS, type Feed, type LiveEvent } from '../store.js';

interface StoredEvent extends FeedEvent {
  readonly id?: string;
}

/** State of a feed's writer: how far it has read, and the numbers it found. */
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
  readonly atRest: AtRest;
}

/** `close` ends all its readers, and waits for the events that are being written. */
export function createFileFeed(dir: string, { maxLength, handles, withLock, atRest }: FileFeedOptions): Feed & { close(): Promise<void> } {
  const closing = new AbortController();
  const ends = new Map<string, FeedEnd>();
  const follower = createFileFollower();

  function findEnd(path: string): FeedEnd {
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
      const end = findEnd(path);
      try {
        await end.inTurn(() =>
          withLock(join(folder, 'feed.lock'), async () => {
            await readEnd(path, end, atRest);
            if (end.last - end.first + 1 >= 2 * maxLength) await cut(path, end, { keep: maxLength, atRest });
            const fresh = withoutKnown(events, end.ids);
            if (fresh.length === 0) return;
            const lines = fresh.map(
              ({ id, event }, i) => `${atRest.seal(JSON.stringify({ cursor: toCursor(end.birth, end.last + 1 + i), id, event }))}\n`,
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
      const end = findEnd(path);
      try {
        await end.inTurn(() => readEnd(path, end, atRest));
      } catch (error) {
        throw toUnavailable(`look for the latest live event of ${key.conversation}`, path, error);
      }
      return end.last === 0 ? OLDEST : toCursor(end.birth, end.last);
    },

    async *read(key, after, signal) {
      const path = join(conversationDir(dir, key), 'feed.jsonl');
      const stop = AbortSignal.any([signal, closing.signal]);
      /** How far the file was read, and the last event of that: a reader goes on there. */
      let paged: Reading = UNREAD;
      let looked: { readonly reading: Reading; readonly cursor: string | undefined } = { reading: UNREAD, cursor: undefined };
      try {
        yield* readFeed(after, stop, {
          newest() {
            const end = findEnd(path);
            return end.inTurn(async () => {
              await readEnd(path, end, atRest);
              looked = { reading: end.reading, cursor: end.last === 0 ? undefined : toCursor(end.birth, end.last) };
              return looked.cursor;
            });
          },
          pageSize: Infinity,
          async page(from) {
            const events: FeedEvent[] = [];
            const take = (line: string): void => {
              const event = decodeEvent(atRest.openRecord(line));
              if (event !== undefined && (from === OLDEST || compareCursors(event.cursor, from) > 0)) events.push(event);
            };
            const begin = from === OLDEST ? UNREAD : from === looked.cursor ? looked.reading : paged;
            looked = { ...looked, cursor: undefined };
            paged = await readNewLines(path, begin, take, () => events.splice(0));
            return events;
          },
          join: () => follower.join(path, undefined),
          leave: (tail) => follower.leave(path, tail),
        });
      } catch (error) {
        throw toUnavailable(`read the feed of ${key.conversation}`, path, error);
      }
    },

    async close() {
      closing.abort();
      follower.close();
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

async function readEnd(path: string, end: FeedEnd, atRest: AtRest): Promise<void> {
  const forget = () => {
    end.ids.clear();
    Object.assign(end, { birth: 0, first: 1, last: 0 });
  };
  end.reading = await readNewLines(
    path,
    end.reading,
    (line) => {
      const event = decodeEvent(atRest.openRecord(line));
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
async function cut(path: string, end: FeedEnd, { keep, atRest }: { readonly keep: number; readonly atRest: AtRest }): Promise<void> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => decodeEvent(atRest.openRecord(line)) !== undefined);
  await writeFileAtomic(path, `${lines.slice(-keep).join('\n')}\n`, { fsync: false });
  await readEnd(path, end, atRest);
}

function decodeEvent(line: string): StoredEvent | undefined {
  const value = decodeJson(line);
  if (typeof value !== 'object' || value === null) return undefined;
  const { cursor, id, event } = value as { readonly [field: string]: unknown };
  if (typeof cursor !== 'string' || parseCursor(cursor) === undefined || event === undefined) return undefined;
  return { cursor, ...(typeof id === 'string' && { id }), event: event as JsonValue };
}

const POLL_MS = 15;
const SILENT_AFTER_MS = 2_000;
const SILENT_POLL_MS = 100;

interface Leavable {
  readonly left: AbortController;
}

/**
 * Follows each feed once for all its readers in this process: looks whether the file has more bytes, less often after a silence, so that
 * many silent feeds cost little.
 */
function createFileFollower(): FeedFollower {
  const feeds = new Map<string, Followed<Leavable>>();

  const follow = async (path: string, { tail, left: { signal } }: Followed<Leavable>): Promise<void> => {
    const look = () => statSync(path, { throwIfNoEntry: false }) ?? { ino: 0, size: 0 };
    let heardAt = performance.now();
    for (let before = look(); !signal.aborted;) {
      await pause(performance.now() - heardAt < SILENT_AFTER_MS ? POLL_MS : SILENT_POLL_MS, signal);
      if (signal.aborted) return;
      const now = look();
      if (now.ino === before.ino && now.size === before.size) continue;
      heardAt = performance.now();
      if (now.ino !== before.ino || now.size < before.size) tail.look(undefined);
      else tail.ring();
      before = now;
    }
  };

  return {
    ...countReaders<Leavable>(feeds, {
      begin: () => ({ left: new AbortController() }),
      begun: (path, followed) =>
        void follow(path, followed).catch((error: unknown) => {
          if (feeds.get(path) === followed) feeds.delete(path);
          followed.tail.fail(error);
        }),
      left: ({ left }) => left.abort(),
    }),

    close() {
      for (const { left } of feeds.values()) left.abort();
      feeds.clear();
    },
  };
}

/** Resolves after `ms`, or when `signal` aborts. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
  });
}
