/**
 * Live events in a Redis stream; cursors are its ids, made by us (feed-cursor.ts). All readers share one connection (follower.ts).
 * A feed without news for a day is dropped; a cursor into it gets a resync.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { OLDEST } from '../feed-cursor.js';
import { readFeed } from '../feed-tail.js';
import { mayPass } from './errors.js';
import { createRedisFollower, toEvents } from './follower.js';
import { deletedKeyOf, keyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { ConversationKey, Feed, LiveEvent } from '../store.js';
import { errorMessage } from '../../platform/errors.js';

const EVENTS_PER_READ = 256;
const SECONDS_TO_LIVE = 24 * 3600;

export interface RedisFeedOptions {
  readonly maxLength: number;
  readonly log?: (line: string) => void;
}

export interface RedisFeed extends Feed {
  /** What the scripts take before events: batch id, now, most events kept, seconds to live. */
  settings(events: readonly LiveEvent[]): readonly string[];
  /** Ends all its readers. */
  close(): void;
}

export function createRedisFeed(link: RedisLink, { maxLength, log }: RedisFeedOptions): RedisFeed {
  const closing = new AbortController();
  const follower = createRedisFollower(link, log);
  const settings = (events: readonly LiveEvent[]): string[] => {
    if (events.length === 0) return ['', '', '', ''];
    const batch = events.every(({ id }) => id !== undefined) ? '' : randomUUID();
    return [batch, String(Date.now()), String(maxLength), String(SECONDS_TO_LIVE)];
  };
  return {
    async publish(key, events) {
      if (events.length === 0) return;
      await link.ask(`publish ${events.length} live events of ${key.conversation}`, (redis) =>
        redis.perduraPublish(...feedKeys(key), deletedKeyOf(key), ...settings(events), ...toEventArguments(events)),
      );
    },

    async newest(key) {
      const [newest] = await link.ask(`look for the latest live event of ${key.conversation}`, (redis) =>
        redis.xrevrange(keyOf(key, 'feed'), '+', '-', 'COUNT', 1),
      );
      return newest?.[0] ?? OLDEST;
    },

    settings,

    async *read(key, after, signal) {
      const stop = AbortSignal.any([signal, closing.signal]);
      const feed = keyOf(key, 'feed');
      const attempt = `read the feed of ${key.conversation}`;
      const ask = <T>(command: (redis: Redis) => Promise<T>, unread: T): Promise<T> =>
        untilAnswered(() => command(link.redis), {
          unread,
          stop,
          log: (reason) => log?.(`cannot ${attempt}: ${reason}; trying again until it answers`),
        });
      try {
        yield* readFeed(after, stop, {
          newest: async () => (await ask((redis) => redis.xrevrange(feed, '+', '-', 'COUNT', 1), []))[0]?.[0],
          async page(from) {
            const reply = await ask((redis) => redis.xread('COUNT', EVENTS_PER_READ, 'STREAMS', feed, from), null);
            return toEvents(reply?.[0]?.[1] ?? [])[0];
          },
          join: (newest) => follower.join(feed, newest),
          leave: (tail) => follower.leave(feed, tail),
        });
      } catch (error) {
        throw link.unavailable(attempt, error);
      }
    },

    close() {
      closing.abort();
      follower.close();
    },
  };
}

interface Asking<T> {
  /** What stands for the answer once it is given up. */
  readonly unread: T;
  readonly stop: AbortSignal;
  readonly log: (reason: string) => void;
}

/** A reader outlives an outage: it asks until there is an answer, or `stop` aborts. */
async function untilAnswered<T>(command: () => Promise<T>, { unread, stop, log }: Asking<T>): Promise<T> {
  let leave!: () => void;
  const stopped = new Promise<T>((resolve) => (leave = () => resolve(unread)));
  stop.addEventListener('abort', leave, { once: true });
  try {
    for (let failures = 0; !stop.aborted; failures += 1) {
      try {
        return await Promise.race([command(), stopped]);
      } catch (error) {
        if (!mayPass(error)) throw error;
        if (failures === 0) log(errorMessage(error));
        await delay(Math.min(100 * (failures + 1), 1000), undefined, { signal: stop }).catch(() => undefined);
      }
    }
    return unread;
  } finally {
    stop.removeEventListener('abort', leave);
  }
}

export function feedKeys(key: ConversationKey): string[] {
  return [keyOf(key, 'feed'), keyOf(key, 'feed-batches'), keyOf(key, 'feed-ids')];
}

/** As the scripts take them: id or '', JSON. */
export function toEventArguments(events: readonly LiveEvent[]): string[] {
  return events.flatMap(({ id = '', event }) => [id, JSON.stringify(event)]);
}
