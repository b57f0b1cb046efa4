/** The lives of a conversation as Redis has them. Keys: keys.ts. */
import { scanPatternOf, keyOf, KEY_NAMES, lifeInKey } from './keys.js';
import type { LifeStorage } from '../collections/lives.js';
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

    async list({ namespace, conversation, scope = 'default' }) {
      const found = new Set<string>();
      const attempt = `look for the lives of ${conversation}`;
      for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
        const pattern = scanPatternOf(namespace, conversation);
        const [next, names] = await link.ask(attempt, (redis) => redis.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_STEP));
        for (const name of names) found.add(lifeInKey(name));
        cursor = next;
      }
      return [...found].sort().map((life) => ({ namespace, conversation, scope, life }));
    },

    async remove(key, attempt) {
      await link.ask(attempt, (redis) => redis.unlink(...KEY_NAMES.map((name) => keyOf(key, name))));
    },
  };
}
