/** MEMORY.md, HISTORY and what lies beside them, in Redis. Keys: keys.ts; the rules of the scripts: scripts.ts. */
import { z } from 'zod';
import type { HistoryEntry, MemoryChange, MemoryText } from '../../records/memory/documents.js';
import { supersede, toKeptEntry } from '../../records/memory/history-text.js';
import { memoryVersion, newLines, NO_MEMORY_VERSION } from '../../records/memory/memory-lines.js';
import {
  changeSchema,
  encodeRecord,
  entrySchema,
  redactChange,
  redactRecord,
  redactText,
  refuseLongMemory,
  toChange,
  toEntry,
  toMemoryText,
} from '../codecs.js';
import { createProposals } from '../collections/proposals.js';
import { createRedisCollections } from './collections.js';
import { scopeKey, type ScopeKeyName } from './keys.js';
import type { RedisLink } from './link.js';
import { DocumentRefused, MAX_MEMORY, type Documents, type ScopeKey } from '../store.js';

/**
 * KEYS[1] memory, KEYS[2] changes. ARGV: id, version that it is made from, version, text, change. `edited` when the text is not the
 * one that was written last: a person was there, and that is reported first.
 */
const WRITE_MEMORY = `
local id, from, version, text = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local known = redis.call('HMGET', KEYS[1], 'id:' .. id, 'version', 'text', 'sum')
redis.call('LLEN', KEYS[2])
if known[1] then return {'written', known[1]} end
if redis.sha1hex(known[3] or '') ~= (known[4] or redis.sha1hex('')) then return {'edited'} end
if (known[2] or 'empty') ~= from then return {'conflict', known[2] or 'empty', known[3] or ''} end
redis.call('HSET', KEYS[1], 'id:' .. id, version, 'version', version, 'text', text, 'sum', redis.sha1hex(text), 'text:' .. version, text)
redis.call('RPUSH', KEYS[2], ARGV[5])
return {'written', version}
`;

/** KEYS[1] memory, KEYS[2] changes. ARGV: version before, text as it is, its version, change. 0 when it is another by now. */
const SEE_HAND = `
local now = redis.call('HMGET', KEYS[1], 'version', 'text')
redis.call('LLEN', KEYS[2])
if (now[1] or 'empty') ~= ARGV[1] or (now[2] or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[3], 'sum', redis.sha1hex(ARGV[2]), 'text:' .. ARGV[3], ARGV[2])
redis.call('RPUSH', KEYS[2], ARGV[4])
return 1
`;

/**
 * KEYS[1] history, KEYS[2] history-order. ARGV: kind, id, milliseconds, entry, '1' when the entry says what it supersedes. A summary
 * that does not, but should, is not written: the answer is `fallback` and the time of the raw fallback, which stays what it is.
 */
const APPEND_HISTORY = `
local kind, id = ARGV[1], ARGV[2]
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or 0) or 0
redis.call('ZCARD', KEYS[2])
local function numberOf(other) return redis.call('HGET', KEYS[1], 'of:' .. other .. ':' .. id) end
if numberOf(kind) then return {'known'} end
if kind == 'raw-fallback' and numberOf('summary') then return {'superseded'} end
local fallback = kind == 'summary' and numberOf('raw-fallback')
local since = fallback and redis.call('ZSCORE', KEYS[2], fallback)
if since and ARGV[5] ~= '1' then return {'fallback', since} end
-- Of one width, so that entries of the same time lie in the order of writing.
local number = string.format('%010d', last + 1)
redis.call('HSET', KEYS[1], 'last', string.format('%d', last + 1), 'entry:' .. number, ARGV[4], 'of:' .. kind .. ':' .. id, number)
redis.call('ZADD', KEYS[2], ARGV[3], number)
return {'appended'}
`;

/** KEYS[1] list. ARGV: place from 0 (the list only grows at its end), what it was, what it becomes, and so on. Answers how many are others by now. */
const REPLACE_ITEMS = `
local others = 0
for i = 1, #ARGV, 3 do
  local now = redis.call('LINDEX', KEYS[1], ARGV[i])
  if now == ARGV[i + 1] then redis.call('LSET', KEYS[1], ARGV[i], ARGV[i + 2])
  elseif now and now ~= ARGV[i + 2] then others = others + 1 end
end
return others
`;

