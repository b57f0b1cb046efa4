/** Contents of the memory channel, in Redis. Keys: keys.ts. */
import { byTime, itemRecordSchema, type ItemRecord } from '../../records/memory/agent-memory.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { keyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { Items } from '../store.js';

const CITED = 'cited:';

export function createRedisItems(link: RedisLink): Items {
  return {
    async put(key, items) {
      if (items.length === 0) return;
      await link.ask(`store ${items.length} items of ${key.conversation}`, (redis) =>
        redis.perduraPutItems(keyOf(key, 'items'), ...toItemArguments(items)),
      );
    },

    async get(key, id) {
      // A field of ours that is no item has another beginning.
      if (id.startsWith(CITED)) return undefined;
      const text = await link.askUnlessForeign(`read item ${id} of ${key.conversation}`, (redis) => redis.hget(keyOf(key, 'items'), id));
      return toItem(text);
    },

    async list(key, { session } = {}) {
      const fields = await link.askUnlessForeign(`read the items of ${key.conversation}`, (redis) => redis.hgetall(keyOf(key, 'items')));
      if (fields === undefined) return { items: [], skipped: 1 };
      const texts = Object.entries(fields).flatMap(([field, text]) => (field.startsWith(CITED) || text === '' ? [] : [text]));
      const items = texts.flatMap((text) => toItem(text) ?? []);
      return {
        items: items.filter((item) => session === undefined || item.session === session).sort(byTime),
        skipped: texts.length - items.length,
      };
    },

    async remove(key, ids) {
      if (ids.length === 0) return;
      await link.ask(`remove ${ids.length} items of ${key.conversation}`, (redis) =>
        redis.hset(keyOf(key, 'items'), Object.fromEntries(ids.map((id) => [id, '']))),
      );
    },

    async cite(key, callId, citation) {
      await link.ask(`store what stands for the result of ${callId} of ${key.conversation}`, (redis) =>
        redis.hsetnx(keyOf(key, 'items'), `${CITED}${callId}`, citation),
      );
    },

    async citations(key, callIds) {
      if (callIds.length === 0) return [];
      const texts = await link.askUnlessForeign(`read what stands for results of ${key.conversation}`, (redis) =>
        redis.hmget(keyOf(key, 'items'), ...callIds.map((id) => `${CITED}${id}`)),
      );
      return callIds.map((_, i) => texts?.[i] ?? undefined);
    },
  };
}

/** As the scripts take them: id, JSON. */
export function toItemArguments(items: readonly ItemRecord[]): string[] {
  return items.flatMap((item) => [item.id, JSON.stringify(item)]);
}

function toItem(text: string | null | undefined): ItemRecord | undefined {
  return text === '' ? undefined : itemRecordSchema.safeParse(decodeJson(text)).data;
}
