/**
 * Work on all that Redis has. First: writes again, with the newest key, what is there in plain words or by an older key; without keys, in
 * plain. While workers run: each value is replaced only as it was read, and what is written meanwhile has the newest key already. Then: what
 * copies and archives need. Keys: keys.ts.
 */
import { createHash } from 'node:crypto';
import type { Entry, JsonValue } from '../../records/message.js';
import { isSpending } from '../../records/spending.js';
import { decodeEntry, decodeJson, toBodyRef } from '../codecs.js';
import type { ConversationKey, Effects, Resealed } from '../store.js';
import type { Contents, LedgerRecord, NamedPlace } from '../whole-ports.js';
import { lifeKey, namedPattern, placeNamed, type NamedKind } from './keys.js';
import { scanKeys, type RedisLink } from './link.js';

const AT_ONCE = 100;
/** Bytes. */
const FRAME_HEAD = 16;
const ATTEMPT = 'encrypt anew what is stored';

/** Fields of a hash that hold what people, models and tools wrote, or records; all other fields are ids, numbers and hashes. */
const CONTENT: Readonly<Record<string, RegExp>> = {
  entries: /^\d+$/,
  effects: /^result:/,
  history: /^entry:/,
  ...Object.fromEntries(
    [
      ...['bodies', 'items', 'budget', 'episodes', 'lineage', 'cuts', 'claims', 'forks', 'turn-ends', 'vectors', 'counted-by', 'archives'],
      ...['deleted', 'facts', 'removed-facts', 'proposals', 'forgotten', 'sizes', 'kept', 'spent', 'pins', 'sign-ins', 'known'],
    ].map((name) => [name, /(?:)/]),
  ),
};

/** One key after the other. */
export async function* resealRedis(link: RedisLink): AsyncIterable<Resealed> {
  const seen = new Set<string>();
  for await (const key of scanKeys(link, ATTEMPT, 'perdura:{*}:*')) {
    // SCAN may name a key twice.
    if (seen.has(key)) continue;
    seen.add(key);
    const resealed = await resealKey(link, key);
    if (resealed.values > 0 || resealed.left > 0) yield { place: key, ...resealed };
  }
}

type Counts = Omit<Resealed, 'place'>;
const NOTHING: Counts = { values: 0, left: 0 };

async function resealKey(link: RedisLink, key: string): Promise<Counts> {
  const [name = '', part] = parseName(key);
  if (name === 'memory') return resealMemory(link, key);
  if (name === 'changes') return resealList(link, key);
  if (name === 'waiting') return resealBytes(link, key);
  // They are made again, or end by themselves, and what reads them is told that they are gone.
  if (name === 'feed') return removeIf(link, key, await isStaleFeed(link, key));
  if (name === 'search-index' && part !== undefined) return removeIf(link, key, await isStaleIndex(link, key));
  const content = CONTENT[name];
  return content === undefined ? NOTHING : resealHash(link, key, (field) => content.test(field));
}

/** The last part of a key, and what stands behind it. */
function parseName(key: string): readonly [name: string, part?: string] {
  const parts = key.slice(key.indexOf('}:') + 2).split(':');
  const isOfLife = key.startsWith('perdura:{c:') && parts.length > 1;
  const [name = '', ...rest] = isOfLife ? parts.slice(1) : parts;
  return rest.length === 0 ? [name] : [name, rest.join(':')];
}

async function resealHash(link: RedisLink, key: string, isContent: (field: string) => boolean): Promise<Counts> {
  // As entries.ts writes them.
  const label = key.endsWith(':entries') ? (text: string): string => decodeEntry(text)?.messageId ?? '' : undefined;
  let [values, left] = [0, 0];
  let cursor = '0';
  do {
    const found = await link.askUnlessForeign(ATTEMPT, (redis) => redis.hscan(key, cursor, 'COUNT', AT_ONCE));
    if (found === undefined) return NOTHING;
    const changes = pairs(found[1]).flatMap(([field, stored]) => {
      const anew = isContent(field) ? link.atRest.reseal(stored, label) : undefined;
      return anew === undefined ? [] : [[field, stored, anew] as const];
    });
    for (const change of changes) {
      // One by one: another writer's change of one field holds back no other.
      if ((await link.ask(ATTEMPT, (redis) => redis.perduraChange(key, '', ...change))) === 1) values += 1;
      else left += 1;
    }
    [cursor] = found;
  } while (cursor !== '0');
  return { values, left };
}

