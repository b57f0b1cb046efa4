/** What texts of a life mean, as a hash. Keys: keys.ts. */
import { decodeVector, encodeVector, vectorId } from '../codecs/vector-codec.js';
import { decodeJson } from '../codecs/entry-codec.js';
import type { RedisLink } from './link.js';
import { keyOf } from './keys.js';
import type { Vectors } from '../store.js';

/** Of one round trip. */
const AT_ONCE = 1_000;

export function createRedisVectors(link: RedisLink): Vectors {
  return {
    async add(key, vectors) {
      const where = keyOf(key, 'vectors');
      for (const some of inParts(vectors)) {
        await link.ask(`write ${vectors.length} vectors of ${key.conversation}`, async (redis) => {
          const pipeline = redis.pipeline();
          for (const vector of some) pipeline.hsetnx(where, vectorId(vector), encodeVector(vector));
          const failed = (await pipeline.exec())?.find(([error]) => error);
          if (failed?.[0]) throw failed[0];
        });
      }
    },

    async read(key, model) {
      const where = keyOf(key, 'vectors');
      const attempt = `read vectors of ${key.conversation}`;
      const ids = (await link.askUnlessForeign(attempt, (redis) => redis.hkeys(where))) ?? [];
      const wanted = ids.filter((id) => placeIn(id)?.model === model);
      const read: (string | null)[] = [];
      for (const some of inParts(wanted)) read.push(...(await link.ask(attempt, (redis) => redis.hmget(where, ...some))));
      return read.flatMap((line) => decodeVector(line) ?? []).filter((vector) => vector.model === model);
    },

    async keep(key, textsOf) {
      const where = keyOf(key, 'vectors');
      const attempt = `take away vectors of ${key.conversation}`;
      const ids = (await link.askUnlessForeign(attempt, (redis) => redis.hkeys(where))) ?? [];
      if (ids.length === 0) return;
      const texts = await textsOf();
      const gone = ids.filter((id) => {
        const place = placeIn(id);
        return place !== undefined && !texts.has(place.text);
      });
      for (const some of inParts(gone)) await link.ask(attempt, (redis) => redis.hdel(where, ...some));
    },
  };
}

/** Undefined for what is not ours. */
function placeIn(id: string): { readonly model: string; readonly text: number } | undefined {
  const place = decodeJson(id);
  if (!Array.isArray(place)) return undefined;
  const [model, , text] = place as unknown[];
  return typeof model === 'string' && typeof text === 'number' ? { model, text } : undefined;
}

function inParts<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(all.length / AT_ONCE) }, (_, i) => all.slice(i * AT_ONCE, (i + 1) * AT_ONCE));
}
