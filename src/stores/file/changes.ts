/**
 * Notes of which lives of a scope were written to (noted-changes.ts): a file of lines, one for each write, that begins anew when it is long.
 * Who has read it up to some place reads on from there; where it is another file by now, all lives are looked at. The file is opened for each
 * note, after the write, so that a reader that finds the file gone sees the write of a note in it.
 */
import { closeSync, fstatSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isAbsent, isForeign } from './errors.js';
import { scopeDir } from './paths.js';
import type { ConversationKey, LifeName, ScopeKey } from '../store.js';

const NAME = 'changes.log';
const MAX_BYTES = 1024 * 1024;

/** Never throws: if a note cannot be written, the file goes, and a search looks at all lives (stores/lost-notes-cost-a-look). */
export function noteChange(dir: string, key: ConversationKey): void {
  const path = join(scopeDir(dir, key), NAME);
  try {
    const file = openSync(path, 'a');
    try {
      writeSync(file, `${JSON.stringify([key.conversation, key.life])}\n`);
      if (fstatSync(file).size > MAX_BYTES) unlinkSync(path);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (!isAbsent(error)) remove(path);
  }
}

export interface Changes {
  /** Where to read on; '' where there are no notes. */
  readonly cursor: string;
  /** Undefined: not known. */
  readonly lives: readonly LifeName[] | undefined;
}

export function changesSince(dir: string, key: ScopeKey, since: string | undefined): Changes {
  const path = join(scopeDir(dir, key), NAME);
  try {
    const file = openSync(path, 'r');
    try {
      const { ino, birthtimeMs, size } = fstatSync(file);
      // A number of a file is used again.
      const name = `${ino}.${birthtimeMs}`;
      const [before, from = '0'] = since?.split('@') ?? [];
      const begin = before === name ? Number(from) : NaN;
      if (!(begin <= size)) return { cursor: `${name}@${size}`, lives: undefined };
      const bytes = Buffer.alloc(size - begin);
      const read = readSync(file, bytes, 0, bytes.length, begin);
      const end = bytes.subarray(0, read).lastIndexOf(0x0a) + 1;
      const lines = bytes.toString('utf8', 0, end).split('\n');
      return { cursor: `${name}@${begin + end}`, lives: lines.flatMap((line) => readLife(line) ?? []) };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (isAbsent(error) || isForeign(error)) return { cursor: '', lives: undefined };
    throw error;
  }
}

function readLife(line: string): LifeName | undefined {
  try {
    const [conversation, life] = JSON.parse(line) as unknown[];
    return typeof conversation === 'string' && typeof life === 'string' ? { conversation, life } : undefined;
  } catch {
    return undefined;
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It is gone, or the disk is: then the writes themselves fail.
  }
}
