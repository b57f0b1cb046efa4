/**
 * The end of what conversations of a scope share, in files.
 *
 * - `<dir>/erased/<scope>.log` names who may not write there any more, one a line. It is on the disk before anything goes.
 * - A writer looks there under the lock of what it changes, and what is removed is removed under the same lock: so a late write is either
 *   removed, or refused (stores/erased-stays-empty).
 * - Conversations are none of it: a folder of theirs goes only when it is empty.
 */
import { readFileSync } from 'node:fs';
import { appendFile, mkdir, open, readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describeErrors, isAbsent } from './errors.js';
import { namesIn, syncFolder } from './lines.js';
import { withLock } from './lock.js';
import { conversationsDir, erasedFile, scopeDir } from './paths.js';
import { LifeDeleted, type ScopeKey } from '../store.js';
import type { ErasedScope } from '../memory-ports.js';
import { errorCode } from '../../platform/errors.js';

/** Each with the files that are written under it; all others are under the first. */
const LOCKED: Readonly<Record<string, (name: string) => boolean>> = {
  'semantic.lock': (name) => name.startsWith('semantic.jsonl'),
  'semantic_removed.lock': (name) => name.startsWith('semantic_removed.jsonl'),
  'proposals.lock': (name) => name.startsWith('proposals.jsonl'),
  'forgotten.lock': (name) => name.startsWith('forgotten.jsonl'),
  'documents.lock': () => true,
};
/** Of the folder of a scope: what is not removed with the rest. */
const STAYS = /^conversations$|\.lock(?:\.takeover)?$/;

export function eraseScope(dir: string, key: ScopeKey, writers: readonly string[]): Promise<ErasedScope> {
  const folder = scopeDir(dir, key);
  return describeErrors(folder, `erase ${key.scope}`, async () => {
    await noteWriters(dir, key, writers);
    let records = 0;
    if ((await namesIn(folder)).length === 0) return { records };
    for (const [lock, isUnder] of Object.entries(LOCKED)) {
      await withLock(join(folder, lock), async () => {
        for (const name of (await namesIn(folder)).filter((each) => !STAYS.test(each) && isUnder(each))) {
          records += await countFiles(join(folder, name));
          await rm(join(folder, name), { recursive: true, force: true, maxRetries: 3 });
        }
        await syncFolder(folder);
      });
    }
    const conversations = conversationsDir(dir, key);
    for (const name of await namesIn(conversations)) await removeIfEmpty(join(conversations, name));
    for (const empty of [conversations, folder]) await removeIfEmpty(empty);
    return { records };
  });
}

/** To be called under the lock of what is written: throws LifeDeleted where the scope was erased while its writer was at work. */
export function refuseErased(dir: string, key: ScopeKey, attempt: string): void {
  if (key.life === undefined) return;
  for (const line of readErased(dir, key)) {
    const [at = '', writer] = line.split(' ');
    if (writer === key.life) throw new LifeDeleted(attempt, { conversation: `the memory of ${key.scope}`, at: Number(at) / 1000 });
  }
}

export function countErasures(dir: string, key: ScopeKey): number {
  return readErased(dir, key).length;
}

function readErased(dir: string, key: ScopeKey): string[] {
  try {
    return readFileSync(erasedFile(dir, key), 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch (error) {
    // What cannot be read must not count as "not erased".
    if (isAbsent(error)) return [];
    throw error;
  }
}

async function noteWriters(dir: string, key: ScopeKey, writers: readonly string[]): Promise<void> {
  const path = erasedFile(dir, key);
  const known = new Set(readErased(dir, key).map((line) => line.split(' ')[1]));
  const fresh = writers.filter((writer) => !known.has(writer));
  if (fresh.length === 0) return;
  await mkdir(dirname(path), { recursive: true });
  const now = Date.now();
  // After a torn line the first would not begin a line; the empty one is none.
  await appendFile(path, `\n${fresh.map((writer) => `${now} ${writer}\n`).join('')}`);
  const file = await open(path, 'r');
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
  await syncFolder(dirname(path));
}

async function countFiles(path: string): Promise<number> {
  try {
    return (await readdir(path, { recursive: true, withFileTypes: true })).filter((entry) => !entry.isDirectory()).length;
  } catch (error) {
    if (errorCode(error) === 'ENOTDIR') return 1;
    throw error;
  }
}

async function removeIfEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch((error: unknown) => {
    if (!['ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) throw error;
  });
}
