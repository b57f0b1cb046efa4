/**
 * Live events in a Redis stream; cursors are its ids, made by us (feed-cursor.ts).
 *
 * E1  A reader has a connection of its own: a blocking XREAD holds back everything behind it, and waits longer than a command may.
 * E2  A reader outlives an outage: it reads on from its cursor with a new connection until its signal aborts.
 * E3  A feed without news for a day is dropped; a cursor into it gets a resync.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { JsonValue } from '../../records/message.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { createFeedPosition, cursorBefore, OLDEST, RESYNC, type FeedPosition } from '../feed-cursor.js';
import { mayPass, messageOf } from './errors.js';
import { deletedKeyOf, keyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { ConversationKey, Feed, LiveEvent } from '../store.js';

const BLOCK_MS = 5000;
const EVENTS_PER_READ = 256;
const SECONDS_TO_LIVE = 24 * 3600;

export interface RedisFeedOptions {
  readonly maxLength: number;
  readonly log?: (line: string) => void;
}

type FeedEvent = { readonly cursor: string; readonly event: JsonValue };

export interface RedisFeed extends Feed {
  /** What the scripts take before events: batch id, now, most events kept, seconds to live. */
  settings(events: readonly LiveEvent[]): readonly string[];
  /** Ends all its readers. */
  close(): void;
}

export function createRedisFeed(link: RedisLink, { maxLength, log }: RedisFeedOptions): RedisFeed {
  const closing = new AbortController();
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
      const position = createFeedPosition(after);
      for (let failures = 0; !stop.aborted; failures += 1) {
        const reader = link.redis.duplicate({
          retryStrategy: () => null,
          commandTimeout: BLOCK_MS + (link.redis.options.commandTimeout ?? 0),
          socketTimeout: undefined,
        });
        reader.on('error', (error: Error) => {
          if (failures === 0) log?.(`reading the feed of ${key.conversation}: ${error.message}; trying again until it answers`);
        });
        const disconnect = () => reader.disconnect();
        stop.addEventListener('abort', disconnect, { once: true });
        try {
          for await (const event of follow(reader, keyOf(key, 'feed'), position)) {
            failures = 0;
            yield event;
          }
        } catch (error) {
          if (stop.aborted) return;
          if (!mayPass(error)) throw link.unavailable(`read the feed of ${key.conversation}`, error);
          if (failures === 0) log?.(`reading the feed of ${key.conversation}: ${messageOf(error)}; trying again until it answers`);
        } finally {
          stop.removeEventListener('abort', disconnect);
          disconnect();
        }
        await delay(Math.min(100 * (failures + 1), 1000), undefined, { signal: stop }).catch(() => undefined);
      }
    },

    close: () => closing.abort(),
  };
}

export function feedKeys(key: ConversationKey): string[] {
  return [keyOf(key, 'feed'), keyOf(key, 'feed-batches'), keyOf(key, 'feed-ids')];
}

/** As the scripts take them: id or '', JSON. */
export function toEventArguments(events: readonly LiveEvent[]): string[] {
  return events.flatMap(({ id = '', event }) => [id, JSON.stringify(event)]);
}

/** Endless; throws when the connection ends. */
async function* follow(reader: Redis, feed: string, position: FeedPosition): AsyncGenerator<FeedEvent> {
  for (;;) {
    // Asked at the start and after each silence: a feed that was lost in between would otherwise be waited for in vain (C3).
    const [newest] = await reader.xrevrange(feed, '+', '-', 'COUNT', 1);
    if (position.settle(newest?.[0])) yield { cursor: OLDEST, event: RESYNC };

    for (;;) {
      const reply = await reader.xread('COUNT', EVENTS_PER_READ, 'BLOCK', BLOCK_MS, 'STREAMS', feed, position.from());
      if (reply === null) break;
      for (const [cursor, fields] of reply[0]?.[1] ?? []) {
        const step = position.step(cursor);
        if (step === 'gap') yield { cursor: cursorBefore(cursor), event: RESYNC };
        const event = decodeJson(fields[1]);
        if (step !== 'seen' && event !== undefined) yield { cursor, event: event as JsonValue };
      }
    }
  }
}
