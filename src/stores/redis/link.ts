/**
 * The connection to Redis that all port calls share; to a cluster, one to each of its primaries.
 *
 * - Every call settles within `commandTimeoutMs`, connected or not: the timeout of ioredis also counts in its offline queue. Settled by
 *   timeout means unknown outcome (stores/rejected-is-unknown): the command may still be sent when the connection is back.
 * - Its queue is flushed every 20 attempts to connect, about 4 s, so that a long outage does not fill the memory.
 * - A socket that is silent for twice the timeout with a request open is dropped: a black hole never closes by itself.
 */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { Redis, type RedisCommander, type RedisOptions } from 'ioredis';
import { createAtRest, KeyMissing, SealBroken, type AtRest } from '../../platform/at-rest.js';
import { errorMessage } from '../../platform/errors.js';
import { parseRedisAddress, REDIS_FORMS, withoutSecrets, type RedisAddress } from '../../platform/redis-address.js';
import { explain, RedisCluster } from './cluster.js';
import { isReply, replyCode, toUnavailable } from './replies.js';
import { SCRIPTS, type ScriptAnswers } from './scripts.js';
import { StoreUnavailable } from '../store.js';

/** Commands, to one server or to the nodes of a cluster; ioredis adds a method for each script at run time: keys first, then arguments. */
export type ScriptedRedis = RedisCommander<{ type: 'default'; mapping: 'resp2' }> &
  Pick<Redis, 'multi'> & {
    [name in keyof ScriptAnswers]: (...args: (string | Buffer)[]) => Promise<ScriptAnswers[name]>;
  };

export interface RedisLink {
  readonly redis: ScriptedRedis;
  /** Undefined: one server. */
  readonly cluster: RedisCluster | undefined;
  readonly where: string;
  readonly commandTimeoutMs: number;
  /** How texts and bytes are written and read back. */
  readonly atRest: AtRest;
  /** Runs a command; its failure becomes StoreUnavailable, in which `attempt` ends the sentence "cannot …". */
  ask<T>(attempt: string, command: (redis: ScriptedRedis) => Promise<T>): Promise<T>;
  /** Like `ask`; undefined when the key holds another type (stores/foreign-is-skipped). */
  askUnlessForeign<T>(attempt: string, command: (redis: ScriptedRedis) => Promise<T>): Promise<T | undefined>;
  unavailable(attempt: string, error: unknown): StoreUnavailable;
  /** What the connection has met since it was last well; undefined where it is. */
  fault(): string | undefined;
  /** Told when what was answered may no longer be what is there: a connection was lost, or a slot has another node. */
  onDoubt(listener: () => void): void;
  /** Connects now, and not with the first command; resolves also where that fails. */
  connect(): Promise<void>;
  /** A further connection to one server, for what blocks. */
  duplicate(options: Partial<RedisOptions>): Redis;
  close(): Promise<void>;
}

export interface RedisLinkOptions {
  readonly url: string;
  /** Default: the `timeout` of the url, or 2 s. */
  readonly commandTimeoutMs?: number;
  /** Default: plain. */
  readonly atRest?: AtRest;
  readonly log?: (line: string) => void;
}

const DEFAULT_TIMEOUT_MS = 2_000;
/** Answers have the shapes of ioredis' types. */
type SharedOptions = RedisOptions & { readonly replyMapping?: 'legacy' };

