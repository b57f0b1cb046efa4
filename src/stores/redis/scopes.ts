/**
 * What a search needs of a scope in Redis: which lives there are, what was written in them since, and the parts of its index. Keys:
 * keys.ts.
 */
import { randomUUID } from 'node:crypto';
import { erasedKey, lifeKey, literally, scopeInKey, scopeKey, scopesPattern } from './keys.js';
import { openBytes, scanKeys, type RedisLink, type ScriptedRedis } from './link.js';
import { isReply, replyCode } from './replies.js';
import { DELETED } from './scripts.js';
import { LifeDeleted, StoreUnavailable, type ConversationKey, type ScopeKey } from '../store.js';
import type { MarkedLife, Scopes } from '../memory-ports.js';

const PIECE_BYTES = 1024 * 1024;
const PIECES_AT_ONCE = 4;
const OF_LIFE = ['entries', 'cuts', 'episodes', 'vectors'] as const;
/** Most lives of one round trip. */
const LIVES_AT_ONCE = 500;
/** A piece that a dead process left is gone after that. */
const UNFINISHED_SECONDS = 600;

export function createRedisScopes(link: RedisLink): Scopes {
  return {
    async list(namespace) {
      const found = new Set<string>();
      for await (const name of scanKeys(link, 'look which scopes there are', scopesPattern(namespace))) {
        const scope = scopeInKey(name);
        if (scope !== undefined) found.add(scope);
      }
      return [...found].sort();
    },

    async marks(key, since) {
      const attempt = `look what was written in ${key.scope}`;
      const erasures = await countErasures(link, key);
      // Before the lives (stores/note-after-write).
      const { cursor, members: changed } = await changesSince(link, key, since);
      const members = changed ?? (await link.askUnlessForeign(attempt, (redis) => redis.smembers(scopeKey(key, 'lives')))) ?? [];
      const known = members.flatMap((member) => toKey(key, member) ?? []);
      const lives: MarkedLife[] = [];
      for (let at = 0; at < known.length; at += LIVES_AT_ONCE)
        lives.push(...(await readMarks(link, attempt, known.slice(at, at + LIVES_AT_ONCE))));
      const documents = await link.ask(attempt, (redis) =>
        Promise.allSettled([
          redis.hget(scopeKey(key, 'memory'), 'version'),
          ...(['facts', 'removed-facts', 'history', 'forgotten'] as const).map((name) => redis.hlen(scopeKey(key, name))),
        ]),
      );
      return { documents: markIn(link, attempt, documents), lives, ...(changed && { changed: known }), cursor, erasures };
    },

    async indexParts(key) {
      const names = scopeKey(key, 'search-index');
      const attempt = `look for the index of ${key.scope}`;
      const parts = (await link.askUnlessForeign(attempt, (redis) => redis.smembers(names))) ?? [];
      if (parts.length === 0) return [];
      const there = await link.ask(attempt, (redis) => Promise.all(parts.map((part) => redis.exists(`${names}:${part}`))));
      return parts.filter((_, i) => there[i] === 1);
    },

    async readIndex(key, part) {
      const name = `${scopeKey(key, 'search-index')}:${part}`;
      const attempt = `read the index of ${key.scope}`;
      const pieces = Number((await link.askUnlessForeign(attempt, (redis) => redis.hget(name, 'pieces'))) ?? 0);
      if (!(pieces > 0)) return undefined;
      const read: Buffer[] = [];
      for (let i = 0; i < pieces; i += PIECES_AT_ONCE) {
        const fields = Array.from({ length: Math.min(PIECES_AT_ONCE, pieces - i) }, (_, at) => String(i + at));
        for (const piece of await link.ask(attempt, (redis) => redis.hmgetBuffer(name, ...fields))) {
          // Another one was written meanwhile.
          if (piece === null) return undefined;
          read.push(piece);
        }
      }
      return openBytes(link, attempt, Buffer.concat(read));
    },

    async writeIndex(key, part, plain) {
      const bytes = await link.atRest.sealBytes(plain);
      const names = scopeKey(key, 'search-index');
      const name = `${names}:${part}`;
      const next = `${name}:${randomUUID()}`;
      const attempt = `write the index of ${key.scope}`;
      const pieces = Math.ceil(bytes.length / PIECE_BYTES);
      for (let i = 0; i < pieces; i += 1) {
        const piece = Buffer.from(bytes.subarray(i * PIECE_BYTES, (i + 1) * PIECE_BYTES));
        await link.ask(attempt, (redis) => redis.hset(next, String(i), piece));
        if (i === 0) await link.ask(attempt, (redis) => redis.expire(next, UNFINISHED_SECONDS));
      }
      await link.ask(attempt, (redis) => redis.hset(next, 'pieces', String(pieces)));
      await link.ask(attempt, (redis) => redis.multi().sadd(names, part).persist(next).rename(next, name).exec());
    },

    async removeIndex(key, parts) {
      if (parts.length === 0) return;
      const names = scopeKey(key, 'search-index');
      await link.ask(`remove the index of ${key.scope}`, (redis) =>
        redis
          .multi()
          .unlink(...parts.map((part) => `${names}:${part}`))
          .srem(names, ...parts)
          .exec(),
      );
    },

    async lives(key) {
      const attempt = `look which lives ${key.scope} has`;
      const members = (await link.askUnlessForeign(attempt, (redis) => redis.smembers(scopeKey(key, 'lives')))) ?? [];
      return members.flatMap((member) => toKey(key, member) ?? []);
    },

    async erase(key, writers) {
      const attempt = `erase ${key.scope}`;
      const erased = erasedKey(key);
      // Before anything goes: a write is before it, and goes too, or sees it (stores/erased-stays-empty).
      for (let at = 0; at < writers.length; at += LIVES_AT_ONCE) {
        const pairs = writers.slice(at, at + LIVES_AT_ONCE).flatMap((writer) => [writer, String(Date.now())]);
        await link.ask(attempt, (redis) => redis.hset(erased, ...pairs));
      }
      const names = new Set<string>();
      for await (const name of scanKeys(link, attempt, literally(erased.replace(/erased$/, '')))) if (name !== erased) names.add(name);
      for (const name of names) await link.ask(attempt, (redis) => redis.unlink(name));
      return { records: names.size };
    },

    erasures: (key) => countErasures(link, key),
  };
}

