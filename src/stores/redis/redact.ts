/**
 * Takes words out of what lies beside MEMORY.md, in Redis. Each record is replaced only as it was read, so that two who redact at
 * once both have their way.
 */
import { NO_MEMORY_VERSION } from '../../records/memory/memory-diff.js';
import { changeSchema, decodeRecord, encodeRecord, redactChange, redactText, toEntry } from '../codecs/document-codec.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { scopeKeyOf, type ScopeKeyName } from './keys.js';
import type { RedisLink } from './link.js';
import type { ScopeKey } from '../store.js';

type Redact = (line: string) => string;

const MOST_ATTEMPTS = 10;
const REDACTED_AT_ONCE = 500;

export async function redactRedis(link: RedisLink, key: ScopeKey, redact: Redact): Promise<void> {
  const attempt = `redact the documents of ${key.scope}`;
  for (let attempts = 0; attempts < MOST_ATTEMPTS; attempts += 1) {
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

/** Answers how many have to be looked at again. */
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
    if (changed.length > 0) others += await link.ask(attempt, (redis) => redis.perduraReplaceFields(where, ...changed));
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
