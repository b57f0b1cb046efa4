import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../platform/processes.js';
import { errorCode } from '../platform/errors.js';

/**
 * Runs `work` while no other process on this machine holds `dir`; the lock of a dead process is taken over (as scripts/lock.mjs, which runs
 * before there is a build).
 */
export async function withLock<T>(dir: string, work: () => Promise<T>): Promise<T> {
  await mkdir(dirname(dir), { recursive: true });
  while (!(await take(dir))) {
    if (await isAbandoned(dir)) await remove(dir);
    else await sleep(50);
  }
  try {
    return await work();
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function take(dir: string): Promise<boolean> {
  try {
    await mkdir(dir);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
  await writeFile(join(dir, 'pid'), String(process.pid));
  return true;
}

/** Between `mkdir` and the writing of the pid a lock has no owner's name: it gets two seconds. */
async function isAbandoned(dir: string): Promise<boolean> {
  const pid = await readOwner(dir);
  if (pid !== undefined) return !isAlive(pid);
  const made = await stat(dir).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > 2000;
}

/** Renamed first, so that of two who saw the same dead owner only one removes it. */
async function remove(dir: string): Promise<void> {
  const aside = `${dir}.${process.pid}`;
  const renamed = await rename(dir, aside).then(
    () => true,
    () => false,
  );
  if (!renamed) return;
  const pid = await readOwner(aside);
  const putBack =
    pid !== undefined &&
    isAlive(pid) &&
    (await rename(aside, dir)
      .then(() => true)
      .catch(() => false));
  if (!putBack) await rm(aside, { recursive: true, force: true });
}

async function readOwner(dir: string): Promise<number | undefined> {
  const text = await readFile(join(dir, 'pid'), 'utf8').catch(() => '');
  return Number(text) || undefined;
}