/** A write to what conversations share, whose script looks for erasures: its refusal in words (stores/erased-stays-empty). */
export async function unlessErased<T>(
  link: RedisLink,
  key: ScopeKey,
  attempt: string,
  write: (redis: ScriptedRedis) => Promise<T>,
): Promise<T> {
  try {
    return await link.ask(attempt, write);
  } catch (error) {
    if (!(error instanceof StoreUnavailable) || !error.message.includes(DELETED)) throw error;
    const at = await link.ask(attempt, (redis) => redis.hget(erasedKey(key), key.life ?? ''));
    throw new LifeDeleted(attempt, { conversation: `the memory of ${key.scope}`, at: Number(at) / 1000 });
  }
}

/** The last key and the last argument of such a script. */
export function writerArguments(key: ScopeKey): readonly [erased: string, writer: string] {
  return [erasedKey(key), key.life ?? ''];
}

function countErasures(link: RedisLink, key: ScopeKey): Promise<number> {
  return link.ask(`look whether ${key.scope} was erased`, (redis) => redis.hlen(erasedKey(key)));
}

/** After a write (stores/note-after-write): a life that has entries is found, and that it has changed. */
export async function noteLife(link: RedisLink, key: ConversationKey): Promise<void> {
  const names = [scopeKey(key, 'lives'), scopeKey(key, 'written-lives'), erasedKey(key)];
  await link.ask(`note that ${key.conversation} is of ${key.scope}`, (redis) =>
    redis.perduraNote(...names, JSON.stringify([key.conversation, key.life]), key.life),
  );
}

/** `members` undefined: not known. */
async function changesSince(
  link: RedisLink,
  key: ScopeKey,
  since: string | undefined,
): Promise<{ readonly cursor: string; readonly members: readonly string[] | undefined }> {
  const where = scopeKey(key, 'written-lives');
  const attempt = `look what has changed in ${key.scope}`;
  const [, last = ''] = (await link.askUnlessForeign(attempt, (redis) => redis.zrevrange(where, 0, 0, 'WITHSCORES'))) ?? [];
  // A Redis that has lost its notes counts anew.
  if (since === undefined || since === '' || !(Number(last) >= Number(since))) return { cursor: last, members: undefined };
  if (last === since) return { cursor: last, members: [] };
  return { cursor: last, members: await link.ask(attempt, (redis) => redis.zrangebyscore(where, `(${since}`, '+inf')) };
}

/** Each life has another slot, and may be with another node of a cluster: they are looked up at once, and one by one. */
async function readMarks(link: RedisLink, attempt: string, keys: readonly ConversationKey[]): Promise<MarkedLife[]> {
  const answers = await link.ask(attempt, (redis) =>
    Promise.all(
      keys.map((key) => {
        const lengths = OF_LIFE.map((what) => redis.hlen(lifeKey(key, what)));
        return Promise.all([redis.hget(lifeKey(key, 'entries'), 'away').catch(() => null), Promise.allSettled(lengths)]);
      }),
    ),
  );
  return keys.flatMap((key, i) => {
    const [away, [entries, ...others]] = answers[i] ?? [null, []];
    // Deleted, or lost.
    if (entries?.status === 'fulfilled' && entries.value === 0) return [];
    const lengths = entries ? [withAway(entries, away), ...others] : others;
    return [{ key, mark: markIn(link, attempt, lengths) }];
  });
}

/** As many as there were before some went to an archive: what a search has of them is still true. */
function withAway(entries: PromiseSettledResult<number>, away: string | null): PromiseSettledResult<number> {
  return away !== null && entries.status === 'fulfilled' ? { ...entries, value: entries.value + Number(away) - 1 } : entries;
}

/** A key of another type has nothing to read (stores/foreign-is-skipped). */
function markIn(link: RedisLink, attempt: string, answers: readonly PromiseSettledResult<unknown>[]): string {
  const marks = answers.map((answer) => {
    if (answer.status === 'fulfilled') return String(answer.value);
    if (isReply(answer.reason) && replyCode(answer.reason) === 'WRONGTYPE') return 'x';
    throw link.unavailable(attempt, answer.reason);
  });
  return marks.join(' ');
}

function toKey({ namespace, scope }: ScopeKey, member: string): ConversationKey | undefined {
  try {
    const [conversation, life] = JSON.parse(member) as unknown[];
    return typeof conversation === 'string' && typeof life === 'string' ? { namespace, scope, conversation, life } : undefined;
  } catch {
    return undefined;
  }
}
