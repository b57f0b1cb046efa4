/**
 * The upkeep of a Redis: whether it can be used at all, what a person should know before trusting it with conversations, and writing all of it again
 * with another key.
 */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../platform/errors.js';
import { decodeEntry } from '../codecs.js';
import type { Resealed } from '../store.js';
import { openRedisLink, scanKeys, type RedisLink } from './link.js';
import { isLasting, isReply } from './replies.js';

const SLOTS = 16_384;
const BETWEEN_TRIES_MS = 200;
/** Of each try. */
const ANSWER_MS = 1_500;

/**
 * Resolves once the Redis of a url answers and takes writes. Throws StoreUnavailable, which says why it does not: at once where no waiting ends
 * that, else when `patienceMs` is over.
 */
export async function awaitRedis(url: string, patienceMs: number): Promise<void> {
  const link = openRedisLink({ url, commandTimeoutMs: ANSWER_MS });
  // clock: how long one waits is what was given
  const until = Date.now() + patienceMs;
  try {
    for (;;) {
      try {
        return await probe(link);
      } catch (error) {
        const isOver = isLasting([errorMessage(error), link.fault()]) || Date.now() + BETWEEN_TRIES_MS > until;
        if (isOver) throw link.unavailable('reach the store that REDIS_URL names', error);
      }
      await delay(BETWEEN_TRIES_MS);
    }
  } finally {
    await link.close();
  }
}

/** Throws what a command would meet. */
async function probe({ redis, cluster }: RedisLink): Promise<void> {
  await redis.ping();
  if (cluster === undefined) {
    const info = parseInfo(await redis.info().catch(forbidden));
    if (info.get('role') === 'slave') throw new Error('it is a replica, which takes no writes');
    if (info.get('cluster_enabled') === '1') throw new Error('it is one node of a cluster');
    return;
  }
  const state = parseInfo((await cluster.cluster('INFO')) as string);
  const missing = SLOTS - Number(state.get('cluster_slots_ok') ?? SLOTS);
  if (missing > 0) throw new Error(`CLUSTERDOWN ${missing} of its ${SLOTS} slots have no node`);
  if (state.get('cluster_state') === 'fail') throw new Error('CLUSTERDOWN its nodes do not reach enough of each other');
  await Promise.all((await cluster.masters()).map((node) => node.ping()));
}

/** Who may not read its settings finds out in another way. */
function forbidden(error: unknown): string {
  if (isReply(error)) return '';
  throw error;
}

/**
 * What a person should know about this Redis before trusting it with conversations. Reads INFO, not CONFIG: managed services forbid the
 * latter.
 */
export async function checkRedis(link: RedisLink): Promise<string[]> {
  const { cluster } = link;
  await link.ask('reach the store', (redis) => redis.ping());
  if (cluster === undefined) return read(link, async () => [...warnings(parseInfo(await link.redis.info()))]);
  const found = new Map<string, string[]>();
  const nodes = await link.ask('find the nodes of the store', () => cluster.masters());
  for (const node of nodes) {
    const address = `${node.options.host}:${node.options.port}`;
    for (const text of await read(link, async () => [...warnings(parseInfo(await node.info()))]))
      found.set(text, [...(found.get(text) ?? []), address]);
  }
  const alone = await read(link, async () => [...withoutReplica((await cluster.cluster('NODES')) as string)]);
  return [...[...found].map(([text, at]) => (at.length === nodes.length ? text : `${at.join(', ')}: ${text}`)), ...alone];
}

/** For `doctor`. */
export async function describeRedis(url: string): Promise<{ readonly version: string | undefined; readonly warnings: readonly string[] }> {
  const link = openRedisLink({ url, commandTimeoutMs: 2 * ANSWER_MS });
  try {
    const warnings = await checkRedis(link);
    const version = parseInfo(await link.redis.info('server').catch(() => '')).get('redis_version');
    return { version, warnings };
  } finally {
    await link.close();
  }
}

/** What cannot be read is to be made sure of. */
async function read(link: RedisLink, texts: () => Promise<string[]>): Promise<string[]> {
  try {
    return await texts();
  } catch (error) {
    if (!isReply(error)) throw link.unavailable('read the settings of the store', error);
    return [`redis does not show its settings (${errorMessage(error)}): make sure of appendonly yes and maxmemory-policy noeviction`];
  }
}

/** By CLUSTER NODES: id, address, flags, primary of a replica, …, slots. */
function* withoutReplica(text: string): Iterable<string> {
  const nodes = text.split('\n').flatMap((line) => (line === '' ? [] : [line.split(' ')]));
  const alone = nodes.filter(([id, , flags = '', , , , , , slots]) => {
    const isPrimary = flags.includes('master') && slots !== undefined;
    return isPrimary && !nodes.some(([, , of = '', primary]) => primary === id && !/fail|noaddr/.test(of));
  });
  if (alone.length === 0) return;
  const names = alone.map(([, address = '']) => address.replace(/[@,].*$/, ''));
  yield `no replica of ${names.join(', ')}: when it stops, its conversations wait until it is back; add one`;
}

function* warnings(info: ReadonlyMap<string, string>): Iterable<string> {
  if (info.get('aof_enabled') === '0') {
    yield 'appendonly is no: when redis stops, conversations since its last snapshot are lost; set appendonly yes';
  }
  const policy = info.get('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    yield `maxmemory-policy is ${policy}: redis deletes conversations when its memory is full; set maxmemory-policy noeviction`;
  }
  if (info.get('aof_last_write_status') === 'err') {
    yield 'the last write of the append-only file failed (aof_last_write_status): see the disk of redis';
  }
  if (info.get('role') === 'slave') yield 'role is replica: it takes no writes; point the redis url at the primary';
  const version = info.get('redis_version') ?? '';
  const [major = 7, minor = 0] = version.split('.').map(Number);
  if (version !== '' && (major < 6 || (major === 6 && minor < 2))) yield `redis_version is ${version}: 6.2 or newer is needed`;
}

