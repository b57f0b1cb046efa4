/** Small collections as Redis hashes: id -> record. Keys: keys.ts. */
import { setTimeout as delay } from 'node:timers/promises';
import { decodeJson } from '../codecs/entry-codec.js';
import { deletedKeyOf, keyOf, pinsKeyOf, scopeKeyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { Collection, OpenCollection, Place, RecordCodec } from '../collections/collection.js';

/** Each time another writer was quicker. */
const MAX_ATTEMPTS = 50;

export function createRedisCollections(link: RedisLink): OpenCollection {
  return <Item extends object>(place: Place, { idOf, encode, decode }: RecordCodec<Item>): Collection<Item> => {
    const where = keyOfPlace(place);
    const parse = (fields: Readonly<Record<string, string | Buffer>>): [id: string, item: Item | undefined][] =>
      Object.entries(fields).map(([id, text]) => {
        const item = decode(text.toString());
        return [id, item !== undefined && idOf(item) === id ? item : undefined];
      });

    return {
      async read(attempt, foreign = 'skip') {
        const ask = foreign === 'skip' ? link.askUnlessForeign : link.ask;
        const fields = await ask(attempt, (redis) => redis.hgetall(where));
        if (fields === undefined) return { items: [], skipped: 1 };
        const records = parse(fields);
        const items = records.flatMap(([, item]) => item ?? []);
        return { items, skipped: records.length - items.length };
      },

      async change(attempt, decide) {
        for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
          // As bytes: what somebody else wrote there is compared, and may be no UTF-8.
          const fields = await link.ask(attempt, (redis) => redis.hgetallBuffer(where));
          const texts = new Map(Object.entries(fields));
          const records = parse(fields);
          const before = records.flatMap(([, item]) => item ?? []);
          const taken = records.flatMap(([id, item]) => (item === undefined ? [id] : []));
          const after = await decide(before, taken);
          if (after === undefined) return;
          const known = new Set(before);
          const ids = new Set(after.map(idOf));
          const changes = [
            ...after
              .filter((item) => !known.has(item) && !isNewer(texts.get(idOf(item))))
              .flatMap((item) => [idOf(item), texts.get(idOf(item)) ?? '', encode(item)]),
            ...before.filter((item) => !ids.has(idOf(item))).flatMap((item) => [idOf(item), texts.get(idOf(item)) ?? '', '']),
          ];
          if (changes.length === 0) return;
          if ((await link.ask(attempt, (redis) => redis.perduraChange(where, ...changes))) === 1) return;
          await delay(Math.random() * 5 * attempts);
        }
        throw link.unavailable(attempt, new Error('others write there all the time'));
      },
    };
  };
}

/** What a newer program wrote stays. */
function isNewer(text: Buffer | undefined): boolean {
  const value = decodeJson(text?.toString());
  return typeof value === 'object' && value !== null && 'v' in value && typeof value.v === 'number' && value.v > 1;
}

function keyOfPlace(place: Place): string {
  switch (place.name) {
    case 'episodes':
    case 'lineage':
    case 'cuts':
    case 'forks':
    case 'turn-ends':
      return keyOf(place.key, place.name);
    case 'deleted':
      return deletedKeyOf(place.key);
    case 'pins':
      return pinsKeyOf(place.key);
    default:
      return scopeKeyOf(place.key, place.name);
  }
}