/** The sum says that no person has changed the text. */
async function resealMemory(link: RedisLink, key: string): Promise<Counts> {
  const versions = await resealHash(link, key, (field) => field.startsWith('text:'));
  const [text, sum] = (await link.askUnlessForeign(ATTEMPT, (redis) => redis.hmget(key, 'text', 'sum'))) ?? [];
  const anew = typeof text === 'string' ? link.atRest.reseal(text) : undefined;
  // A person's edit is seen first, by the next who reads it.
  if (anew === undefined || typeof text !== 'string' || typeof sum !== 'string' || sum !== sha1(text)) return versions;
  const changed = await link.ask(ATTEMPT, (redis) => redis.perduraChange(key, '', ...['text', text, anew], ...['sum', sum, sha1(anew)]));
  return changed === 1 ? { ...versions, values: versions.values + 1 } : { ...versions, left: versions.left + 1 };
}

function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

async function resealList(link: RedisLink, key: string): Promise<Counts> {
  const texts = (await link.askUnlessForeign(ATTEMPT, (redis) => redis.lrange(key, 0, -1))) ?? [];
  let [values, left] = [0, 0];
  for (const [i, stored] of texts.entries()) {
    const anew = link.atRest.reseal(stored);
    if (anew === undefined) continue;
    const others = await link.ask(ATTEMPT, (redis) => redis.perduraReplaceItems(key, String(i), stored, anew));
    values += 1 - others;
    left += others;
  }
  return { values, left };
}

async function resealBytes(link: RedisLink, key: string): Promise<Counts> {
  const stored = await link.askUnlessForeign(ATTEMPT, (redis) => redis.getBuffer(key));
  if (!stored || !link.atRest.areStale(stored)) return NOTHING;
  const anew = await link.atRest.sealBytes(await link.atRest.openBytes(stored));
  // Files that wait are written once. Where it has ended meanwhile nothing comes back.
  const there = await link.ask(ATTEMPT, (redis) => redis.set(key, anew, 'KEEPTTL', 'XX'));
  return there === 'OK' ? { values: 1, left: 0 } : NOTHING;
}

async function isStaleFeed(link: RedisLink, key: string): Promise<boolean> {
  const oldest = await link.askUnlessForeign(ATTEMPT, (redis) => redis.xrange(key, '-', '+', 'COUNT', 1));
  const event = oldest?.[0]?.[1][1];
  return event !== undefined && link.atRest.isStale(event);
}

async function isStaleIndex(link: RedisLink, key: string): Promise<boolean> {
  const piece = await link.askUnlessForeign(ATTEMPT, (redis) => redis.hgetBuffer(key, '0'));
  // Its head alone: where a frame ends, another piece begins.
  return piece ? link.atRest.areStale(piece.subarray(0, FRAME_HEAD)) : false;
}

async function removeIf(link: RedisLink, key: string, isStale: boolean): Promise<Counts> {
  if (!isStale) return NOTHING;
  await link.ask(ATTEMPT, (redis) => redis.unlink(key));
  return { values: 1, left: 0 };
}

function pairs(found: readonly string[]): [field: string, value: string][] {
  return Array.from({ length: found.length / 2 }, (_, i) => [found[2 * i] ?? '', found[2 * i + 1] ?? '']);
}

// What copies and archives need.

const KINDS: readonly NamedKind[] = ['deleted', 'pins', 'sign-ins'];

interface RedisContents extends Pick<Contents, 'entries' | 'bodies' | 'open'> {
  readonly link: RedisLink;
  readonly effects: Effects;
}

export function createRedisContents({ link, effects, ...ports }: RedisContents): Contents {
  return {
    ...ports,

    async *named(namespace) {
      for (const kind of KINDS) {
        // SCAN may name a key twice.
        const seen = new Set<string>();
        for await (const name of scanKeys(link, 'look what else is stored', namedPattern(namespace, kind))) {
          const place = seen.has(name) ? undefined : placeNamed(namespace, kind, name);
          seen.add(name);
          if (place) yield place satisfies NamedPlace;
        }
      }
    },

    async bodyRefs(key) {
      const names = await link.askUnlessForeign(`look which bodies ${key.conversation} has`, (redis) =>
        redis.hkeys(lifeKey(key, 'bodies')),
      );
      return (names ?? []).map((name) => `sha256:${name}`);
    },

    async drop(key, { entries, bodies, results }, standIn) {
      for (let at = 0; at < entries.length; at += AT_ONCE) await dropEntries(link, key, entries.slice(at, at + AT_ONCE));
      const where = lifeKey(key, 'effects');
      const attempt = `take out what ${key.conversation} has archived`;
      for (const [id, result] of Object.entries(results)) {
        const stored = await link.askUnlessForeign(attempt, (redis) => redis.hget(where, `result:${id}`));
        if (typeof stored !== 'string' || JSON.stringify(decodeJson(link.atRest.openRecord(stored))) !== JSON.stringify(result)) continue;
        await link.ask(attempt, (redis) =>
          redis.perduraChange(where, '', `result:${id}`, stored, link.atRest.seal(JSON.stringify(standIn))),
        );
      }
      const hashes = bodies.map((text) => toBodyRef(text).sha256);
      if (hashes.length > 0) await link.askUnlessForeign(attempt, (redis) => redis.hdel(lifeKey(key, 'bodies'), ...hashes));
      return true;
    },

    async lastMove(key) {
      const move = await link.askUnlessForeign(`read what is archived of ${key.conversation}`, (redis) =>
        redis.hget(lifeKey(key, 'entries'), 'move'),
      );
      return Number(move ?? -1);
    },

    async *ledger(key) {
      yield* readEffects(link, key);
      const attempt = `read what ${key.conversation} has spent`;
      const spendings = (await link.askUnlessForeign(attempt, (redis) => redis.hgetall(lifeKey(key, 'spendings')))) ?? {};
      for (const [id, text] of Object.entries(spendings)) {
        const spending: unknown = decodeJson(text);
        if (isSpending(spending)) yield { kind: 'spent', id, spending };
      }
    },

    async restoreLedger(key, records) {
      for (let at = 0; at < records.length; at += AT_ONCE)
        await Promise.all(records.slice(at, at + AT_ONCE).map((record) => restoreOne(effects, key, record)));
    },
  };
}