function parseInfo(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split(/\r?\n/).flatMap((line): [string, string][] => {
      const colon = line.indexOf(':');
      return colon > 0 ? [[line.slice(0, colon), line.slice(colon + 1)]] : [];
    }),
  );
}

/*
 * What is stored in plain words or by an older key is written again with the newest one; without keys, in plain. While workers run: each value is
 * replaced only as it was read, and what is written meanwhile has the newest key already. Keys: keys.ts.
 */

const AT_ONCE = 100;
/** Bytes. */
const FRAME_HEAD = 16;
const RESEAL = 'encrypt anew what is stored';

/** Fields of a hash that hold what people, models and tools wrote, or records; all other fields are ids, numbers and hashes. */
const CONTENT: Readonly<Record<string, RegExp>> = {
  entries: /^\d+$/,
  effects: /^result:/,
  history: /^entry:/,
  ...Object.fromEntries(
    [
      ...['bodies', 'items', 'budget', 'episodes', 'lineage', 'cuts', 'claims', 'forks', 'turn-ends', 'vectors', 'counted-by', 'deleted'],
      ...['facts', 'removed-facts', 'proposals', 'forgotten', 'sizes', 'kept', 'pins', 'sign-ins', 'known'],
    ].map((name) => [name, /(?:)/]),
  ),
};

/** One key after the other. */
export async function* resealRedis(link: RedisLink): AsyncIterable<Resealed> {
  const seen = new Set<string>();
  for await (const key of scanKeys(link, RESEAL, 'perdura:{*}:*')) {
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
    const found = await link.askUnlessForeign(RESEAL, (redis) => redis.hscan(key, cursor, 'COUNT', AT_ONCE));
    if (found === undefined) return NOTHING;
    const changes = pairs(found[1]).flatMap(([field, stored]) => {
      const anew = isContent(field) ? link.atRest.reseal(stored, label) : undefined;
      return anew === undefined ? [] : [[field, stored, anew] as const];
    });
    for (const change of changes) {
      // One by one: another writer's change of one field holds back no other.
      if ((await link.ask(RESEAL, (redis) => redis.perduraChange(key, '', ...change))) === 1) values += 1;
      else left += 1;
    }
    [cursor] = found;
  } while (cursor !== '0');
  return { values, left };
}

/** The sum says that no person has changed the text. */
async function resealMemory(link: RedisLink, key: string): Promise<Counts> {
  const versions = await resealHash(link, key, (field) => field.startsWith('text:'));
  const [text, sum] = (await link.askUnlessForeign(RESEAL, (redis) => redis.hmget(key, 'text', 'sum'))) ?? [];
  const anew = typeof text === 'string' ? link.atRest.reseal(text) : undefined;
  // A person's edit is seen first, by the next who reads it.
  if (anew === undefined || typeof text !== 'string' || typeof sum !== 'string' || sum !== sha1(text)) return versions;
  const changed = await link.ask(RESEAL, (redis) => redis.perduraChange(key, '', ...['text', text, anew], ...['sum', sum, sha1(anew)]));
  return changed === 1 ? { ...versions, values: versions.values + 1 } : { ...versions, left: versions.left + 1 };
}

function sha1(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

async function resealList(link: RedisLink, key: string): Promise<Counts> {
  const texts = (await link.askUnlessForeign(RESEAL, (redis) => redis.lrange(key, 0, -1))) ?? [];
  let [values, left] = [0, 0];
  for (const [i, stored] of texts.entries()) {
    const anew = link.atRest.reseal(stored);
    if (anew === undefined) continue;
    const others = await link.ask(RESEAL, (redis) => redis.perduraReplaceItems(key, String(i), stored, anew));
    values += 1 - others;
    left += others;
  }
  return { values, left };
}

async function resealBytes(link: RedisLink, key: string): Promise<Counts> {
  const stored = await link.askUnlessForeign(RESEAL, (redis) => redis.getBuffer(key));
  if (!stored || !link.atRest.areStale(stored)) return NOTHING;
  const anew = await link.atRest.sealBytes(await link.atRest.openBytes(stored));
  // Files that wait are written once. Where it has ended meanwhile nothing comes back.
  const there = await link.ask(RESEAL, (redis) => redis.set(key, anew, 'KEEPTTL', 'XX'));
  return there === 'OK' ? { values: 1, left: 0 } : NOTHING;
}

async function isStaleFeed(link: RedisLink, key: string): Promise<boolean> {
  const oldest = await link.askUnlessForeign(RESEAL, (redis) => redis.xrange(key, '-', '+', 'COUNT', 1));
  const event = oldest?.[0]?.[1][1];
  return event !== undefined && link.atRest.isStale(event);
}

async function isStaleIndex(link: RedisLink, key: string): Promise<boolean> {
  const piece = await link.askUnlessForeign(RESEAL, (redis) => redis.hgetBuffer(key, '0'));
  // Its head alone: where a frame ends, another piece begins.
  return piece ? link.atRest.areStale(piece.subarray(0, FRAME_HEAD)) : false;
}

async function removeIf(link: RedisLink, key: string, isStale: boolean): Promise<Counts> {
  if (!isStale) return NOTHING;
  await link.ask(RESEAL, (redis) => redis.unlink(key));
  return { values: 1, left: 0 };
}

function pairs(found: readonly string[]): [field: string, value: string][] {
  return Array.from({ length: found.length / 2 }, (_, i) => [found[2 * i] ?? '', found[2 * i + 1] ?? '']);
}
