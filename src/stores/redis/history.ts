/** HISTORY in Redis: the entries as the files would have them, read from the newest on, some at a time. */
import type { HistoryEntry } from '../../records/memory/documents.js';
import { supersede, toKeptEntry } from '../../records/memory/history-text.js';
import { encodeRecord, toEntry } from '../codecs/document-codec.js';
import { scopeKeyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { Documents, ScopeKey } from '../store.js';

const PAGE = 200;

export function createRedisHistory(link: RedisLink): Pick<Documents, 'appendHistory' | 'history'> {
  return {
    async appendHistory(key, given) {
      const kept = toKeptEntry(given);
      const answer = await append(link, key, kept, '');
      if (answer[0] !== 'fallback') return answer[0];
      const [status] = await append(link, key, toKeptEntry(supersede(kept, Number(answer[1]) / 1000)), '1');
      return status === 'fallback' ? 'known' : status;
    },

    async *history(key) {
      const attempt = `read the HISTORY of ${key.scope}`;
      // Pages begin at a time, not at a place: what is appended meanwhile moves all places.
      let from = '+inf';
      let seen: readonly string[] = [];
      for (;;) {
        const rows = await link.askUnlessForeign(attempt, (redis) =>
          redis.zrevrangebyscore(scopeKeyOf(key, 'history-order'), from, '-inf', 'WITHSCORES', 'LIMIT', 0, PAGE + seen.length),
        );
        const numbers = pairs(rows ?? []).filter(([number]) => !seen.includes(number));
        const last = numbers.at(-1);
        if (last === undefined) return;
        const texts = await link.askUnlessForeign(attempt, (redis) =>
          redis.hmget(scopeKeyOf(key, 'history'), ...numbers.map(([number]) => `entry:${number}`)),
        );
        yield* (texts ?? []).flatMap((text) => toEntry(text) ?? []);
        const ofLast = numbers.filter(([, time]) => time === last[1]).map(([number]) => number);
        seen = last[1] === from ? [...seen, ...ofLast] : ofLast;
        from = last[1];
      }
    },
  };
}

function append(link: RedisLink, key: ScopeKey, entry: HistoryEntry, supersedes: '' | '1') {
  return link.ask(`append ${entry.kind} ${entry.id} to the HISTORY of ${key.scope}`, (redis) =>
    redis.perduraAppendHistory(
      ...[scopeKeyOf(key, 'history'), scopeKeyOf(key, 'history-order')],
      ...[entry.kind, entry.id, String(Math.round(entry.ts * 1000)), encodeRecord(entry), supersedes],
    ),
  );
}

function pairs(texts: readonly string[]): [member: string, score: string][] {
  return Array.from({ length: texts.length / 2 }, (_, i) => [texts[2 * i] ?? '', texts[2 * i + 1] ?? '']);
}
