/** MEMORY.md, HISTORY, their changes and proposals in Redis. Keys: keys.ts. */
import { z } from 'zod';
import { isSealed, SealBroken } from '../../platform/at-rest.js';
import { type HistoryEntry, type MemoryChange, type MemoryText, NO_MEMORY_VERSION } from '../../records/memory/documents.js';
import { supersede, toKeptEntry } from '../../records/memory/history-text.js';
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
  toHandChange,
  toMemoryText,
  memoryVersion,
} from '../codecs.js';
import { createProposals } from '../collections/proposals.js';
import { createRedisCollections } from './collections.js';
import { scopeKey, type ScopeKeyName } from './keys.js';
import type { RedisLink } from './link.js';
import { unlessErased, writerArguments } from './scopes.js';
import { DocumentRefused, MAX_MEMORY, type ScopeKey } from '../store.js';
import type { Documents } from '../memory-ports.js';

export function createRedisDocuments(link: RedisLink): Documents {
  return {
    ...createRedisMemoryText(link),
    ...createRedisHistory(link),
    ...createProposals(createRedisCollections(link)),
    redact: (key, redact) => redactRedis(link, key, redact),
  };
}

// HISTORY in Redis: the entries as the files would have them, read from the newest on, some at a time.

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
        yield* (texts ?? []).flatMap((text) => (text === null ? [] : (toEntry(link.atRest.openRecord(text)) ?? [])));
        const ofLast = numbers.filter(([, time]) => time === last[1]).map(([number]) => number);
        seen = last[1] === from ? [...seen, ...ofLast] : ofLast;
        from = last[1];
      }
    },
  };
}

function append(link: RedisLink, key: ScopeKey, entry: HistoryEntry, supersedes: '' | '1') {
  const [erased, writer] = writerArguments(key);
  return unlessErased(link, key, `append ${entry.kind} ${entry.id} to the HISTORY of ${key.scope}`, (redis) =>
    redis.perduraAppendHistory(
      ...[scopeKey(key, 'history'), scopeKey(key, 'history-order'), erased],
      ...[entry.kind, entry.id, String(Math.round(entry.ts * 1000)), link.atRest.seal(encodeRecord(entry)), supersedes, writer],
    ),
  );
}

function pairs(texts: readonly string[]): [member: string, score: string][] {
  return Array.from({ length: texts.length / 2 }, (_, i) => [texts[2 * i] ?? '', texts[2 * i + 1] ?? '']);
}

// Redacts what is stored beside MEMORY.md, in Redis. Each record is replaced only as it was read, so that two who redact at
// once both have their way.

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
      const before = link.atRest.openRecord(text);
      const after = change(field, before);
      if (after !== before) changed.push(field, text, link.atRest.seal(after));
    }
    if (changed.length > 0) others += 1 - (await link.ask(attempt, (redis) => redis.perduraChange(where, '', ...changed)));
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
      const before = link.atRest.openRecord(text);
      const after = redactRecord(changeSchema, before, redact, (change) => redactChange(change, redact));
      return after === before ? [] : [String(from + i), text, link.atRest.seal(after)];
    });
    if (changed.length > 0) others += await link.ask(attempt, (redis) => redis.perduraReplaceItems(where, ...changed));
  }
  return others;
}

/** Attempts of one edit, if another writer was quicker each time. */
const MAX_EDITS = 20;

/** MEMORY.md and its changes. A person may edit it there too: `HSET perdura:{m:…}:memory text "…"`. */
function createRedisMemoryText(link: RedisLink): Pick<Documents, 'memory' | 'memoryText' | 'changes' | 'writeMemory'> {
  return {
    memory: (key) => readMemory(link, key),

    async memoryText(key, version) {
      if (version === NO_MEMORY_VERSION) return '';
      const attempt = `read version ${version} of the MEMORY.md of ${key.scope}`;
      const stored = await link.ask(attempt, (redis) => redis.hget(scopeKey(key, 'memory'), `text:${version}`));
      return stored === null ? undefined : link.atRest.openRecord(stored);
    },

    async changes(key) {
      const attempt = `read the changes of the MEMORY.md of ${key.scope}`;
      const texts = await link.askUnlessForeign(attempt, (redis) => redis.lrange(scopeKey(key, 'changes'), 0, -1));
      if (texts === undefined) return { changes: [], skipped: 1 };
      const changes = texts.flatMap((text) => toChange(link.atRest.openRecord(text)) ?? []);
      return { changes, skipped: texts.length - changes.length };
    },

    async writeMemory(key, { text: given, ...write }) {
      refuseLongMemory(key.scope, given);
      const text = given.toWellFormed();
      const change: MemoryChange = { ...write, version: memoryVersion(text) };
      const attempt = `write the MEMORY.md of ${key.scope}`;
      const [erased, writer] = writerArguments(key);
      for (let attempts = 0; attempts < MAX_EDITS; attempts += 1) {
        const answer = await unlessErased(link, key, attempt, (redis) =>
          redis.perduraWriteMemory(
            ...memoryKeys(key),
            ...[erased, write.id, write.from, change.version, link.atRest.seal(text), link.atRest.seal(encodeRecord(change)), writer],
          ),
        );
        if (answer[0] === 'written') return { status: 'written', version: answer[1] };
        if (answer[0] === 'conflict') {
          const current = { version: answer[1], text: link.atRest.openRecord(answer[2]) };
          return { status: 'conflict', current };
        }
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
    const stored = bytes ?? Buffer.alloc(0);
    const text = toOpenedText(link, `the field text of ${scopeKey(key, 'memory')}`, stored);
    const version = memoryVersion(text);
    if (version === from) return { version, text };
    const change = await handChange(link, key, from, { version, text });
    const seen = await link.ask(attempt, (redis) =>
      redis.perduraSeeHand(...memoryKeys(key), from, stored, version, link.atRest.seal(encodeRecord(change)), link.atRest.seal(text)),
    );
    if (seen === 1) return { version, text };
  }
  throw link.unavailable(attempt, new Error('it is edited all the time'));
}

async function handChange(link: RedisLink, key: ScopeKey, from: string, after: MemoryText): Promise<MemoryChange> {
  const attempt = `read the changes of the MEMORY.md of ${key.scope}`;
  const [before, count, last] = await Promise.all([
    link.ask(attempt, (redis) => redis.hget(scopeKey(key, 'memory'), `text:${from}`)),
    link.ask(attempt, (redis) => redis.llen(scopeKey(key, 'changes'))),
    link.ask(attempt, (redis) => redis.lindex(scopeKey(key, 'changes'), -1)),
  ]);
  const opened = (stored: string | null): string | null => (stored === null ? null : link.atRest.openRecord(stored));
  return toHandChange({ version: from, text: opened(before) ?? '' }, after, { ts: Date.now() / 1000, count, last: toChange(opened(last)) });
}

/** A damaged one is refused: an empty MEMORY.md would be taken for a person's edit. */
function toOpenedText({ atRest }: RedisLink, where: string, stored: Buffer): string {
  if (!isSealed(stored.toString('latin1', 0, 4))) return atRest.open(toBoundedText(where, stored));
  try {
    return atRest.open(stored.toString('latin1'));
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error;
    throw new DocumentRefused(`cannot read ${where}: ${error.message}; put it back from a copy`, { cause: error });
  }
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
