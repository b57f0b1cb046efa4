/**
 * Clients repeat a request after a time-out, by themselves and without an idempotency key; what they count in a header tells it from a new
 * one. The first leaves its id with the other gateways before anything is done for it, and a repeat has that id, so all of them are one
 * message: also after the gateway of the first was killed.
 *
 * @rule gateway/a-repeat-is-the-same: A repeat has the id of a first request of the same token with the same body, of the last ten minutes:
 *   of the earliest that waits for its answer and that no repeat of this count has taken, so that equal requests stay apart. (test:
 *   test/gateway/repeated-requests.test.ts)
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, errorMessage } from '../../platform/errors.js';
import type { SharedCounts } from '../access/limits.js';
import { GatewayError } from './errors.js';

const WINDOW_MS = 600_000;
/** First requests of one body that are remembered: the latest. */
const MAX_EQUAL = 256;

/** Where gateways leave notes for each other, for ten minutes and as much longer as it takes to sweep. */
export interface Notes {
  /** The latest 256 notes of a list are kept. */
  add(list: string, note: string): Promise<void>;
  /** In their order. */
  all(list: string): Promise<readonly string[]>;
  /** True for the first who claims it. */
  claim(name: string): Promise<boolean>;
}

export interface RepeatedRequests {
  /** `attempt`: 0 is the first; `request`: the same for the same body of the same token. */
  idOf(request: string, attempt: number): Promise<string>;
  /** The client has its answer, as far as that can be known. */
  answered(request: string, id: string): Promise<void>;
}

interface Options {
  /** A request with the body of an earlier one is that one, also where its client does not say that it repeats. Default: false. */
  readonly joinsEqual?: boolean;
  readonly log?: (line: string) => void;
  readonly now?: () => number;
}

export function createRepeatedRequests(notes: Notes, { joinsEqual = false, log, now = Date.now }: Options = {}): RepeatedRequests {
  const firsts = async (request: string): Promise<readonly string[]> =>
    (await notes.all(request)).flatMap((note) => {
      const [at = '', id = ''] = note.split(' ');
      return Number(at) > now() - WINDOW_MS ? [id] : [];
    });

  const known = async (request: string, attempt: number): Promise<string | undefined> => {
    const [all, answered] = await Promise.all([firsts(request), notes.all(`${request}-answered`)]);
    if (attempt === 0) return all.at(-1);
    for (const id of all) if (!answered.includes(id) && (await notes.claim(`${request}-${attempt}-${id}`))) return id;
    // It was answered while its client gave up on it.
    return all.at(-1);
  };

  return {
    async idOf(request, attempt) {
      try {
        const found = attempt > 0 || joinsEqual ? await known(request, attempt) : undefined;
        if (found !== undefined) return found;
        const id = randomUUID();
        await notes.add(request, `${now()} ${id}`);
        return id;
      } catch (error) {
        log?.(`the record of requests, by which a repeat finds its first one, does not answer: ${errorMessage(error)}`);
        if (attempt === 0) return randomUUID();
        const message = 'the record of requests does not answer, and this one says that it repeats another: try again in a moment';
        throw new GatewayError({ status: 503, type: 'unreachable', message, retryAfter: 2 });
      }
    },
    answered: (request, id) => notes.add(`${request}-answered`, id).catch(() => undefined),
  };
}

/** For one gateway alone. */
export function notesInMemory(now = Date.now): Notes {
  const lists = new Map<string, { readonly until: number; readonly notes: string[] }>();
  const claims = new Map<string, number>();
  const sweep = (): void => {
    for (const [list, { until }] of lists) if (until < now()) lists.delete(list);
    for (const [name, until] of claims) if (until < now()) claims.delete(name);
  };
  return {
    add(list, note) {
      sweep();
      const notes = [...(lists.get(list)?.notes ?? []), note].slice(-MAX_EQUAL);
      lists.set(list, { until: now() + WINDOW_MS, notes });
      return Promise.resolve();
    },
    all: (list) => Promise.resolve(lists.get(list)?.notes ?? []),
    claim(name) {
      const isFirst = !claims.has(name);
      if (isFirst) claims.set(name, now() + WINDOW_MS);
      return Promise.resolve(isFirst);
    },
  };
}

/** For the gateways of one machine: a folder for each list, with a file for each note. */
export function notesInFolder(dir: string, now = Date.now): Notes {
  let sweptAt = now();
  let count = 0;
  const sweep = async (): Promise<void> => {
    if (now() - sweptAt < WINDOW_MS) return;
    sweptAt = now();
    const current = toPeriod(now());
    const old = (await readdir(dir).catch(() => [])).filter((name) => Number(name) < current - 1);
    await Promise.all(old.map((name) => rm(join(dir, name), { recursive: true, force: true }).catch(() => undefined)));
  };
  /** Lists of a period are in one folder, which goes when no note of it counts any more. */
  const periods = (): readonly string[] => [toPeriod(now()) - 1, toPeriod(now())].map(String);
  const put = async (folder: string, name: string, text: string): Promise<void> => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, name), text, { flag: 'wx', mode: 0o600 });
  };
  return {
    async add(list, note) {
      await sweep();
      const order = `${String(now()).padStart(16, '0')}-${String((count += 1)).padStart(9, '0')}-${process.pid}`;
      await put(join(dir, String(toPeriod(now())), list), `${order} ${note}`.replace(/[^\w. -]/g, ''), '');
    },
    async all(list) {
      const names = await Promise.all(periods().map((period) => readdir(join(dir, period, list)).catch(() => [])));
      const notes = names.flatMap((some) => some.sort()).slice(-MAX_EQUAL);
      return notes.map((name) => name.slice(name.indexOf(' ') + 1));
    },
    async claim(name) {
      try {
        await put(join(dir, String(toPeriod(now())), 'claims'), name, '');
        return true;
      } catch (error) {
        if (errorCode(error) === 'EEXIST') return false;
        throw error;
      }
    },
  };
}

function toPeriod(time: number): number {
  return Math.floor(time / WINDOW_MS);
}

/** What is used of ioredis. */
interface RedisCommands {
  set(key: string, value: string, ...options: (string | number)[]): Promise<unknown>;
  multi(): Writes;
  lrange(key: string, start: number, stop: number): Promise<string[]>;
}

interface Writes {
  rpush(key: string, value: string): Writes;
  ltrim(key: string, start: number, stop: number): Writes;
  pexpire(key: string, ms: number): Writes;
  exec(): Promise<unknown>;
}

/** For gateways that share a Redis. */
export function notesInRedis({ client, prefix }: SharedCounts): Notes {
  const redis = client as RedisCommands;
  const toKey = (name: string): string => `${prefix}:request:${name}`;
  return {
    async add(list, note) {
      const key = toKey(list);
      // In their order, also where a cluster has moved the key meanwhile: one that never expires would stay for good.
      await redis.multi().rpush(key, note).ltrim(key, -MAX_EQUAL, -1).pexpire(key, WINDOW_MS).exec();
    },
    all: (list) => redis.lrange(toKey(list), 0, -1),
    claim: async (name) => (await redis.set(toKey(name), '1', 'PX', WINDOW_MS, 'NX')) === 'OK',
  };
}
