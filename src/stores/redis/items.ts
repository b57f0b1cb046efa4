/** Contents of the memory channel, in Redis. Keys: keys.ts. */
import { byTime, itemRecordSchema, type ItemRecord } from '../../records/memory/agent-memory.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { deletedKeyOf, keyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { OwnItems } from '../shared-entries.js';

const CITED = 'cited:';

export function createRedisItems(link: RedisLink): OwnItems {
  return {
    async put(key, items) {
      if (items.length === 0) return;
      await link.ask(`store ${items.length} items of ${key.conversation}`, (redis) =>
        redis.perduraPutItems(keyOf(key, 'items'), deletedKeyOf(key), ...toItemArguments(items)),
      );
    },

    async get(key, id) {
      // A field of ours that is no item has another beginning.
      if (id.startsWith(CITED)) return undefined;
      const text = await link.askUnlessForeign(`read item ${id} of ${key.conversation}`, (redis) => redis.hget(keyOf(key, 'items'), id));
      return text === '' ? null : toItem(text);
    },

    async list(key, { session } = {}) {
      const fields = await link.askUnlessForeign(`read the items of ${key.conversation}`, (redis) => redis.hgetall(keyOf(key, 'items')));
      if (fields === undefined) return { items: [], removed: [], skipped: 1 };
      const texts = Object.entries(fields).flatMap(([field, text]) => (field.startsWith(CITED) || text === '' ? [] : [text]));
      const items = texts.flatMap((text) => toItem(text) ?? []);
      return {
        items: items.filter((item) => session === undefined || item.session === session).sort(byTime),
        removed: Object.entries(fields).flatMap(([field, text]) => (text === '' && !field.startsWith(CITED) ? [field] : [])),
        skipped: texts.length - items.length,
      };
    },

    async remove(key, ids) {
      if (ids.length === 0) return;
      await link.ask(`remove ${ids.length} items of ${key.conversation}`, (redis) =>
        redis.hset(keyOf(key, 'items'), Object.fromEntries(ids.map((id) => [id, '']))),
      );
    },

    async cite(key, id, citation) {
      await link.ask(`store what is shown for item ${id} of ${key.conversation}`, (redis) =>
        redis.hsetnx(keyOf(key, 'items'), `${CITED}${id}`, citation),
      );
    },

    async citations(key, ids) {
      if (ids.length === 0) return [];
      const texts = await link.askUnlessForeign(`read what is shown for items of ${key.conversation}`, (redis) =>
        redis.hmget(keyOf(key, 'items'), ...ids.map((id) => `${CITED}${id}`)),
      );
      return ids.map((_, i) => texts?.[i] ?? undefined);
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
