/**
 * The connection to Redis that all port calls share.
 *
 * - Every call settles within `commandTimeoutMs`, connected or not: ioredis' own timeout also counts in its offline queue. Settled by
 *   timeout means unknown outcome (stores/rejected-is-unknown): the command may still be sent when the connection is back.
 * - Its queue is flushed every 20 attempts to connect, about 4 s, so that a long outage does not fill the memory.
 * - A socket that is silent for twice the timeout with a request open is dropped: a black hole never closes by itself.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { replyCode, isReply, toUnavailable, withoutSecrets } from './errors.js';
import { SCRIPTS, type ScriptAnswers } from './scripts.js';
import type { StoreUnavailable } from '../store.js';

/** ioredis adds a method for each script at run time: keys first, then arguments. */
export type ScriptedRedis = Redis & {
  [name in keyof ScriptAnswers]: (...args: (string | Buffer)[]) => Promise<ScriptAnswers[name]>;
};

export interface RedisLink {
  readonly redis: ScriptedRedis;
  readonly where: string;
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
  readonly log?: (line: string) => void;
}

export function openRedisLink({ url, commandTimeoutMs, log }: RedisLinkOptions): RedisLink {
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
