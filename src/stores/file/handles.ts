/**
 * Files that grow at their end, kept open while they are written: opening and closing one for each line costs more than the line.
 *
 * Writing is made by short calls (calls.ts); only waiting for the disk always goes to the thread pool. A handle serves while the file has
 * its inode. If the file was replaced or removed, it is closed, and the path opened anew.
 */
import { closeSync, fdatasync, fstatSync } from 'node:fs';
import type { FileCalls } from './calls.js';
import type { Reading } from './lines.js';

export interface Appended {
  /** The reading that includes the lines; undefined when there is more to read (see `append`). */
  readonly reading: Reading | undefined;
  /** Resolves when they are on the disk. */
  readonly synced: Promise<void>;
}

export interface FileHandles {
  /**
   * Appends whole lines after what was read. There is more to read when a torn line is now ended, or when another process has written
   * in between. Of appends to one path the next begins when the one before has answered.
   */
  append(path: string, lines: string, before: Reading, how: { readonly sync: boolean }): Promise<Appended>;
  /** Closes those below a folder. */
  forget(folder: string): void;
  /** Files that are appended to afterwards are not kept open. */
  close(): void;
}

interface Handle {
  readonly fd: number;
  readonly ino: number;
  users: number;
  retired: boolean;
}

const MAX_OPEN = 512;
const DONE = Promise.resolve();

export function createFileHandles(calls: FileCalls): FileHandles {
  const handles = new Map<string, Handle>();
  let closed = false;

  const retire = (path: string, handle: Handle): void => {
    if (handles.get(path) === handle) handles.delete(path);
    handle.retired = true;
    if (handle.users === 0) closeSync(handle.fd);
  };

  const take = async (path: string, ino: number): Promise<Handle> => {
    const known = handles.get(path);
    if (known && known.ino === ino) {
      // A Map keeps the order of insertion: the first is the longest unused.
      handles.delete(path);
      handles.set(path, known);
      known.users += 1;
      return known;
    }
    if (known) retire(path, known);
    const fd = await calls.openToAppend(path);
    const handle: Handle = { fd, ino: fstatSync(fd).ino, users: 1, retired: closed };
    if (closed) return handle;
    handles.set(path, handle);
    const [oldest] = handles;
    if (handles.size > MAX_OPEN && oldest) retire(...oldest);
    return handle;
  };

  const release = (handle: Handle): void => {
    handle.users -= 1;
    if (handle.retired && handle.users === 0) closeSync(handle.fd);
  };

  return {
    async append(path, lines, before, { sync }) {
      const torn = before.size > before.end;
      const bytes = Buffer.from(torn ? `\n${lines}` : lines);
      const handle = await take(path, before.ino);
      let synced = DONE;
      try {
        for (let at = 0; at < bytes.length;) at += await calls.write(handle.fd, bytes, at);
        const { size } = fstatSync(handle.fd);
        const alone = !torn && size === before.size + bytes.length && (before.ino === 0 || before.ino === handle.ino);
        if (sync) {
          handle.users += 1;
          synced = toDisk(handle.fd).finally(() => release(handle));
        }
        return { reading: alone ? { ino: handle.ino, end: size, size } : undefined, synced };
      } finally {
        release(handle);
      }
    },

    forget(folder) {
      for (const [path, handle] of [...handles]) if (path.startsWith(`${folder}/`)) retire(path, handle);
    },

    close() {
      closed = true;
      for (const [path, handle] of [...handles]) retire(path, handle);
    },
  };
}

function toDisk(fd: number): Promise<void> {
  return new Promise((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve())));
}
