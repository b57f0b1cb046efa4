/**
 * The connection to Redis that all port calls share.
 *
 * - Every call settles within `commandTimeoutMs`, connected or not: the timeout of ioredis also counts in its offline queue. Settled by
 *   timeout means unknown outcome (stores/rejected-is-unknown): the command may still be sent when the connection is back.
 * - Its queue is flushed every 20 attempts to connect, about 4 s, so that a long outage does not fill the memory.
 * - A socket that is silent for twice the timeout with a request open is dropped: a black hole never closes by itself.
 */
import type { Socket } from 'node:net';
import { types } from 'node:util';
import { Redis, type RedisOptions } from 'ioredis';
import { createAtRest, KeyMissing, SealBroken, type AtRest } from '../../platform/at-rest.js';
import { errorMessage } from '../../platform/errors.js';
import { SCRIPTS, type ScriptAnswers } from './scripts.js';
import { StoreUnavailable } from '../store.js';

/** ioredis adds a method for each script at run time: keys first, then arguments. */
export type ScriptedRedis = Redis & {
  [name in keyof ScriptAnswers]: (...args: (string | Buffer)[]) => Promise<ScriptAnswers[name]>;
};

export interface RedisLink {
  readonly redis: ScriptedRedis;
  readonly where: string;
  /** How texts and bytes are written and read back. */
  readonly atRest: AtRest;
  /** Runs a command; its failure becomes StoreUnavailable, in which `attempt` ends the sentence "cannot …". */
  ask<T>(attempt: string, command: (redis: ScriptedRedis) => Promise<T>): Promise<T>;
  /** Like `ask`; undefined when the key holds another type (stores/foreign-is-skipped). */
  askUnlessForeign<T>(attempt: string, command: (redis: ScriptedRedis) => Promise<T>): Promise<T | undefined>;
  unavailable(attempt: string, error: unknown): StoreUnavailable;
  close(): Promise<void>;
}

export interface RedisLinkOptions {
  readonly url: string;
  readonly commandTimeoutMs: number;
  /** Default: plain. */
  readonly atRest?: AtRest;
  readonly log?: (line: string) => void;
}

export function openRedisLink({ url, commandTimeoutMs, atRest = createAtRest(), log }: RedisLinkOptions): RedisLink {
  const where = withoutSecrets(url);
  const redis = createClient(url, {
    lazyConnect: true,
    commandTimeout: commandTimeoutMs,
    connectTimeout: commandTimeoutMs,
    socketTimeout: 2 * commandTimeoutMs,
    retryStrategy: (attempt) => Math.min(50 * attempt, 250),
    maxRetriesPerRequest: 20,
    // After a failover the old primary may still be there, as a replica.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
    // For a socket that is closed already ioredis would arm a timer all the same, and hold the ending process for two seconds.
    disconnectTimeout: 0,
    scripts: SCRIPTS,
  });

  redis.on('connect', () => writeTogether((redis as unknown as { readonly stream: Socket }).stream));
  let fault: string | undefined;
  redis.on('error', (error: Error) => {
    const first = fault === undefined;
    fault = error.message;
    if (first) log?.(`redis at ${where}: ${fault}; trying again until it answers`);
  });
  redis.on('ready', () => (fault = undefined));

  const unavailable = (attempt: string, error: unknown) => toUnavailable(attempt, where, error, isReply(error) ? undefined : fault);
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
    where,
    atRest: describing(atRest, (error) => unavailable('read what is stored', error)),
    ask,
    askUnlessForeign,
    unavailable,
    async close() {
      // Answers that are on their way are waited for; a Redis that does not answer is not.
      if (redis.status === 'ready') await redis.quit().catch(() => undefined);
      redis.disconnect();
    },
  };
}

/** What is sent in one piece of work leaves in one packet: ioredis writes each command by itself. */
function writeTogether(socket: Socket): void {
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

function createClient(url: string, options: RedisOptions): ScriptedRedis {
  try {
    return new Redis(url, options) as ScriptedRedis;
  } catch {
    // Without its cause: Node's error shows the url, password and all.
    throw new Error(
      `cannot use the redis url ${withoutSecrets(url)}: it is not of the form redis://user:password@host:6379/0 ` +
        '(characters such as / and # in the password are written %2F and %23)',
    );
  }
}

/** Without user, password and query (which may carry options such as `password=`). */
export function withoutSecrets(url: string): string {
  return url.replace(/\?.*$/s, '').replace(/^([a-z+]+:\/\/)?.*@/is, '$1');
}

/** By the first word of Redis' reply. */
const ADVICE: { readonly [code: string]: string } = {
  WRONGTYPE: 'a key of this conversation holds something that is not ours: look at it with TYPE, then RENAME or DEL it',
  MISCONF: 'redis cannot save to its disk and takes no writes: free space there, or see its log',
  OOM: 'redis is full: raise maxmemory or free memory',
  NOAUTH: 'it asks for a password: put it into the redis url',
  WRONGPASS: 'check user and password in the redis url',
  NOPERM: 'its ACL does not allow this user the command',
  READONLY: 'this is a replica: point the redis url at the primary',
  LOADING: 'it is loading its data: wait',
  MOVED: 'this is a node of a cluster, which is not supported: use a single redis or one behind a proxy',
};

/** Waiting may end these; the other replies of Redis need a person. */
const PASSING = ['LOADING', 'BUSY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'READONLY', 'MISCONF', 'OOM'];

export function toUnavailable(attempt: string, where: string, error: unknown, lastFault: string | undefined): StoreUnavailable {
  const reason = errorMessage(error);
  // It says what to do itself, and Redis is well.
  if (error instanceof KeyMissing) return new StoreUnavailable(`cannot ${attempt}: ${reason}`, { cause: error });
  const advice =
    (isReply(error) ? ADVICE[replyCode(error)] : undefined) ??
    'see that redis runs and can be reached; a write may have been applied, and is safe to repeat';
  const fault = lastFault === undefined || lastFault === reason ? '' : ` (${lastFault})`;
  // Not the error itself as cause: ioredis hangs the command on it, for AUTH with the password, else with people's texts.
  return new StoreUnavailable(`cannot ${attempt}: redis at ${where}: ${reason}${fault}; ${advice}`, { cause: new Error(reason) });
}

/** True when asking again later may give another answer: no reply at all, or one that passes. */
export function mayPass(error: unknown): boolean {
  return !isReply(error) || PASSING.includes(replyCode(error));
}

/** Redis itself refused. */
export function isReply(error: unknown): error is Error {
  return types.isNativeError(error) && error.name === 'ReplyError';
}

export function replyCode(error: Error): string {
  return /^[A-Z]+/.exec(error.message)?.[0] ?? '';
}

/**
 * What a person should know about this Redis before trusting it with conversations. Reads INFO, not CONFIG: managed services forbid the
 * latter.
 */
export async function checkRedis(link: RedisLink): Promise<string[]> {
  await link.ask('reach the store', (redis) => redis.ping());
  let info: ReadonlyMap<string, string>;
  try {
    info = parseInfo(await link.redis.info());
  } catch (error) {
    if (!isReply(error)) throw link.unavailable('read the settings of the store', error);
    return [`redis does not show its settings (${errorMessage(error)}): make sure of appendonly yes and maxmemory-policy noeviction`];
  }
  return [...warnings(info)];
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

const SCAN_STEP = 1_000;

/** Names of keys, some maybe twice. */
export async function* scanKeys(link: RedisLink, attempt: string, pattern: string): AsyncGenerator<string> {
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
