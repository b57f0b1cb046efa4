/** A text file read whole, as it is to be written back: what is not UTF-8 is refused, since a rewrite would spoil it. */
import type { Seen } from '../../workspace-write.js';
import { PathRefused, type Workspace } from '../../workspace.js';
import pLimit from 'p-limit';

export interface WholeFile {
  readonly text: string;
  readonly seen: Seen;
}

/** Undefined where there is no such file. `real`: resolved. */
export async function readWhole(place: Workspace, real: string, mostBytes: number): Promise<WholeFile | undefined> {
  const opened = await place.openFile(real).catch((error: unknown) => {
    if (error instanceof PathRefused && error.kind === 'missing') return undefined;
    throw error;
  });
  if (!opened) return undefined;
  const { handle, bytes, seen } = opened;
  try {
    const name = place.shown(real);
    if (bytes > mostBytes) {
      throw new Error(
        `cannot edit ${name}: its ${bytes} bytes are over the limit of ${mostBytes}. Change it with a program, by run_command.`,
      );
    }
    // One byte more shows a file that has grown since; `writeFile` notices every other change.
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(bytes + 1), 0, bytes + 1, 0);
    return { text: toText(name, buffer.subarray(0, bytesRead)), seen };
  } finally {
    await handle.close();
  }
}

function toText(name: string, bytes: Buffer): string {
  if (bytes.includes(0)) throw new Error(`cannot edit ${name}: it is a binary file`);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new Error(`cannot edit ${name}: it is not UTF-8 text, and writing it back would spoil it. Convert it first.`, { cause });
  }
}

// Files are changed one after the other in one worker: of two edits of one file at the same time, one would be lost.

const one = pLimit(1);

export function inTurn<T>(work: () => Promise<T>): Promise<T> {
  return one(work);
}
