/**
 * One writer at a time, across the processes of one machine. The lock is a symbolic link whose target names its holder: made in
 * one step with its content, so nobody ever sees an empty one.
 *
 * K1  It is held for one write, milliseconds; two workers take turns.
 * K2  It is stale when its holder is dead, was of an earlier boot, or has held it for 10 s. A stale one is taken over at once.
 * K3  A fresh one of another host is refused: files on a network drive give no promise that ours would hold.
 * K4  It only keeps order. Should two ever hold it (a process stopped for 10 s and woken), the journal's own order decides.
 */
import { readFileSync } from 'node:fs';
import { lstat, mkdir, readlink, symlink, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf, isAbsent } from './file-errors.js';
import { StoreUnavailable } from './store.js';

const STALE_AFTER_MS = 10_000;
const PATIENCE_MS = 5000;

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Of the machine: after a reboot process ids mean others. */
  readonly boot: string;
  /** Of the process: in a container the next one has the same id. */
  readonly started: number;
}

export async function withLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const mine = JSON.stringify(self());
  await acquire(path, mine);
  const since = Date.now();
  try {
    return await work();
  } finally {
    // Only ours: held that long, it may have been taken over (K2).
    if (Date.now() - since < STALE_AFTER_MS / 2 || (await holderAt(path)) === mine) await removeIfThere(path);
  }
}

async function acquire(path: string, mine: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await create(path, mine))) {
    const holder = await holderAt(path);
    if (holder === undefined) continue;
    if (await isStale(path, holder)) {
      await takeOver(path, holder, mine);
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

async function create(path: string, mine: string): Promise<boolean> {
  try {
    await symlink(mine, path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    if (!isAbsent(error)) throw error;
    await mkdir(dirname(path), { recursive: true });
    return false;
  }
}

/** Two may find the same stale lock: the second must not remove the first one's new lock, so removing has a lock of its own. */
async function takeOver(path: string, stale: string, mine: string): Promise<void> {
  const guard = `${path}.takeover`;
  if (!(await create(guard, mine))) {
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
  const { pid, host, boot, started } = parseHolder(holder) ?? {};
  const me = self();
  if (host === me.host && pid !== undefined) {
    if (boot !== me.boot || (pid === me.pid && started !== me.started) || !isAlive(pid)) return true;
  }
  const since = await lstat(path).then(
    ({ ctimeMs }) => ctimeMs,
    () => Date.now(),
  );
  return Date.now() - since > STALE_AFTER_MS;
}

function self(): Holder {
  return { pid: process.pid, host: hostname(), boot: bootId(), started: Math.round(performance.timeOrigin) };
}

/** Linux names each boot; elsewhere a reboot shows by the age of the lock. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}

/** The target of the link; of what is no link (a foreign file) its name, which is no holder and gets stale by its age. */
async function holderAt(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    return isAbsent(error) ? undefined : path;
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

async function removeIfThere(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (!isAbsent(error)) throw error;
  });
}
