/**
 * Files of lines that grow at their end, read while others write them.
 *
 * A line counts once its newline is there. Bytes after the last newline are a line being written, or torn by a crash.
 *
 * @rule file/torn-line-ended-first: A writer that appends after a torn line ends it first; it then is one unreadable line, and ours begins
 *   on its own. (test: test/stores/file/file.test.ts)
 * @rule file/replaced-file-read-again: A file that was replaced or cut is read again from its start. (test: test/stores/file/file.test.ts)
 */
import { open, type FileHandle } from 'node:fs/promises';
import { statSync } from 'node:fs';

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
