/**
 * Who began an effect: one file per attempt, `effects/<id>.<ordinal>`, made with O_EXCL. The file system itself decides who is
 * first, whatever becomes of the lock. A file that is empty (its maker died) counts as an attempt of somebody unknown.
 */
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeJson } from './entry-codec.js';
import { codeOf, isAbsent } from './file-errors.js';
import { toFileName } from './file-paths.js';
import type { EffectClaim } from './store.js';

interface Attempt {
  readonly hash?: string;
  readonly attempt?: string;
}

/** How many attempts were before this one; undefined when the first was of another request (another hash). */
export async function reserveAttempt(dir: string, claim: EffectClaim, attempt: string): Promise<number | undefined> {
  for (let ordinal = 0; ; ordinal += 1) {
    const path = pathOf(dir, claim.id, ordinal);
    if (await create(path, { hash: claim.hash, attempt })) return ordinal;
    const other = await readAttempt(path);
    if (ordinal === 0 && other.hash !== undefined && other.hash !== claim.hash) return undefined;
    if (other.attempt === attempt) return ordinal;
  }
}

/** The hash that the first attempt was made with. */
export async function reservedHash(dir: string, id: string): Promise<string | undefined> {
  return (await readAttempt(pathOf(dir, id, 0))).hash;
}

function pathOf(dir: string, id: string, ordinal: number): string {
  return join(dir, 'effects', `${toFileName(id)}.${ordinal}`);
}

async function create(path: string, attempt: Attempt): Promise<boolean> {
  try {
    const file = await open(path, 'wx');
    try {
      await file.writeFile(`${JSON.stringify(attempt)}\n`);
      await file.datasync();
    } finally {
      await file.close();
    }
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    if (!isAbsent(error)) throw error;
    await mkdir(join(path, '..'), { recursive: true });
    return create(path, attempt);
  }
}

async function readAttempt(path: string): Promise<Attempt> {
  try {
    const value = decodeJson(await readFile(path, 'utf8'));
    return typeof value === 'object' && value !== null ? (value as Attempt) : {};
  } catch (error) {
    if (isAbsent(error)) return {};
    throw error;
  }
}
