/**
 * Short calls to the file system. The thread pool costs several times what they cost, so they are made at once; but a call that makes,
 * links or writes a file can wait for the disk when that is busy, and everything else in the process would wait with it.
 *
 * Simultaneous calls take 10 ms of one turn of the event loop together; later ones go to the thread pool. After a single call that took
 * longer, all go there for a second.
 */
import * as fs from 'node:fs';
import { link, mkdir, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';

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
