/** How lives stand on each other, in Redis. Keys: redis.ts. */
import { scanPatternOf, keyOf, KEY_NAMES, lifeInKey } from './keys.js';
import { decodeBeginning, decodeCut, decodeFork } from '../codecs/lives-codec.js';
import type { RedisLink } from './link.js';
import type { ConversationKey, Lives } from '../store.js';

const BEGINNING = 'beginning';
const CUT = 'cut:';
const FORK = 'fork:';
/** Keys that one step of a scan looks at. */
const SCAN_STEP = 1_000;

export function createRedisLives(link: RedisLink): Lives {
  const where = (key: ConversationKey): string => keyOf(key, 'lineage');
  const lives: Lives = {
    async begin(key, beginning) {
      const { conversation, life, scope, namespace } = key;
      const attempt = `write where ${conversation} begins`;
      // First the other lives are told: one that is shared must not be deleted.
      for (const source of beginning.shared) {
        const fork = JSON.stringify({ conversation, life, scope });
        await link.ask(attempt, (redis) => redis.hset(where({ ...source, namespace }), `${FORK}${conversation}/${life}`, fork));
      }
      await link.ask(attempt, (redis) => redis.hsetnx(where(key), BEGINNING, JSON.stringify(beginning)));
      // As ranges: thousands of slots of another life take no more room than one.
      const archived = beginning.archived.map(([first, last]) => `${first}-${last}`);
      if (archived.length > 0) await link.ask(attempt, (redis) => redis.sadd(keyOf(key, 'archived'), ...archived));
    },

    async beginning(key) {
      const text = await link.askUnlessForeign(`read where ${key.conversation} begins`, (redis) => redis.hget(where(key), BEGINNING));
      return decodeBeginning(text);
    },

    async forks(key) {
      const fields = await link.askUnlessForeign(`read the forks of ${key.conversation}`, (redis) => redis.hgetall(where(key)));
      const told = Object.entries(fields ?? {}).flatMap(([field, text]) => (field.startsWith(FORK) ? (decodeFork(text) ?? []) : []));
      const there = await Promise.all(told.map((fork) => lives.beginning({ ...fork, namespace: key.namespace })));
      return told.filter((_, i) => there[i] !== undefined).map(({ conversation, life }) => ({ conversation, life }));
    },

    async cut(key, cut) {
      await link.ask(`cut turns out of ${key.conversation}`, (redis) => redis.hsetnx(where(key), `${CUT}${cut.id}`, JSON.stringify(cut)));
    },

    async cuts(key) {
      const fields = await link.askUnlessForeign(`read the branches of ${key.conversation}`, (redis) => redis.hgetall(where(key)));
      const cuts = Object.entries(fields ?? {}).flatMap(([field, text]) => (field.startsWith(CUT) ? (decodeCut(text) ?? []) : []));
      return cuts.sort((a, b) => a.branch - b.branch);
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

    async delete(key) {
      const beginning = await lives.beginning(key);
      const attempt = `delete ${key.conversation}`;
      for (const source of beginning?.shared ?? []) {
        const field = `${FORK}${key.conversation}/${key.life}`;
        await link.ask(attempt, (redis) => redis.hdel(where({ ...source, namespace: key.namespace }), field));
      }
      await link.ask(attempt, (redis) => redis.unlink(...KEY_NAMES.map((name) => keyOf(key, name))));
    },
  };
  return lives;
}
