/**
 * A small disk of our own in memory, which can be full: a tmpfs that takes no more than it has. Only in a namespace of mounts of our own,
 * so that nobody else sees it and nothing is left.
 */
import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { promisify } from 'node:util';

export interface Disk {
  fill(): Promise<void>;
  empty(): Promise<void>;
}

const run = promisify(execFile);
const SIZE = '2g';

export async function mountDisk(folder: string): Promise<Disk> {
  await run('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', folder]);
  const resize = (size: string): Promise<unknown> => run('mount', ['-o', `remount,size=${size}`, folder]);
  return {
    async fill() {
      for (let left = 20; ; left--) {
        const { blocks, bfree, bsize } = await statfs(folder);
        try {
          await resize(String((blocks - bfree) * bsize));
          return;
        } catch (error) {
          // More was written meanwhile.
          if (left === 0) throw error;
        }
      }
    },
    async empty() {
      await resize(SIZE);
    },
  };
}
