/**
 * One writer at a time, across the processes of one machine. The lock names its holder and is made in one step with its content, so
 * that no process ever sees an empty one: a hard link to the card of the process (`<dir>/locks/<pid>-<started>`), or, where the
 * file system has no hard links or the card is elsewhere, a symbolic link whose target is the name. A hard link needs no inode and
 * is several times cheaper.
 *
 * - A lock lasts for one write, milliseconds; two workers take turns.
 * - A fresh lock of another host is refused: files on a network drive give no promise that ours would hold.
 * - It only keeps order. Should two ever have it (a process stopped for 10 s and woken), the order of the journal decides.
 *
 * @rule file/stale-lock-taken-over: A lock is stale if its holder is dead, was of an earlier boot, or has had it (with a card: has taken
 *   no lock at all) for 10 s. A stale one is taken over at once. (test: test/stores/file/file.test.ts)
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { lstat, mkdir, readFile, readlink, symlink, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from '../../platform/processes.js';
import type { FileCalls } from './handles.js';
import { isAbsent } from './errors.js';
import { StoreUnavailable } from '../store.js';
import { errorCode } from '../../platform/errors.js';

const STALE_AFTER_MS = 10_000;
const PATIENCE_MS = 5000;

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Boot id of the machine: after a reboot process ids mean others. */
  readonly boot: string;
  /** Start of the process: in a container the next one has the same id. */
  readonly started: number;
}

/** Runs work while it holds the lock at a path. */
export type WithLock = <T>(path: string, work: () => Promise<T>) => Promise<T>;

/** For locks that are taken now and then: no card is needed. */
export const withLock: WithLock = (path, work) => holding(path, work, { tryLink: async () => false, unlink });

export interface Locks {
  readonly withLock: WithLock;
  /** Takes the card away; a lock that is taken afterwards brings it back. */
  close(): void;
}

/** For locks that are taken all the time, in folders below `dir`. */
export function createLocks(dir: string, calls: FileCalls): Locks {
  const folder = join(dir, 'locks');
  const { pid, started } = self();
  const card = join(folder, `${pid}-${started}`);
  let hasCards = true;

  const tryLink = async (path: string): Promise<boolean> => {
    for (let attempt = 0; hasCards && attempt < 2; attempt += 1) {
      try {
        await calls.link(card, path);
        return true;
      } catch (error) {
        if (errorCode(error) === 'EEXIST') return false;
        hasCards = isAbsent(error) && (await prepare(path));
      }
    }
    return false;
  };
  /** Makes all that a link needs. False where that failed: the symbolic link reports what is wrong with the path. */
  const prepare = async (path: string): Promise<boolean> => {
    try {
      await calls.makeFolder(dirname(path));
      writeCard(folder, card);
      return true;
    } catch {
      return false;
    }
  };
  return {
    withLock: (path, work) => holding(path, work, { tryLink, unlink: calls.unlink }),
    close() {
      try {
        unlinkSync(card);
        rmdirSync(folder);
      } catch {
        // It was never made, or other processes have theirs there.
      }
    },
  };
}

function writeCard(folder: string, card: string): void {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) removeIfLeft(join(folder, name));
  writeFileSync(card, selfText());
}

/** The card of a process that is dead. */
function removeIfLeft(card: string): void {
  try {
    if (isGone(parseHolder(readFileSync(card, 'utf8')))) unlinkSync(card);
  } catch {
    // Another process was first, or Perdura did not make the file.
  }
}

interface Means {
  /** A lock by a card; false when the path is taken, or no card can be used. */
  readonly tryLink: (path: string) => Promise<boolean>;
  readonly unlink: (path: string) => Promise<void>;
}

async function holding<T>(path: string, work: () => Promise<T>, { tryLink, unlink: remove }: Means): Promise<T> {
  if (!(await tryLink(path))) await acquire(path, tryLink);
  const since = Date.now();
  try {
    return await work();
  } finally {
    // Only ours: after that long, it may have been taken over (file/stale-lock-taken-over).
    if (Date.now() - since < STALE_AFTER_MS / 2 || (await holderAt(path)) === selfText()) await removeIfThere(path, remove);
  }
}

async function acquire(path: string, tryLink: Means['tryLink']): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await tryLink(path)) && !(await create(path))) {
    const holder = await holderAt(path);
    if (holder === undefined) continue;
    if (await isStale(path, holder)) {
      await takeOver(path, holder);
      continue;
    }
    const other = parseHolder(holder);
    if (other !== undefined && other.host !== hostname()) {
      throw new StoreUnavailable(
        `cannot write beside ${path}: ${other.host} (process ${other.pid}) writes there too, and the file store is for one machine; ` +
          'stop that worker, or use Redis (REDIS_URL) for several machines',
      );
    }
    if (Date.now() > deadline) {
      throw new StoreUnavailable(
        `cannot write beside ${path}: process ${other?.pid ?? holder} has held the lock for ${PATIENCE_MS} ms; see what it does`,
      );
    }
    await delay(1 + Math.random() * 3);
  }
}

async function create(path: string): Promise<boolean> {
  try {
    await symlink(selfText(), path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    if (!isAbsent(error)) throw error;
    await mkdir(dirname(path), { recursive: true });
    return false;
  }
}

/** Two may find the same stale lock: the second must not remove the first one's new lock, so removing has another lock. */
async function takeOver(path: string, stale: string): Promise<void> {
  const guard = `${path}.takeover`;
  if (!(await create(guard))) {
    const other = await holderAt(guard);
    if (other !== undefined && (await isStale(guard, other))) await removeIfThere(guard);
    else await delay(1);
    return;
  }
  try {
    if ((await holderAt(path)) === stale) await removeIfThere(path);
  } finally {
    await removeIfThere(guard);
  }
}

async function isStale(path: string, holder: string): Promise<boolean> {
  if (isGone(parseHolder(holder))) return true;
  const since = await lstat(path).then(
    ({ ctimeMs }) => ctimeMs,
    () => Date.now(),
  );
  return Date.now() - since > STALE_AFTER_MS;
}

/** Whether this holder is a process of this machine that has ended. */
function isGone(holder: Holder | undefined): boolean {
  const me = self();
  if (holder?.host !== me.host) return false;
  return holder.boot !== me.boot || (holder.pid === me.pid && holder.started !== me.started) || !isAlive(holder.pid);
}

const self = once((): Holder => ({ pid: process.pid, host: hostname(), boot: bootId(), started: Math.round(performance.timeOrigin) }));
const selfText = once(() => JSON.stringify(self()));

/** Keeps a value that never changes while a process lives. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

/** Linux names each boot; elsewhere a reboot shows by the age of the lock. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

/** The name that the lock has. A file that is no lock has its path for a name: that is no holder, and it gets stale by its age. */
async function holderAt(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    const text = await readFile(path, 'utf8').catch(() => '');
    return parseHolder(text) ? text : path;
  }
}

function parseHolder(text: string): Holder | undefined {
  try {
    const { pid, host, boot, started } = JSON.parse(text) as { readonly [field in keyof Holder]?: unknown };
    const ours = typeof pid === 'number' && typeof host === 'string' && typeof boot === 'string' && typeof started === 'number';
    return ours ? { pid, host, boot, started } : undefined;
  } catch {
    return undefined;
  }
}

async function removeIfThere(path: string, remove: Means['unlink'] = unlink): Promise<void> {
  await remove(path).catch((error: unknown) => {
    if (!isAbsent(error)) throw error;
  });
}
