/** What was paid for, over all conversations in Redis. Keys: keys.ts. */
import { decodeJson } from '../codecs/entry-codec.js';
import { isSpending } from '../../records/spending.js';
import { spendingsPatternOf } from './keys.js';
import { SCAN_STEP } from './lives.js';
import type { RedisLink } from './link.js';
import type { Spendings } from '../store.js';

export function createRedisSpendings(link: RedisLink): Spendings {
  return {
    async *all({ namespace }) {
      const attempt = 'read what was spent';
      // SCAN may name a key twice.
      const seen = new Set<string>();
      for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
        const [next, names] = await link.ask(attempt, (redis) =>
          redis.scan(cursor, 'MATCH', spendingsPatternOf(namespace), 'COUNT', SCAN_STEP),
        );
        for (const name of names) {
          if (seen.has(name)) continue;
          seen.add(name);
          const records = Object.entries((await link.askUnlessForeign(attempt, (redis) => redis.hgetall(name))) ?? {});
          if (records.length === 0) continue;
          const effects = name.replace(/spendings$/, 'effects');
          const marks = await link.askUnlessForeign(attempt, (redis) => redis.hmget(effects, ...records.map(([id]) => `fenced:${id}`)));
          for (const [i, [id, text]] of records.entries()) {
            const spending: unknown = decodeJson(text);
            if (isSpending(spending)) yield { ...spending, id, fenced: typeof marks?.[i] === 'string' };
          }
        }
        cursor = next;
      }
    },
  };
}