/** Throws an error that says what of the url cannot be used. */
export function openRedisLink({ url, atRest = createAtRest(), log, ...given }: RedisLinkOptions): RedisLink {
  const where = withoutSecrets(url);
  const address = readAddress(url);
  const commandTimeoutMs = given.commandTimeoutMs ?? Number(address.options.timeout ?? DEFAULT_TIMEOUT_MS);
  const shared: SharedOptions = {
    commandTimeout: commandTimeoutMs,
    connectTimeout: commandTimeoutMs,
    socketTimeout: 2 * commandTimeoutMs,
    // For a socket that is closed already ioredis would arm a timer all the same, and hold the ending process for two seconds.
    disconnectTimeout: 0,
    ...(address.isTls && { tls: tlsOptions(address) }),
  };
  const { hosts, username, password } = address;
  const isCluster = address.kind === 'cluster';
  const client = isCluster
    ? new RedisCluster({ hosts, commandTimeoutMs, redisOptions: { ...shared, username, password }, scripts: SCRIPTS })
    : createClient(address, { ...shared, ...OF_ONE_SERVER });
  const cluster = client instanceof RedisCluster ? client : undefined;
  const server = client instanceof RedisCluster ? undefined : client;
  const redis = client as unknown as ScriptedRedis;

  let fault: string | undefined;
  /** Why the Sentinels cannot be reached, which ioredis does not say. */
  let explained: string | undefined;
  const noteFault = (error: Error): void => {
    const first = fault === undefined;
    fault = errorMessage((error as { lastNodeError?: Error }).lastNodeError ?? error);
    if (first) log?.(`redis at ${where}: ${fault}; trying again until it answers`);
  };
  client.on('error', noteFault).on('ready', () => (fault = explained = undefined));
  if (server) {
    server.on('connect', () => writeTogether(server));
    server.on('sentinelError', (error: Error) => {
      noteFault(error);
      const { sentinel_username: user, sentinel_password: password } = address.options;
      if (hosts[0] && error.message.endsWith('Connection is closed.'))
        void explain({ ...shared, ...hosts[0], username: user, password }).then((reason) => (explained = reason));
    });
  } else {
    client.on('+node', (node: Redis) => node.on('connect', () => writeTogether(node)));
    // A node that is away is looked for with each command: once in a while is enough to be told.
    let toldAt = -Infinity;
    client.on('node error', (error: Error, node: string) => {
      if (Date.now() - toldAt < 10_000) return;
      toldAt = Date.now();
      log?.(`redis at ${where}: its node ${node}: ${errorMessage(error)}; trying again until it answers`);
    });
  }

  const lastFault = (): string | undefined => cluster?.fault() ?? explained ?? fault;
  const unavailable = (attempt: string, error: unknown) => toUnavailable(attempt, where, error, isReply(error) ? undefined : lastFault());
  const ask = async <T>(attempt: string, command: (redis: ScriptedRedis) => Promise<T>): Promise<T> => {
    try {
      return await command(redis);
    } catch (error) {
      throw unavailable(attempt, error);
    }
  };

  const askUnlessForeign = async <T>(attempt: string, command: (redis: ScriptedRedis) => Promise<T>): Promise<T | undefined> => {
    try {
      return await command(redis);
    } catch (error) {
      if (isReply(error) && replyCode(error) === 'WRONGTYPE') return undefined;
      throw unavailable(attempt, error);
    }
  };

  return {
    redis,
    cluster,
    where,
    commandTimeoutMs,
    atRest: describing(atRest, (error) => unavailable('read what is stored', error)),
    ask,
    askUnlessForeign,
    unavailable,
    fault: lastFault,
    onDoubt(listener) {
      if (cluster) cluster.onDoubt(listener);
      else client.on('close', listener);
    },
    connect: () => client.connect().catch(() => undefined),
    duplicate(options) {
      if (server === undefined) throw new Error('a cluster is no one server');
      return server.duplicate({ ...options, failoverDetector: false });
    },
    async close() {
      // Answers that are on their way are waited for; a Redis that does not answer is not.
      if (client.status === 'ready') await client.quit().catch(() => undefined);
      if (client instanceof WatchedRedis) client.isClosed = true;
      if (cluster) cluster.close();
      else client.disconnect();
    },
  };
}

const OF_ONE_SERVER: SharedOptions = {
  lazyConnect: true,
  retryStrategy: (attempt) => Math.min(50 * attempt, 250),
  maxRetriesPerRequest: 20,
  // After a failover the old primary may still be there, as a replica.
  reconnectOnError: (error) => error.message.startsWith('READONLY'),
  scripts: SCRIPTS,
};

