/**
 * How a file of the workspace is written (tools/written-whole): every step through the handle of a folder, so that no swapped folder leads
 * out.
 */
import { randomBytes } from 'node:crypto';
import { constants, type BigIntStats } from 'node:fs';
import { lstat, mkdir, open, readlink, rename, unlink, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import { refuseProtected, refuseRepository } from './protected-paths.js';
import {
  handlePath,
  hasHandlePaths,
  isInside,
  orRefuse,
  outside,
  refuseUnlessRegular,
  refuseUnlessSame,
  shownPath,
  WriteRefused,
} from './workspace-guard.js';
import { errorCode } from '../platform/errors.js';

/** What a file was when it was read. */
export type Seen = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs'>;

export interface Written {
  /** Bytes of the file that was there before; undefined for a new one. */
  readonly replaced?: number;
}

export interface Writing {
  readonly root: string;
  readonly protectedPlaces: readonly string[];
  /** Resolved. */
  readonly real: string;
  readonly content: Buffer;
  /** Refused if the file there is not this one. */
  readonly seen?: Seen;
}

export async function writeInside({ root, protectedPlaces, real, content, seen }: Writing): Promise<Written> {
  const path = shownPath(relative(root, real));
  refuseProtected(root, real, protectedPlaces);
  await refuseRepository(root, real, content);
  const folder = await openFolders(root, dirname(real), path);
  try {
    const base = await openBase(root, folder, dirname(real), path);
    // Where the folder really is: it may have been swapped for another one of the workspace since.
    if (hasHandlePaths()) {
      const place = join(await readlink(handlePath(folder)), basename(real));
      refuseProtected(root, place, protectedPlaces);
      await refuseRepository(root, place, content);
    }
    const target = join(base, basename(real));
    const there = await lookAt(target);
    if (there) refuseUnlessRegular(path, there, 'write');
    const beside = join(base, `.perdura-${randomBytes(8).toString('hex')}.tmp`);
    try {
      await orRefuse(path, writeBeside(beside, content, there));
      const now = await lookAt(target);
      if (seen && !isSame(seen, now)) throw changedSince(path);
      await openBase(root, folder, dirname(real), path);
      await orRefuse(path, rename(beside, target));
    } catch (error) {
      await unlink(beside).catch(() => undefined);
      throw error;
    }
    // The name is on disk too; not every file system can say so.
    await folder.sync().catch(() => undefined);
    return { replaced: there && Number(there.size) };
  } finally {
    await folder.close();
  }
}

/** Goes down from the root name by name, following no link, and makes what is missing. The caller closes the handle. */
async function openFolders(root: string, folder: string, path: string): Promise<FileHandle> {
  const names = relative(root, folder).split(sep).filter(Boolean);
  let handle = await orRefuse(path, openFolder(root));
  let at = root;
  for (const name of names) {
    try {
      const next = join(hasHandlePaths() ? handlePath(handle) : at, name);
      at = join(at, name);
      const below = await openFolder(next).catch(async (error: unknown) => {
        if (errorCode(error) !== 'ENOENT') throw error;
        await mkdir(next).catch((made: unknown) => {
          if (errorCode(made) !== 'EEXIST') throw made;
        });
        return openFolder(next);
      });
      await handle.close();
      handle = below;
    } catch (error) {
      await handle.close();
      // `real` was resolved: a link on the way was put there since, and O_DIRECTORY says of one that it is no folder.
      const isLink = await lstat(at).then(
        (found) => found.isSymbolicLink(),
        () => false,
      );
      if (isLink) throw outside(path);
      return orRefuse(path, Promise.reject(error as Error));
    }
  }
  return handle;
}

function openFolder(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
}

/** The path to the folder's files, through its handle if possible; (tools/opened-handle-checked) before each use. */
async function openBase(root: string, folder: FileHandle, real: string, path: string): Promise<string> {
  if (!hasHandlePaths()) {
    await refuseUnlessSame(root, real, path, await folder.stat({ bigint: true }));
    return real;
  }
  if (!isInside(root, await readlink(handlePath(folder)))) throw outside(path);
  return handlePath(folder);
}

async function lookAt(target: string): Promise<BigIntStats | undefined> {
  return lstat(target, { bigint: true }).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
}

/** A new file, never one that was there; with the rights of the one that it replaces. */
async function writeBeside(beside: string, content: Buffer, there: BigIntStats | undefined): Promise<void> {
  const handle = await open(beside, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o666);
  try {
    await handle.writeFile(content);
    if (there) {
      // A file keeps its owner where we may give it away.
      await handle.chown(Number(there.uid), Number(there.gid)).catch(() => undefined);
      // Not the bits that give a program its owner's rights.
      await handle.chmod(Number(there.mode) & 0o777);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function isSame(seen: Seen, now: BigIntStats | undefined): boolean {
  return now?.dev === seen.dev && now.ino === seen.ino && now.size === seen.size && now.mtimeNs === seen.mtimeNs;
}

function changedSince(path: string): WriteRefused {
  return new WriteRefused(
    'changed',
    `did not write ${path}: another program changed it meanwhile. Read it again, then edit what is there now.`,
  );
}
