/**
 * Live events in a Redis stream; cursors are its ids, made by us (feed-cursor.ts). A feed without news for a day is dropped; a cursor into it
 * gets a resync.
 *
 * All readers of this process share one connection: a blocking XREAD holds back everything behind it, and waits longer than a command may.
 * In a cluster it may only name feeds of one slot: cluster-feed.ts has another way.
 *
 * - One connection, however many feeds and readers, and none without a reader.
 * - It outlives an outage, and then looks each feed up anew: a lost one would never answer (stores/cursor-of-a-lost-feed). So it does with
 *   a feed that is silent.
 * - A feed that a reader joins while it waits is followed at once: a stream for that wakes it. That takes no more rights than events do.
 */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { JsonValue } from '../../records/message.js';
import { decodeJson } from '../codecs.js';
import { OLDEST } from '../feed-cursor.js';
import { countReaders, readFeed, type FeedEvent, type FeedFollower, type Followed } from '../feed-tail.js';
import { createClusterFollower } from './cluster-feed.js';
import { deletedKey, lifeKey, WAKE_KEY } from './keys.js';
import type { RedisLink, ScriptedRedis } from './link.js';
import { isReply, mayPass } from './replies.js';
import type { ConversationKey, Feed, LiveEvent } from '../store.js';
import { errorMessage } from '../../platform/errors.js';

const EVENTS_PER_READ = 256;
const SECONDS_TO_LIVE = 24 * 3600;

export interface RedisFeedOptions {
  readonly maxLength: number;
  readonly log?: (line: string) => void;
}

export interface RedisFeed extends Feed {
  /** What the scripts take before events: batch id, now, most events, seconds to live. */
  settings(events: readonly LiveEvent[]): readonly string[];
  /** Ends all its readers. */
  close(): void;
}