/** What is sent in one piece of work leaves in one packet: ioredis writes each command by itself. */
function writeTogether(redis: Redis): void {
  const socket = (redis as unknown as { readonly stream: Socket }).stream;
  const write = socket.write.bind(socket) as (...args: readonly unknown[]) => boolean;
  let isHeld = false;
  const release = (): void => {
    isHeld = false;
    socket.uncork();
  };
  socket.write = (...args: readonly unknown[]): boolean => {
    if (!isHeld) {
      isHeld = true;
      socket.cork();
      process.nextTick(release);
    }
    return write(...args);
  };
}

/** A key that is missing is as if Redis did not answer: a turn that waits goes on when it is there. */
function describing(atRest: AtRest, unavailable: (error: unknown) => StoreUnavailable): AtRest {
  const described =
    <Rest extends unknown[], Answer>(open: (stored: string, ...rest: Rest) => Answer) =>
    (stored: string, ...rest: Rest): Answer => {
      try {
        return open(stored, ...rest);
      } catch (error) {
        throw error instanceof KeyMissing ? unavailable(error) : error;
      }
    };
  return { ...atRest, open: described(atRest.open), openRecord: described(atRest.openRecord), reseal: described(atRest.reseal) };
}

function readAddress(url: string): RedisAddress {
  try {
    return parseRedisAddress(url);
  } catch (error) {
    // Without its cause: Node's error shows the url, password and all.
    throw new Error(`cannot use the redis url ${withoutSecrets(url)}: ${errorMessage(error)}`);
  }
}

/** By its Sentinels. Where none of them can be reached, ioredis gives up for good: here the next command tries again. */
class WatchedRedis extends Redis {
  isClosed = false;

  override sendCommand(...[command, stream]: Parameters<Redis['sendCommand']>): unknown {
    if (this.status === 'end' && !this.isClosed) this.connect().catch(() => undefined);
    return super.sendCommand(command, stream);
  }
}

function createClient({ kind, hosts, url, db, username, password, isTls, options }: RedisAddress, shared: SharedOptions): Redis {
  if (kind === 'single') {
    try {
      return new Redis(url, shared);
    } catch {
      throw new Error(`cannot use the redis url ${withoutSecrets(url)}: it is not of the form ${REDIS_FORMS}`);
    }
  }
  const { name, sentinel_username: sentinelUsername, sentinel_password: sentinelPassword } = options;
  return new WatchedRedis({
    ...shared,
    ...{ sentinels: [...hosts], name, sentinelUsername, sentinelPassword, db, username, password },
    ...(isTls && { enableTLSForSentinelMode: true, sentinelTLS: shared.tls }),
    sentinelCommandTimeout: shared.commandTimeout,
    // All of them at once is one attempt to connect.
    sentinelRetryStrategy: () => null,
    // A primary that only its Sentinels have lost takes writes that will be lost.
    failoverDetector: true,
  });
}

function tlsOptions({ options: { ca, cert, key, servername } }: RedisAddress): ConnectionOptions {
  const read = (name: string, path: string | undefined): Buffer | undefined => {
    if (path === undefined) return undefined;
    try {
      return readFileSync(path);
    } catch (error) {
      throw new StoreUnavailable(`cannot read the file that ?${name}= of the redis url names: ${errorMessage(error)}; correct its path`);
    }
  };
  return { ca: read('ca', ca), cert: read('cert', cert), key: read('key', key), ...(servername !== undefined && { servername }) };
}

const SCAN_STEP = 1_000;

/** Names of keys, some maybe twice. */
export async function* scanKeys(link: RedisLink, attempt: string, pattern: string): AsyncGenerator<string> {
  if (link.cluster !== undefined) {
    const found = link.cluster.scanAll(pattern, SCAN_STEP);
    for (let next; (next = await link.ask(attempt, () => found.next())).done !== true;) yield* next.value;
    return;
  }
  let cursor = '0';
  do {
    const [next, names] = await link.ask(attempt, (redis) => redis.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_STEP));
    yield* names;
    cursor = next;
  } while (cursor !== '0');
}

/** Undefined for what was damaged: it is made again, or missing. */
export async function openBytes(link: RedisLink, attempt: string, stored: Buffer): Promise<Buffer | undefined> {
  try {
    return await link.atRest.openBytes(stored);
  } catch (error) {
    if (error instanceof SealBroken) return undefined;
    throw link.unavailable(attempt, error);
  }
}
