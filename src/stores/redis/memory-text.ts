/** MEMORY.md and its changes, in Redis. A person may edit it there too: `HSET perdura:{m:…}:memory text "…"`. */
import type { MemoryChange, MemoryText } from '../../records/memory/documents.js';
import { newLines, NO_MEMORY_VERSION } from '../../records/memory/memory-lines.js';
import { encodeRecord, refuseLongMemory, toChange, toMemoryText, memoryVersion } from '../codecs/document-codec.js';
import { scopeKeyOf } from './keys.js';
import type { RedisLink } from './link.js';
import { DocumentRefused, MAX_MEMORY, type Documents, type ScopeKey } from '../store.js';

/** Each time somebody else was quicker. */
const MAX_ATTEMPTS = 20;

export function createRedisMemoryText(link: RedisLink): Pick<Documents, 'memory' | 'memoryText' | 'changes' | 'writeMemory'> {
  return {
    memory: (key) => readMemory(link, key),

    async memoryText(key, version) {
      if (version === NO_MEMORY_VERSION) return '';
      const text = await link.ask(`read version ${version} of the MEMORY.md of ${key.scope}`, (redis) =>
        redis.hget(scopeKeyOf(key, 'memory'), `text:${version}`),
      );
      return text ?? undefined;
    },

    async changes(key) {
      const texts = await link.askUnlessForeign(`read the changes of the MEMORY.md of ${key.scope}`, (redis) =>
        redis.lrange(scopeKeyOf(key, 'changes'), 0, -1),
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
      for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
        const answer = await link.ask(attempt, (redis) =>
          redis.perduraWriteMemory(...keysOf(key), write.id, write.from, change.version, text, encodeRecord(change)),
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
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
    const [known, bytes] = await link.ask(attempt, (redis) => redis.hmgetBuffer(scopeKeyOf(key, 'memory'), 'version', 'text'));
    const from = known?.toString() ?? NO_MEMORY_VERSION;
    const text = toBoundedText(`the field text of ${scopeKeyOf(key, 'memory')}`, bytes ?? Buffer.alloc(0));
    const version = memoryVersion(text);
    if (version === from) return { version, text };
    const change = await handChange(link, key, { from, version, text });
    const seen = await link.ask(attempt, (redis) => redis.perduraSeeHand(...keysOf(key), from, text, version, encodeRecord(change)));
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
    link.ask(attempt, (redis) => redis.hget(scopeKeyOf(key, 'memory'), `text:${from}`)),
    link.ask(attempt, (redis) => redis.llen(scopeKeyOf(key, 'changes'))),
    link.ask(attempt, (redis) => redis.lindex(scopeKeyOf(key, 'changes'), -1)),
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

function keysOf(key: ScopeKey): [memory: string, changes: string] {
  return [scopeKeyOf(key, 'memory'), scopeKeyOf(key, 'changes')];
}