export function createRedisFeed(link: RedisLink, { maxLength, log }: RedisFeedOptions): RedisFeed {
  const closing = new AbortController();
  const follower = link.cluster === undefined ? createRedisFollower(link, log) : createClusterFollower(link.cluster, log);
  const settings = (events: readonly LiveEvent[]): string[] => {
    if (events.length === 0) return ['', '', '', ''];
    const batch = events.every(({ id }) => id !== undefined) ? '' : randomUUID();
    return [batch, String(Date.now()), String(maxLength), String(SECONDS_TO_LIVE)];
  };
  return {
    async publish(key, events) {
      if (events.length === 0) return;
      await link.ask(`publish ${events.length} live events of ${key.conversation}`, (redis) =>
        redis.perduraPublish(...feedKeys(key), deletedKey(key), ...settings(events), ...toEventArguments(link, events)),
      );
    },

    async newest(key) {
      const [newest] = await link.ask(`look for the latest live event of ${key.conversation}`, (redis) =>
        redis.xrevrange(lifeKey(key, 'feed'), '+', '-', 'COUNT', 1),
      );
      return newest?.[0] ?? OLDEST;
    },

    settings,

    async *read(key, after, signal) {
      const stop = AbortSignal.any([signal, closing.signal]);
      const feed = lifeKey(key, 'feed');
      const attempt = `read the feed of ${key.conversation}`;
      const ask = <T>(command: (redis: ScriptedRedis) => Promise<T>, unread: T): Promise<T> =>
        untilAnswered(() => command(link.redis), {
          unread,
          stop,
          log: (reason) => log?.(`cannot ${attempt}: ${reason}; trying again until it answers`),
        });
      try {
        yield* readFeed(after, stop, {
          newest: async () => (await ask((redis) => redis.xrevrange(feed, '+', '-', 'COUNT', 1), []))[0]?.[0],
          pageSize: EVENTS_PER_READ,
          async page(from) {
            const reply = await ask((redis) => redis.xread('COUNT', EVENTS_PER_READ, 'STREAMS', feed, from), null);
            return toEvents(link, reply?.[0]?.[1] ?? []);
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
  /** The value in place of the answer once it is given up. */
  readonly unread: T;
  readonly stop: AbortSignal;
  readonly log: (reason: string) => void;
}

/** A reader outlives an outage: it repeats its request until there is an answer, or `stop` aborts. */
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
  return [lifeKey(key, 'feed'), lifeKey(key, 'feed-batches'), lifeKey(key, 'feed-ids')];
}

/** As the scripts take them: id or '', JSON. */
export function toEventArguments({ atRest }: RedisLink, events: readonly LiveEvent[]): string[] {
  return events.flatMap(({ id = '', event }) => [id, atRest.seal(JSON.stringify(event))]);
}

const BLOCK_MS = 5000;
/** Most events of one read, of all feeds together. */
const EVENTS_AT_ONCE = 4096;
/** For each feed that it waits for Redis does some work: with many of them it lets events gather, for as long as no person notices. */
const PAUSE_MS_PER_FEED = 0.02;
const MAX_PAUSE_MS = 20;
const WAKE_SECONDS = 60;
const MAX_BETWEEN_TRIES_MS = 1000;

/** When Redis last answered about it. */
interface Heard {
  heardAt: number;
}

function createRedisFollower(link: RedisLink, log?: (line: string) => void): FeedFollower {
  const feeds = new Map<string, Followed<Heard>>();
  const wakeKey = `${WAKE_KEY}:${randomUUID()}`;
  let wokenAt = OLDEST;
  let isRunning = false;
  let lastServer: string | undefined;
  const closing = new AbortController();
  let connection: Redis | undefined;
  /** It blocks, and does not know yet of a feed that was joined since. */
  let isDeaf = false;
  let isLeft = false;

  const wake = (): void => {
    if (!isDeaf) return;
    isDeaf = false;
    const waiting = connection;
    link.redis
      .xadd(wakeKey, 'MAXLEN', 1, '*', 'woken', '1')
      .then(() => link.redis.expire(wakeKey, WAKE_SECONDS))
      // A Redis that takes no writes now: a new connection requests all feeds too.
      .catch(() => {
        isLeft = true;
        waiting?.disconnect();
      });
  };

  /** Looks feeds up; one that is no stream ends its readers, and no others. */
  const look = async (redis: Redis, which: readonly [string, Followed<Heard>][]): Promise<void> => {
    await Promise.all(
      which.map(async ([feed, followed]) => {
        try {
          const [newest] = await redis.xrevrange(feed, '+', '-', 'COUNT', 1);
          followed.heardAt = Date.now();
          followed.tail.look(newest?.[0]);
        } catch (error) {
          if (!isReply(error) || mayPass(error)) throw error;
          end(feed, followed, error);
        }
      }),
    );
  };

  const end = (feed: string, followed: Followed<Heard>, error: unknown): void => {
    if (feeds.get(feed) === followed) feeds.delete(feed);
    followed.tail.fail(error);
  };

  const readOnce = async (redis: Redis): Promise<void> => {
    const names = [...feeds.keys()];
    const count = Math.min(EVENTS_PER_READ, Math.max(8, Math.floor(EVENTS_AT_ONCE / names.length)));
    const from = [...feeds.values()].map(({ tail }) => tail.head());
    isDeaf = true;
    const reply = await redis.xread('COUNT', count, 'BLOCK', BLOCK_MS, 'STREAMS', ...names, wakeKey, ...from, wokenAt);
    isDeaf = false;
    for (const [feed, items] of reply ?? []) {
      if (feed === wakeKey) wokenAt = items.at(-1)?.[0] ?? wokenAt;
      const followed = feeds.get(feed);
      if (followed === undefined) continue;
      followed.heardAt = Date.now();
      followed.tail.ring(items.at(-1)?.[0]);
    }
  };

  const follow = async (redis: Redis, heard: () => void): Promise<void> => {
    await look(redis, [...feeds]);
    heard();
    // A failover: events may be lost, and others be in their place by now, under the same cursors.
    const server = serverAddress(redis);
    if (lastServer !== undefined && server !== lastServer) for (const { tail } of feeds.values()) tail.restart(undefined);
    lastServer = server;
    let lookedAt = Date.now();
    while (feeds.size > 0) {
      await readOnce(redis).catch(async (error: unknown) => {
        if (!isReply(error) || mayPass(error)) throw error;
        // One of them is to blame, and is named when each is looked up; where none is, Redis does not let us read at all.
        const before = feeds.size;
        await look(redis, [...feeds]);
        if (feeds.size === before) for (const [feed, followed] of feeds) end(feed, followed, error);
      });
      const now = Date.now();
      if (now - lookedAt < BLOCK_MS) {
        if (feeds.size > 1) await delay(Math.min(MAX_PAUSE_MS, feeds.size * PAUSE_MS_PER_FEED));
        continue;
      }
      lookedAt = now;
      const silent = [...feeds].filter(([, { heardAt }]) => now - heardAt >= BLOCK_MS);
      await look(redis, silent);
    }
  };

  const run = async (): Promise<void> => {
    for (let failures = 0; feeds.size > 0 && !closing.signal.aborted; failures += 1) {
      isLeft = false;
      const redis = link.duplicate({
        retryStrategy: () => null,
        commandTimeout: BLOCK_MS + link.commandTimeoutMs,
        socketTimeout: undefined,
      });
      connection = redis;
      const report = (error: unknown): void => {
        if (failures === 0 && !closing.signal.aborted && !isLeft)
          log?.(`reading live events: ${errorMessage(error)}; trying again until it answers`);
      };
      redis.on('error', report);
      try {
        await follow(redis, () => (failures = 0));
      } catch (error) {
        report(error);
      } finally {
        isDeaf = false;
        connection = undefined;
        redis.disconnect();
      }
      if (feeds.size > 0 && !closing.signal.aborted && !isLeft) await pause(100 * (failures + 1));
    }
  };

  const pause = (ms: number): Promise<void> =>
    delay(Math.min(ms, MAX_BETWEEN_TRIES_MS), undefined, { signal: closing.signal }).catch(() => undefined);

  const start = (): void => {
    isRunning = true;
    void run().finally(() => {
      isRunning = false;
      // One was joined after the last look at what there is to follow.
      if (feeds.size > 0 && !closing.signal.aborted) start();
    });
  };

  return {
    ...countReaders(feeds, {
      begin: () => ({ heardAt: Date.now() }),
      begun: () => {
        if (isRunning) wake();
        else start();
      },
      left: () => undefined,
    }),

    close() {
      closing.abort();
      connection?.disconnect();
    },
  };
}

/** Of the server to which it is connected, which Sentinels and names may change. */
function serverAddress(redis: Redis): string {
  const { remoteAddress, remotePort } = (redis as unknown as { readonly stream: Socket }).stream;
  return `${remoteAddress}:${remotePort}`;
}

function toEvents({ atRest }: RedisLink, items: readonly [string, string[]][]): FeedEvent[] {
  return items.flatMap(([cursor, fields]) => {
    const event = fields[1] === undefined ? undefined : decodeJson(atRest.openRecord(fields[1]));
    return event === undefined ? [] : [{ cursor, event: event as JsonValue }];
  });
}
