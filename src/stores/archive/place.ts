/**
 * Where archives lie, apart from the store: a folder, or a bucket of what speaks S3. Objects never change: their names end in the SHA-256
 * of their bytes.
 */
import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { errorCode, errorMessage } from '../../platform/errors.js';
import { syncFolder } from '../file/lines.js';
import { unlessAbsent } from '../file/errors.js';
import { StoreUnavailable } from '../store.js';
import type { ArchivePlace } from '../whole-ports.js';

/** `attempt` ends the sentence "cannot …". */
export function archiveUnavailable(attempt: string, where: string, cause: unknown): StoreUnavailable {
  return new StoreUnavailable(
    `cannot ${attempt}: the archive at ${where}: ${errorMessage(cause)}; see that it can be reached, then retry`,
    { cause },
  );
}

/** `dir`: absolute. Names have slashes between their parts, which are names of files. */
export function createFolderArchive(dir: string): ArchivePlace {
  const describe = async <T>(attempt: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw archiveUnavailable(attempt, dir, error);
    }
  };
  const toPath = (name: string): string => join(dir, ...name.split('/'));
  return {
    where: dir,

    put: (name, bytes) =>
      describe('write an archive', async () => {
        const path = toPath(name);
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        const beside = `${path}.${randomUUID()}.tmp`;
        try {
          const file = await open(beside, 'wx', 0o600);
          try {
            await file.writeFile(bytes);
            await file.sync();
            if ((await file.stat()).size !== bytes.length) throw new Error('it was written in part only, the disk may be full');
          } finally {
            await file.close();
          }
          await link(beside, path).catch((error: unknown) => {
            if (errorCode(error) !== 'EEXIST') throw error;
          });
        } finally {
          await rm(beside, { force: true });
        }
        // The folders that name it, up to the archive itself.
        for (let folder = dirname(path); ; folder = dirname(folder)) {
          await syncFolder(folder);
          if (folder === dir) break;
        }
      }),

    get: (name) => describe('read an archive', () => unlessAbsent(readFile(toPath(name)))),

    async *list(prefix) {
      const folder = toPath(prefix);
      const found = await describe('list archives', () => unlessAbsent(readdir(folder, { recursive: true, withFileTypes: true })));
      for (const entry of found ?? []) {
        if (!entry.isFile() || entry.name.endsWith('.tmp')) continue;
        const path = join(entry.parentPath, entry.name);
        const stats = await describe('list archives', () => unlessAbsent(stat(path)));
        if (stats) yield { name: relative(dir, path).split(sep).join('/'), bytes: stats.size, at: stats.mtimeMs };
      }
    },

    remove: (name) =>
      describe('remove an archive', async () => {
        const path = toPath(name);
        await unlessAbsent(rm(path));
        // Empty folders would name who had been there.
        for (let folder = dirname(path); folder !== dir && folder.startsWith(dir); folder = dirname(folder)) {
          const isGone = await rmdir(folder).then(
            () => true,
            (error: unknown) => {
              if (['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errorCode(error) ?? '')) return false;
              throw error;
            },
          );
          if (!isGone) break;
        }
      }),
  };
}
