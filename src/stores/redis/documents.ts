/** MEMORY.md, HISTORY and what lies beside them, in Redis. Keys: keys.ts. */
import type { RedisLink } from './link.js';
import { createProposals } from '../collections/proposals.js';
import { createRedisCollections } from './collections.js';
import { createRedisMemoryText } from './memory-text.js';
import type { Documents, ScopeKey } from '../store.js';
import type { HistoryEntry } from '../../records/memory/documents.js';
import { supersede, toKeptEntry } from '../../records/memory/history-text.js';
import { encodeRecord, toEntry, changeSchema, decodeRecord, redactChange, redactText } from '../codecs/document-codec.js';
import { scopeKeyOf, type ScopeKeyName } from './keys.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { NO_MEMORY_VERSION } from '../../records/memory/memory-lines.js';

export function createRedisDocuments(link: RedisLink): Documents {
  return {
    ...createRedisMemoryText(link),
    ...createRedisHistory(link),
    ...createProposals(createRedisCollections(link)),
    redact: (key, redact) => redactRedis(link, key, redact),
  };
}

/** HISTORY in Redis: the entries as the files would have them, read from the newest on, some at a time. */

const PAGE = 200;

function createRedisHistory(link: RedisLink): Pick<Documents, 'appendHistory' | 'history'> {
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

/**
 * Takes words out of what lies beside MEMORY.md, in Redis. Each record is replaced only as it was read, so that two who redact at
 * once both have their way.
 */

type Redact = (line: string) => string;

const MAX_ATTEMPTS = 10;
const REDACTED_AT_ONCE = 500;

async function redactRedis(link: RedisLink, key: ScopeKey, redact: Redact): Promise<void> {
  const attempt = `redact the documents of ${key.scope}`;
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
    const present = await link.ask(attempt, (redis) => redis.hget(scopeKeyOf(key, 'memory'), 'version'));
    const others =
      // The present version stays as MEMORY.md is: the next edit by hand is compared with it.
      (await redactFields(link, key, 'memory', (field, text) =>
        field.startsWith('text:') && field !== `text:${present ?? NO_MEMORY_VERSION}` ? redactText(text, redact) : text,
      )) +
      (await redactFields(link, key, 'history', (field, text) => (field.startsWith('entry:') ? redactEntry(text, redact) : text))) +
      (await redactFields(link, key, 'proposals', (field, text) => (field.startsWith('prop_') ? redactProposal(text, redact) : text))) +
      (await redactChanges(link, key, redact));
    if (others === 0) return;
  }
  throw link.unavailable(attempt, new Error('others write there all the time'));
}

/** Answers how many batches of records have to be looked at again. */
async function redactFields(
  link: RedisLink,
  key: ScopeKey,
  name: ScopeKeyName,
  change: (field: string, text: string) => string,
): Promise<number> {
  const where = scopeKeyOf(key, name);
  const attempt = `redact the ${name} of ${key.scope}`;
  let others = 0;
  let cursor = '0';
  do {
    const [next, found] = await link.ask(attempt, (redis) => redis.hscan(where, cursor, 'COUNT', REDACTED_AT_ONCE));
    const changed: string[] = [];
    for (let i = 0; i < found.length; i += 2) {
      const [field = '', text = ''] = [found[i], found[i + 1]];
      const after = change(field, text);
      if (after !== text) changed.push(field, text, after);
    }
    if (changed.length > 0) others += 1 - (await link.ask(attempt, (redis) => redis.perduraChange(where, ...changed)));
    cursor = next;
  } while (cursor !== '0');
  return others;
}

async function redactChanges(link: RedisLink, key: ScopeKey, redact: Redact): Promise<number> {
  const where = scopeKeyOf(key, 'changes');
  const attempt = `redact the changes of ${key.scope}`;
  const texts = await link.ask(attempt, (redis) => redis.lrange(where, 0, -1));
  let others = 0;
  for (let from = 0; from < texts.length; from += REDACTED_AT_ONCE) {
    const changed = texts.slice(from, from + REDACTED_AT_ONCE).flatMap((text, i) => {
      const change = decodeRecord(changeSchema, text);
      const after = change ? unlessSame(text, change, redactChange(change, redact)) : redact(text);
      return after === text ? [] : [String(from + i), text, after];
    });
    if (changed.length > 0) others += await link.ask(attempt, (redis) => redis.perduraReplaceItems(where, ...changed));
  }
  return others;
}

function redactEntry(text: string, redact: Redact): string {
  const entry = toEntry(text);
  return entry ? unlessSame(text, entry, { ...entry, text: redactText(entry.text, redact) }) : redact(text);
}

function redactProposal(text: string, redact: Redact): string {
  const value = decodeJson(text);
  if (typeof value !== 'object' || value === null || !('line' in value) || typeof value.line !== 'string') return redact(text);
  return unlessSame(text, value, { ...value, line: redact(value.line) });
}

function unlessSame(text: string, before: object, after: object): string {
  return encodeRecord(before) === encodeRecord(after) ? text : encodeRecord(after);
}
