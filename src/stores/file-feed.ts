/**
 * Live events in `feed.jsonl`: a line per event, `{"cursor":…,"event":…}`, numbered under a lock of its own (feed-cursor.ts).
 * Not synced: a feed may be lost. It is cut to its newest events when it has twice as many as are kept, so that cutting costs
 * each event the same however long the conversation.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import type { JsonValue } from '../conversation/message.js';
import { decodeJson } from './entry-codec.js';
import { createFeedPosition, cursorBefore, OLDEST, parseCursor, RESYNC, toCursor } from './feed-cursor.js';
import { toUnavailable } from './file-errors.js';
import { appendLines, readNewLines, UNREAD, type Reading } from './file-lines.js';
import { withLock } from './file-lock.js';
import { conversationDir } from './file-paths.js';
import { watchFolder } from './file-watch.js';
import type { Feed } from './store.js';
import { createTurns, type Turns } from './turns.js';

interface FeedEvent {
  readonly cursor: string;
  readonly event: JsonValue;
}

/** What a writer knows of a feed: how far it has read, and the numbers it found. */
interface FeedEnd {
  readonly inTurn: Turns;
  reading: Reading;
  birth: number;
  first: number;
  last: number;
}

/** Feeds whose end is remembered; others are read from their start. */
const REMEMBERED = 256;

/** `close` ends all its readers. */
export function createFileFeed(dir: string, { maxLength }: { readonly maxLength: number }): Feed & { close(): void } {
  const closing = new AbortController();
  const ends = new Map<string, FeedEnd>();

  function endOf(path: string): FeedEnd {
    const end = ends.get(path) ?? { inTurn: createTurns(), reading: UNREAD, birth: 0, first: 1, last: 0 };
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
            const lines = events.map((event, i) => `${JSON.stringify({ cursor: toCursor(end.birth, end.last + 1 + i), event })}\n`);
            const after = await appendLines(path, lines.join(''), end.reading, { sync: false });
            // Otherwise the next one reads what lies there.
            if (after !== undefined) Object.assign(end, { reading: after, last: end.last + events.length });
          }),
        );
      } catch (error) {
        throw toUnavailable(`publish ${events.length} live events of ${key.conversation}`, path, error);
      }
    },

    async *read(key, after, signal) {
      const path = join(conversationDir(dir, key), 'feed.jsonl');
      try {
        yield* follow(path, after, AbortSignal.any([signal, closing.signal]));
      } catch (error) {
        throw toUnavailable(`read the feed of ${key.conversation}`, path, error);
      }
    },

    close: () => closing.abort(),
  };
}

async function readEnd(path: string, end: FeedEnd): Promise<void> {
  const forget = () => Object.assign(end, { birth: 0, first: 1, last: 0 });
  end.reading = await readNewLines(
    path,
    end.reading,
    (line) => {
      const cursor = parseCursor(decodeEvent(line)?.cursor ?? '');
      if (cursor === undefined) return;
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
        if (step !== 'seen') yield event;
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
  const { cursor, event } = value as Partial<FeedEvent>;
  return typeof cursor === 'string' && parseCursor(cursor) !== undefined && event !== undefined ? { cursor, event } : undefined;
}
