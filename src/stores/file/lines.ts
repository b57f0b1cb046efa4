/**
 * Files of lines that grow at their end, read while others write them.
 *
 * A line counts once its newline is there. Bytes after the last newline are a line being written, or torn by a crash.
 *
 * @rule file/torn-line-ended-first: A writer that appends after a torn line ends that line first; it then is one unreadable line, and the
 *   new text begins a line. (test: test/stores/file/file.test.ts)
 * @rule file/replaced-file-read-again: A file that was replaced or cut is read again from its start. (test: test/stores/file/file.test.ts)
 */
import { randomUUID } from 'node:crypto';
import { renameSync, statSync } from 'node:fs';
import { open, readdir, readFile, rename, unlink, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { AtRest } from '../../platform/at-rest.js';
import { isAbsent, isForeign, toUnavailable, unlessAbsent } from './errors.js';

/** How far a file has been read: `end` is after its last newline; bytes from there to `size` are torn or just being written. */
export interface Reading {
  readonly ino: number;
  readonly end: number;
  readonly size: number;
}

export const UNREAD: Reading = { ino: 0, end: 0, size: 0 };

const CHUNK = 1 << 20;

/**
 * Reads the whole lines after `from`; `restart` is called before the first one when the file is another than before
 * (file/replaced-file-read-again).
 */
export async function readNewLines(path: string, from: Reading, take: (line: string) => void, restart: () => void): Promise<Reading> {
  const now = statSync(path, { throwIfNoEntry: false });
  if (now !== undefined && now.ino === from.ino && now.size === from.size) return from;
  const replaced = from.ino !== 0 && (now === undefined || now.ino !== from.ino || now.size < from.end);
  if (replaced) restart();
  if (now === undefined) return UNREAD;

  const file = await open(path, 'r');
  try {
    // Of the opened file, not of the path: it may have been replaced since.
    const { ino } = await file.stat();
    if (!replaced && from.ino !== 0 && ino !== from.ino) restart();
    return { ino, ...(await readLines(file, ino === from.ino && !replaced ? from.end : 0, take)) };
  } finally {
    await file.close();
  }
}

async function readLines(file: FileHandle, start: number, take: (line: string) => void): Promise<{ end: number; size: number }> {
  let end = start;
  let begun: Buffer[] = [];
  for (let at = start; ;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, at);
    if (bytesRead === 0) return { end, size: at };
    let from = 0;
    for (let newline = indexOfNewline(buffer, from, bytesRead); newline >= 0; newline = indexOfNewline(buffer, from, bytesRead)) {
      const rest = buffer.subarray(from, newline);
      const line = begun.length === 0 ? rest : Buffer.concat([...begun, rest]);
      begun = [];
      from = newline + 1;
      end = at + from;
      if (line.length > 0) take(line.toString('utf8'));
    }
    if (from < bytesRead) begun.push(buffer.subarray(from, bytesRead));
    at += bytesRead;
  }
}

function indexOfNewline(buffer: Buffer, from: number, until: number): number {
  const at = buffer.indexOf(0x0a, from);
  return at < until ? at : -1;
}

/** A file of lines, remembered as what its lines come to. Many may read it; who writes has a lock of the caller's. */
export interface FoldedLines<State> {
  /** Fresh, also when another process has written. `skipped` counts unreadable lines; 1 for something else in the file's place. */
  read(): Promise<{ readonly state: State; readonly skipped: number }>;
  /** On the disk once it resolves. To be called after `read`, which shows whether a torn line is to be ended. */
  append(...lines: readonly string[]): Promise<void>;
  /** Writes anew what `change` makes of each line. */
  rewrite(change: (line: string) => string): Promise<void>;
}

export interface Folding<State> {
  readonly path: string;
  readonly atRest: AtRest;
  readonly empty: () => State;
  /** False for a line that it cannot read. */
  readonly fold: (state: State, line: string) => boolean;
}

export function foldLines<State>({ path, atRest, empty, fold }: Folding<State>): FoldedLines<State> {
  const inTurn = createTurns();
  let state = empty();
  let skipped = 0;
  let reading = UNREAD;

  const forget = (): void => {
    state = empty();
    skipped = 0;
  };
  const changeStored = (stored: string, change: (line: string) => string): string => {
    const line = atRest.openRecord(stored);
    const after = change(line);
    return after === line ? stored : atRest.seal(after);
  };
  const take = (line: string): void => {
    if (!fold(state, atRest.openRecord(line))) skipped += 1;
  };

  return {
    read: () =>
      inTurn(async () => {
        try {
          reading = await readNewLines(path, reading, take, forget);
          return { state, skipped };
        } catch (error) {
          forget();
          reading = UNREAD;
          if (isForeign(error)) return { state, skipped: 1 };
          throw error;
        }
      }),

    append: (...lines) =>
      inTurn(async () => {
        const torn = reading.size > reading.end;
        const file = await open(path, 'a');
        try {
          await file.appendFile((torn ? '\n' : '') + lines.map((line) => `${atRest.seal(line)}\n`).join(''));
          await file.datasync();
        } finally {
          await file.close();
        }
      }),

    rewrite: (change) =>
      inTurn(async () => {
        const before = (await unlessAbsent(readFile(path, 'utf8'))) ?? '';
        const after = before
          .split('\n')
          .map((line) => (line === '' ? '' : changeStored(line, change)))
          .join('\n');
        if (after !== before) await replaceFile(path, after);
      }),
  };
}

/** All of `content` or what was there before: on the disk once it resolves. With `mode` the file has these permissions, with any umask. */
export async function replaceFile(path: string, content: string | Buffer, mode?: number): Promise<void> {
  await replaceFileIf(path, content, undefined, mode);
}

/** The same where `isWanted` says so in the moment of replacing; answers whether. */
export async function replaceFileIf(
  path: string,
  content: string | Buffer,
  isWanted: (() => boolean) | undefined,
  mode?: number,
): Promise<boolean> {
  const beside = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(beside, 'wx');
    try {
      await file.writeFile(content);
      if (mode !== undefined) await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    if (isWanted === undefined) await rename(beside, path);
    else if (isWanted()) renameSync(beside, path);
    else {
      await unlink(beside);
      return false;
    }
  } catch (error) {
    await unlink(beside).catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(path));
  return true;
}

/** Gone from the disk once it resolves. */
export async function removeFile(path: string): Promise<void> {
  if (await unlessAbsent(unlink(path).then(() => true))) await syncFolder(dirname(path));
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Runs its works one after another, even if one of them fails. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work);
    last = result.catch(() => undefined);
    return result;
  };
}

/** The names in a folder; none where there is no folder. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (isAbsent(error) || isForeign(error)) return [];
    throw toUnavailable('look what is there', folder, error);
  }
}
