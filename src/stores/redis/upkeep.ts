/** Whether a Redis can be used at all, and what a person should know before trusting it with conversations. */
import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../../platform/errors.js';
import { openRedisLink, type RedisLink } from './link.js';
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
