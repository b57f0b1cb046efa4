import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Runs `work` while no other process on this machine holds `dir`. The lock of a dead process is taken over. */
export async function withLock(dir, work, { onWait } = {}) {
  mkdirSync(dirname(dir), { recursive: true });
  for (let waited = false; !take(dir);) {
    if (!waited) onWait?.(readPid(dir));
    waited = true;
    if (isAbandoned(dir)) remove(dir);
    else await sleep(100);
  }
  try {
    return await work();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function take(dir) {
  try {
    mkdirSync(dir);
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
  writeFileSync(join(dir, 'pid'), String(process.pid));
  return true;
}

/** Between `mkdir` and the writing of the pid a lock has no owner's name: it gets two seconds. */
function isAbandoned(dir) {
  const pid = readPid(dir);
  if (pid !== undefined) return !isAlive(pid);
  try {
    return Date.now() - statSync(dir).mtimeMs > 2000;
  } catch {
    return false;
  }
}

/** Renamed first, so that of two who saw the same dead owner only one removes it; a live one caught by mistake goes back. */
function remove(dir) {
  const aside = `${dir}.${process.pid}`;
  try {
    renameSync(dir, aside);
  } catch {
    return;
  }
  const pid = readPid(aside);
  if (pid !== undefined && isAlive(pid)) {
    try {
      renameSync(aside, dir);
      return;
    } catch {
      // Somebody took the place meanwhile: both do idempotent work, so the worst is that it is done twice.
    }
  }
  rmSync(aside, { recursive: true, force: true });
}

function readPid(dir) {
  try {
    return Number(readFileSync(join(dir, 'pid'), 'utf8')) || undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}