export const DOCUMENT_SCRIPTS = {
  perduraWriteMemory: { lua: WRITE_MEMORY, numberOfKeys: 2 },
  perduraSeeHand: { lua: SEE_HAND, numberOfKeys: 2 },
  perduraAppendHistory: { lua: APPEND_HISTORY, numberOfKeys: 2 },
  perduraReplaceItems: { lua: REPLACE_ITEMS, numberOfKeys: 1 },
} as const;

export interface DocumentScriptAnswers {
  readonly perduraWriteMemory: readonly ['written', string] | readonly ['edited'] | readonly ['conflict', string, string];
  readonly perduraSeeHand: number;
  readonly perduraAppendHistory: readonly ['known' | 'superseded' | 'appended'] | readonly ['fallback', string];
  readonly perduraReplaceItems: number;
}

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
      const entry = toKeptEntry(given);
      const answer = await append(link, key, entry, '');
      if (answer[0] !== 'fallback') return answer[0];
      const [status] = await append(link, key, toKeptEntry(supersede(entry, Number(answer[1]) / 1000)), '1');
      return status === 'fallback' ? 'known' : status;
    },

    async *history(key) {
      const attempt = `read the HISTORY of ${key.scope}`;
      // Pages begin at a time, not at a place: what is appended meanwhile moves all places.
      let from = '+inf';
      let seen: readonly string[] = [];
      for (;;) {
        const rows = await link.askUnlessForeign(attempt, (redis) =>
          redis.zrevrangebyscore(scopeKey(key, 'history-order'), from, '-inf', 'WITHSCORES', 'LIMIT', 0, PAGE + seen.length),
        );
        const numbers = pairs(rows ?? []).filter(([number]) => !seen.includes(number));
        const last = numbers.at(-1);
        if (last === undefined) return;
        const texts = await link.askUnlessForeign(attempt, (redis) =>
          redis.hmget(scopeKey(key, 'history'), ...numbers.map(([number]) => `entry:${number}`)),
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
      ...[scopeKey(key, 'history'), scopeKey(key, 'history-order')],
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
    const present = await link.ask(attempt, (redis) => redis.hget(scopeKey(key, 'memory'), 'version'));
    const others =
      // The present version stays as MEMORY.md is: the next edit by hand is compared with it.
      (await redactFields(link, key, 'memory', (field, text) =>
        field.startsWith('text:') && field !== `text:${present ?? NO_MEMORY_VERSION}` ? redactText(text, redact) : text,
      )) +
      (await redactFields(link, key, 'history', (field, text) =>
        field.startsWith('entry:')
          ? redactRecord(entrySchema, text, redact, (entry) => ({ ...entry, text: redactText(entry.text, redact) }))
          : text,
      )) +
      (await redactFields(link, key, 'proposals', (field, text) =>
        field.startsWith('prop_')
          ? redactRecord(z.looseObject({ line: z.string() }), text, redact, (one) => ({ ...one, line: redact(one.line) }))
          : text,
      )) +
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
  const where = scopeKey(key, name);
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
  const where = scopeKey(key, 'changes');
  const attempt = `redact the changes of ${key.scope}`;
  const texts = await link.ask(attempt, (redis) => redis.lrange(where, 0, -1));
  let others = 0;
  for (let from = 0; from < texts.length; from += REDACTED_AT_ONCE) {
    const changed = texts.slice(from, from + REDACTED_AT_ONCE).flatMap((text, i) => {
      const after = redactRecord(changeSchema, text, redact, (change) => redactChange(change, redact));
      return after === text ? [] : [String(from + i), text, after];
    });
    if (changed.length > 0) others += await link.ask(attempt, (redis) => redis.perduraReplaceItems(where, ...changed));
  }
  return others;
}

/** Each time somebody else was quicker. */
const MAX_EDITS = 20;

/** MEMORY.md and its changes. A person may edit it there too: `HSET perdura:{m:…}:memory text "…"`. */
function createRedisMemoryText(link: RedisLink): Pick<Documents, 'memory' | 'memoryText' | 'changes' | 'writeMemory'> {
  return {
    memory: (key) => readMemory(link, key),

    async memoryText(key, version) {
      if (version === NO_MEMORY_VERSION) return '';
      const text = await link.ask(`read version ${version} of the MEMORY.md of ${key.scope}`, (redis) =>
        redis.hget(scopeKey(key, 'memory'), `text:${version}`),
      );
      return text ?? undefined;
    },

    async changes(key) {
      const texts = await link.askUnlessForeign(`read the changes of the MEMORY.md of ${key.scope}`, (redis) =>
        redis.lrange(scopeKey(key, 'changes'), 0, -1),
      );
      if (texts === undefined) return { changes: [], skipped: 1 };
      const changes = texts.flatMap((text) => toChange(text) ?? []);
      return { changes, skipped: texts.length - changes.length };
    },

    async writeMemory(key, { text: given, ...write }) {
      refuseLongMemory(key.scope, given);
      const text = given.toWellFormed();
      const change: MemoryChange = { ...write, version: memoryVersion(text) };
      const attempt = `write the MEMORY.md of ${key.scope}`;
      for (let attempts = 0; attempts < MAX_EDITS; attempts += 1) {
        const answer = await link.ask(attempt, (redis) =>
          redis.perduraWriteMemory(...memoryKeys(key), write.id, write.from, change.version, text, encodeRecord(change)),
        );
        if (answer[0] === 'written') return { status: 'written', version: answer[1] };
        if (answer[0] === 'conflict') return { status: 'conflict', current: { version: answer[1], text: answer[2] } };
        await readMemory(link, key);
      }
      throw link.unavailable(attempt, new Error('it is edited all the time'));
    },
  };
}

async function readMemory(link: RedisLink, key: ScopeKey): Promise<MemoryText> {
  const attempt = `read the MEMORY.md of ${key.scope}`;
  for (let attempts = 0; attempts < MAX_EDITS; attempts += 1) {
    const [known, bytes] = await link.ask(attempt, (redis) => redis.hmgetBuffer(scopeKey(key, 'memory'), 'version', 'text'));
    const from = known?.toString() ?? NO_MEMORY_VERSION;
    const text = toBoundedText(`the field text of ${scopeKey(key, 'memory')}`, bytes ?? Buffer.alloc(0));
    const version = memoryVersion(text);
    if (version === from) return { version, text };
    const change = await handChange(link, key, { from, version, text });
    const seen = await link.ask(attempt, (redis) => redis.perduraSeeHand(...memoryKeys(key), from, text, version, encodeRecord(change)));
    if (seen === 1) return { version, text };
  }
  throw link.unavailable(attempt, new Error('it is edited all the time'));
}

async function handChange(
  link: RedisLink,
  key: ScopeKey,
  { from, version, text }: MemoryText & { readonly from: string },
): Promise<MemoryChange> {
  const attempt = `read the changes of the MEMORY.md of ${key.scope}`;
  const [before, count, last] = await Promise.all([
    link.ask(attempt, (redis) => redis.hget(scopeKey(key, 'memory'), `text:${from}`)),
    link.ask(attempt, (redis) => redis.llen(scopeKey(key, 'changes'))),
    link.ask(attempt, (redis) => redis.lindex(scopeKey(key, 'changes'), -1)),
  ]);
  return {
    // With its number: the same text may come back later.
    id: `hand/${version}/${count + 1}`,
    ts: Math.max(Date.now() / 1000, toChange(last)?.ts ?? 0),
    cause: 'hand',
    from,
    version,
    lines: newLines(before ?? '', text).map((line) => ({ line, source: { trust: 'person' } })),
  };
}

function toBoundedText(where: string, bytes: Buffer): string {
  if (bytes.length > MAX_MEMORY) {
    throw new DocumentRefused(`cannot read ${where}: it has ${bytes.length} bytes, at most ${MAX_MEMORY} are read; shorten it`);
  }
  return toMemoryText(where, bytes);
}

function memoryKeys(key: ScopeKey): [memory: string, changes: string] {
  return [scopeKey(key, 'memory'), scopeKey(key, 'changes')];
}
