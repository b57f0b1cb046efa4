/**
 * Files that grow at their end, open while they are written: opening and closing one for each line costs more than the line. A handle
 * serves while the file has its inode. If the file was replaced or removed, it is closed, and the path opened anew.
 *
 * Writing is made by short calls, of which the thread pool costs several times what they cost: they are made at once. But a call that makes,
 * links or writes a file can wait for the disk when that is busy, and everything else in the process would wait with it. So simultaneous
 * calls take 10 ms of one turn of the event loop together; later ones go to the thread pool, and after a single call that took longer all
 * of them for a second. Only waiting for the disk always goes there.
 */
import * as fs from 'node:fs';
import { link, mkdir, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';
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
  /** Files that are appended to afterwards are closed at once. */
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
    if (handle.users === 0) fs.closeSync(handle.fd);
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
    const handle: Handle = { fd, ino: fs.fstatSync(fd).ino, users: 1, retired: closed };
    if (closed) return handle;
    handles.set(path, handle);
    const [oldest] = handles;
    if (handles.size > MAX_OPEN && oldest) retire(...oldest);
    return handle;
  };

  const release = (handle: Handle): void => {
    handle.users -= 1;
    if (handle.retired && handle.users === 0) fs.closeSync(handle.fd);
  };

  return {
    async append(path, lines, before, { sync }) {
      const torn = before.size > before.end;
      const bytes = Buffer.from(torn ? `\n${lines}` : lines);
      const handle = await take(path, before.ino);
      let synced = DONE;
      try {
        for (let at = 0; at < bytes.length;) at += await calls.write(handle.fd, bytes, at);
        const { size } = fs.fstatSync(handle.fd);
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
  return new Promise((resolve, reject) => fs.fdatasync(fd, (error) => (error ? reject(error) : resolve())));
}

export interface FileCalls {
  link(existing: string, path: string): Promise<void>;
  unlink(path: string): Promise<void>;
  makeFolder(path: string): Promise<void>;
  openToAppend(path: string): Promise<number>;
  /** Answers how many bytes of `bytes` from `at` on were written. */
  write(fd: number, bytes: Buffer, at: number): Promise<number>;
}

const BUDGET_MS = 10;
const BUSY_FOR_MS = 1_000;
const openFile = promisify(fs.open);
const writeFile = promisify(fs.write);

/** Chooses between two ways to make a call. */
export type Chooser = <T>(atOnce: () => T, pooled: () => Promise<T>) => Promise<T>;

export function createChooser(now: () => number = () => performance.now()): Chooser {
  let spent = 0;
  let busyUntil = 0;
  return async (atOnce, pooled) => {
    const begun = now();
    if (spent >= BUDGET_MS || begun < busyUntil) return pooled();
    if (spent === 0) setImmediate(() => (spent = 0));
    try {
      return atOnce();
    } finally {
      const ended = now();
      // Never 0, so that one reset is under way at most.
      spent += Math.max(ended - begun, Number.MIN_VALUE);
      if (ended - begun >= BUDGET_MS) busyUntil = ended + BUSY_FOR_MS;
    }
  };
}

export function createFileCalls(call: Chooser = createChooser()): FileCalls {
  return {
    link: (existing, path) =>
      call(
        () => fs.linkSync(existing, path),
        () => link(existing, path),
      ),
    unlink: (path) =>
      call(
        () => fs.unlinkSync(path),
        () => unlink(path),
      ),
    makeFolder: (path) =>
      call(
        () => void fs.mkdirSync(path, { recursive: true }),
        async () => void (await mkdir(path, { recursive: true })),
      ),
    openToAppend: (path) =>
      call(
        () => fs.openSync(path, 'a'),
        () => openFile(path, 'a'),
      ),
    write: (fd, bytes, at) =>
      call(
        () => fs.writeSync(fd, bytes, at),
        async () => (await writeFile(fd, bytes, at)).bytesWritten,
      ),
  };
}
