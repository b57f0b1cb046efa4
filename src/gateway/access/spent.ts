/**
 * What opens nothing any more: codes that were used, and sessions of browsers that have signed out. Written down where a restart and the
 * other gateways find it: in Redis where they share one, else in a folder. What cannot be looked up opens nothing either.
 *
 * - A record has an id, and whatever is given away names it. What was given away under another record opens nothing: so nothing opens again
 *   because a folder was lost, or a Redis emptied, or one taken in the place of the other.
 * - An entry stays a day longer than what it is about could open, for clocks that are set back. Then it goes by itself.
 */
import { createHash, randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GatewayError } from '../core/errors.js';
import { errorCode, errorMessage } from '../../platform/errors.js';
import { withTimeout } from '../../platform/promises.js';
import type { SharedCounts } from './limits.js';

/** A code or a session, the record that it names, and when it opens no longer, in epoch milliseconds. */
export interface GivenAway {
  readonly kind: 'code' | 'session';
  readonly id: string;
  readonly record: string;
  readonly until: number;
}

/** Codes that were used and sessions that were signed out. Throws what HTTP answers with 503 where it cannot be read or written. */
export interface SpentRecord {
  /** The name that is given away with each code and session. */
  id(): Promise<string>;
  /** From now on it opens nothing. False where it opened nothing before: of many at once, one is answered true. */
  spend(given: GivenAway): Promise<boolean>;
  /** Whether it opens nothing any more, or names another record. */
  isSpent(given: GivenAway): Promise<boolean>;
}

/** The `type` of the problem that a gateway answers while its record cannot be used. */
export const RECORD_AWAY = 'sign-outs-unknown';

const DAY_MS = 24 * 3600_000;
const SWEEP_EVERY_MS = 60_000;
/** Of a client that waits by itself for ever. */
const ANSWER_MS = 5_000;
const ID = /^[\w-]{24}$/;

/** For the gateways of one machine. `dir` is made when it is needed, with a file for each entry: the first who makes it has spent it. */
export function recordSpentInFolder(dir: string, log: (line: string) => void = () => undefined, now = Date.now): SpentRecord {
  const attempt = createAttempts(`the folder ${dir}`, log);
  const idFile = join(dir, 'id');
  const toFile = ({ kind, id, until }: GivenAway): string => join(dir, `${kind}-${shortHash(id)}-${Math.ceil(until / 1_000)}`);
  let sweptAt = -Infinity;

  const readId = async (): Promise<string | undefined> => {
    const id = await unlessAbsent(readFile(idFile, 'utf8'));
    if (id !== undefined && !ID.test(id)) throw new Error(`${idFile} is damaged: remove it, and everybody signs in again`);
    return id;
  };
  /** Written whole before it has its name; of two who make it at once the first one counts. */
  const makeId = async (): Promise<string> => {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const fresh = join(dir, `new-${randomBytes(6).toString('hex')}`);
    try {
      await writeFile(fresh, newId(), { mode: 0o600, flag: 'wx' });
      await link(fresh, idFile).catch((error: unknown) => {
        if (errorCode(error) !== 'EEXIST') throw error;
      });
    } finally {
      await rm(fresh, { force: true });
    }
    return (await readId()) ?? Promise.reject(new Error(`${idFile} was removed just now`));
  };

  const sweep = async (): Promise<void> => {
    if (now() - sweptAt < SWEEP_EVERY_MS) return;
    sweptAt = now();
    const isOver = (name: string): boolean => Number(/-(\d+)$/.exec(name)?.[1] ?? Infinity) * 1_000 + DAY_MS < now();
    const names = await readdir(dir).catch(() => []);
    await Promise.all(names.filter(isOver).map((name) => rm(join(dir, name), { force: true }).catch(() => undefined)));
  };

  return {
    id: () => attempt('sign a user in', async () => (await readId()) ?? (await makeId())),
    spend: (given) =>
      attempt(given.kind === 'code' ? 'take a code' : 'sign a browser out', async () => {
        await sweep();
        if ((await readId()) !== given.record) return false;
        const file = await open(toFile(given), 'wx', 0o600).catch((error: unknown) => {
          if (errorCode(error) === 'EEXIST') return undefined;
          throw error;
        });
        if (file === undefined) return false;
        try {
          await file.sync();
        } finally {
          await file.close();
        }
        return true;
      }),
    isSpent: (given) =>
      attempt(LOOK_UP, async () => {
        const [id, entry] = await Promise.all([readId(), unlessAbsent(stat(toFile(given)))]);
        return id !== given.record || entry !== undefined;
      }),
  };
}

/** What is used of ioredis; keys of one record have one hash tag, so that a node that loses its entries loses its id too. */
interface RedisCommands {
  set(key: string, value: string, ...options: (string | number)[]): Promise<unknown>;
  mget(...keys: string[]): Promise<(string | null)[]>;
}

/** For gateways that share a Redis. */
export function recordSpentInRedis(
  { client, prefix }: SharedCounts,
  log: (line: string) => void = () => undefined,
  now = Date.now,
): SpentRecord {
  const redis = client as RedisCommands;
  const attemptAll = createAttempts('Redis', log);
  const attempt = <T>(what: string, work: () => Promise<T>): Promise<T> =>
    attemptAll(what, () => withTimeout(ANSWER_MS, work(), (ms) => new Error(`no answer within ${ms} ms`)));
  const idKey = `${prefix}:{spent}:id`;
  const toKey = ({ kind, id }: GivenAway): string => `${prefix}:{spent}:${kind}:${shortHash(id)}`;
  const isSpent = async (given: GivenAway): Promise<boolean> => {
    const [id, entry] = await redis.mget(idKey, toKey(given));
    return id !== given.record || entry !== null;
  };
  return {
    id: () =>
      attempt('sign a user in', async () => {
        await redis.set(idKey, newId(), 'NX');
        const [id] = await redis.mget(idKey);
        if (typeof id === 'string') return id;
        throw new Error(`${idKey} was deleted just now`);
      }),
    spend: (given) =>
      attempt(given.kind === 'code' ? 'take a code' : 'sign a browser out', async () => {
        if (await isSpent(given)) return false;
        const ms = Math.max(0, Math.ceil(given.until - now())) + DAY_MS;
        return (await redis.set(toKey(given), '1', 'PX', ms, 'NX')) === 'OK';
      }),
    isSpent: (given) => attempt(LOOK_UP, () => isSpent(given)),
  };
}

const LOOK_UP = 'look up whether this browser has signed out';

/** What fails is told to the operator once, and to each client in words that name no place. */
function createAttempts(where: string, log: (line: string) => void): <T>(what: string, work: () => Promise<T>) => Promise<T> {
  let isReported = false;
  return async (what, work) => {
    try {
      const answer = await work();
      isReported = false;
      return answer;
    } catch (error) {
      const reason = `the record of used codes and sign-outs is in ${where}: ${errorMessage(error)}`;
      if (!isReported) log(`cannot ${what}, so browsers stay out: ${reason}`);
      isReported = true;
      const why = "the gateway's record of used codes and sign-outs does not answer, and its log says why";
      const message = `cannot ${what} now: ${why}; try again, or send a token`;
      throw new GatewayError({ status: 503, type: RECORD_AWAY, message, retryAfter: 2 });
    }
  };
}

async function unlessAbsent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function newId(): string {
  return randomBytes(18).toString('base64url');
}

/** Of one length, and of no use to a reader of the record. */
function shortHash(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 32);
}
