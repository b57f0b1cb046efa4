/** The lives of a conversation as Redis has them. Keys: keys.ts. */
import { scanPatternOf, keyOf, KEY_NAMES, placeInKey } from './keys.js';
import type { LifeStorage } from '../collections/lives.js';
import type { ConversationKey } from '../store.js';
import type { RedisLink } from './link.js';

/** Keys that one step of a scan looks at. */
export const SCAN_STEP = 1_000;

export function createRedisLifeStorage(link: RedisLink): LifeStorage {
  return {
    async archiveShared(key, archived) {
      // As ranges: thousands of slots of another life take no more room than one.
      const ranges = archived.map(([first, last]) => `${first}-${last}`);
      await link.ask(`write where ${key.conversation} begins`, (redis) => redis.sadd(keyOf(key, 'archived'), ...ranges));
    },

    async list({ namespace, conversation, scope = 'default', tree = false }) {
      const found = new Map<string, ConversationKey>();
      const attempt = `look for the lives of ${conversation}`;
      for (const which of tree ? (['own', 'sub-agents'] as const) : (['own'] as const)) {
        for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
          const pattern = scanPatternOf({ namespace, conversation }, which);
          const [next, names] = await link.ask(attempt, (redis) => redis.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_STEP));
          for (const place of names.flatMap((name) => placeInKey(name) ?? [])) {
            found.set(JSON.stringify([place.conversation, place.life]), { namespace, scope, ...place });
          }
          cursor = next;
        }
      }
      return [...found.keys()].sort().flatMap((name) => found.get(name) ?? []);
    },

    async remove(key, attempt) {
      await link.ask(attempt, (redis) => redis.unlink(...KEY_NAMES.map((name) => keyOf(key, name))));
    },
  };
}