/** Where another writer comes between, it is looked at again. */
const MAX_ATTEMPTS = 10;

/** With them goes up how many are away, in one step: what a search counts stays the same. */
async function dropEntries(link: RedisLink, key: ConversationKey, entries: readonly Entry[]): Promise<void> {
  const where = lifeKey(key, 'entries');
  const attempt = `take out what ${key.conversation} has archived`;
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
    const fields = ['away', ...entries.map(({ slot }) => String(slot))];
    const [away, ...stored] = (await link.askUnlessForeign(attempt, (redis) => redis.hmget(where, ...fields))) ?? [];
    const gone = entries.flatMap((entry, i) => {
      const text = stored[i];
      const isSame = typeof text === 'string' && JSON.stringify(decodeEntry(link.atRest.openRecord(text))) === JSON.stringify(entry);
      return isSame ? [[String(entry.slot), text, '']] : [];
    });
    if (gone.length === 0) return;
    const count = ['away', away ?? '', String(Number(away ?? 0) + gone.length)];
    if ((await link.ask(attempt, (redis) => redis.perduraChange(where, '', ...gone.flat(), ...count))) === 1) return;
  }
  throw link.unavailable(attempt, new Error('others write there all the time'));
}

async function* readEffects(link: RedisLink, key: ConversationKey): AsyncIterable<LedgerRecord> {
  const where = lifeKey(key, 'effects');
  const attempt = `read the effects of ${key.conversation}`;
  const fields = (await link.askUnlessForeign(attempt, (redis) => redis.hkeys(where))) ?? [];
  const ids = [...new Set(fields.flatMap((field) => /^(?:hash|fenced):(.*)$/s.exec(field)?.[1] ?? []))];
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    const wanted = some.flatMap((id) => [`hash:${id}`, `result:${id}`, `fenced:${id}`, `attempts:${id}`]);
    const values = (await link.askUnlessForeign(attempt, (redis) => redis.hmget(where, ...wanted))) ?? [];
    for (const [i, id] of some.entries()) {
      const [hash, result, fenced, attempts] = values.slice(4 * i, 4 * i + 4);
      if (typeof fenced === 'string') yield { kind: 'fenced', id };
      else if (typeof hash !== 'string') continue;
      else if (typeof result === 'string') {
        const value = decodeJson(link.atRest.openRecord(result)) as JsonValue | undefined;
        // A result that is there and cannot be read must not pass for "never done".
        if (value === undefined)
          throw link.unavailable(attempt, new Error(`the field result:${id} of ${where} is no JSON, look at it with HGET`));
        yield { kind: 'committed', id, hash, result: value };
      } else
        yield {
          kind: 'reserved',
          id,
          hash,
          attempts: (attempts ?? '')
            .split('\n')
            .filter((one) => one !== '')
            .map(decodeURIComponent),
        };
    }
  }
}

async function restoreOne(effects: Effects, key: ConversationKey, record: LedgerRecord): Promise<void> {
  const { id } = record;
  switch (record.kind) {
    case 'committed':
      await effects.commit(key, { id, hash: record.hash }, record.result, []);
      return;
    case 'fenced':
      await effects.fence(key, [id]);
      return;
    case 'reserved':
      for (const attempt of record.attempts) await effects.reserve(key, { id, hash: record.hash }, attempt);
      return;
    case 'spent':
      return effects.spend(key, id, record.spending);
    default:
      return record satisfies never;
  }
}
