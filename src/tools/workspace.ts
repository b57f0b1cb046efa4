/**
 * The guard of the workspace: from a path that a model gave to a file or folder inside the root, or a refusal.
 *
 * A hard link cannot be distinguished from a file of the workspace, and is read as one; writing parts it from what it was linked to.
 *
 * Linux can say where a handle is. Elsewhere (macOS) the path is checked again, which leaves a small chance to a program that swaps folders
 * in a tight loop. Files that run by themselves later are not written at all (protected-paths.ts).
 *
 * @rule tools/real-path-decides: The real path decides, after every symbolic link, compared by path segments: `ws-evil` is not inside `ws`.
 *   (test: test/tools/workspace.test.ts)
 * @rule tools/opened-handle-checked: The tool asks the opened handle for its place, and reads nothing before the answer: a folder can be
 *   swapped for a link after the check. (test: test/tools/workspace.test.ts)
 * @rule tools/regular-files-only: Only regular files are read. A FIFO, a socket or a device is never waited for, and never opened if that
 *   can be helped. (test: test/tools/workspace.test.ts)
 * @rule tools/refusal-reveals-nothing: A refusal reveals nothing about the outside: not whether a file exists, not where a link leads.
 *   (test: test/tools/workspace.test.ts)
 * @rule tools/written-whole: A file is written beside and renamed, through the handle of its folder: there is the old file or the new one,
 *   never a part, and no link is written through. (test: test/tools/builtin/files.test.ts)
 */
import { constants } from 'node:fs';
import { lstat, readdir, realpath, type FileHandle } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import {
  findNamed,
  handlePath,
  hasHandlePaths,
  isInside,
  nearestExisting,
  onOneLine,
  opened,
  orRefuse,
  outside,
  PathRefused,
  refuseMalformed,
  refuseUnlessRegular,
  refuseUnlessSame,
  shownPath,
  toRefusal,
} from './workspace-guard.js';
import { refuseProtected } from './protected-paths.js';
import { writeInside, type Seen, type Written } from './workspace-write.js';
import { errorCode } from '../platform/errors.js';

export { PathRefused } from './workspace-guard.js';

export interface OpenedFile {
  /** The caller closes it. */
  readonly handle: FileHandle;
  readonly bytes: number;
  /** For `writeFile`: to write only if the file has not changed since. */
  readonly seen: Seen;
}

export type FolderEntry =
  | { readonly kind: 'file'; readonly name: string; readonly bytes: number }
  | { readonly kind: 'folder' | 'link' | 'other'; readonly name: string };

export interface Folder {
  /** Sorted by name; at most as many as the caller wants. */
  readonly entries: readonly FolderEntry[];
  /** How many there are in all. */
  readonly total: number;
}

export interface Workspace {
  /** The real path of what a model named: relative to the root, or absolute inside it. */
  readonly resolve: (path: string) => Promise<string>;
  /** Takes a path from `resolve` or one below it. */
  readonly openFile: (real: string) => Promise<OpenedFile>;
  readonly readFolder: (real: string, most: number) => Promise<Folder>;
  /** As `resolve`, of a file that need not be there yet, nor the folders above it. */
  readonly resolveNew: (path: string) => Promise<string>;
  /**
   * The whole of a file, with the folders above it. With `seen`: refused if the file is not the one that was read (tools/written-whole).
   */
  readonly writeFile: (real: string, content: Buffer, seen?: Seen) => Promise<Written>;
  /** The path as the model should write it: relative to the root, on one line. */
  readonly shown: (real: string) => string;
}

/** `protectedPlaces`: absolute paths that are not written, besides those that no agent's tools write. */
export async function enterWorkspace(root: string, protectedPlaces: readonly string[] = []): Promise<Workspace> {
  const realRoot = await realpath(root).catch((cause: unknown) => {
    throw new Error(`the workspace folder ${root} cannot be entered: create it, or set PERDURA_WORKSPACE to one that exists`, { cause });
  });
  const places = await Promise.all(protectedPlaces.map(realPlace));
  // One that holds the whole workspace would leave nothing to write.
  const kept = places.filter((place) => !isInside(place, realRoot));
  return {
    resolve: (path) => resolveInside(realRoot, path),
    openFile: (real) => openFile(realRoot, real),
    readFolder: (real, most) => readFolder(realRoot, real, most),
    resolveNew: (path) => resolveNew(realRoot, path, kept),
    writeFile: (real, content, seen) => writeInside({ root: realRoot, protectedPlaces: kept, real, content, seen }),
    shown: (real) => onOneLine(relative(realRoot, real) || '.'),
  };
}

/** Also of one that is not there yet. */
async function realPlace(place: string): Promise<string> {
  const { at, real } = await nearestExisting(place);
  return join(real, relative(at, place));
}

async function resolveInside(root: string, path: string): Promise<string> {
  refuseMalformed(path);
  const target = await findLookalike(root, isAbsolute(path) ? resolve(path) : resolve(root, path));
  const real = await realpath(target).catch(async (error: unknown) => {
    // `link/x` must sound the same whether or not x is there, so the nearest parent that exists decides first
    // (tools/refusal-reveals-nothing).
    if (!isInside(root, (await nearestExisting(target)).real)) throw outside(path);
    throw toRefusal(path, error);
  });
  if (!isInside(root, real)) throw outside(path);
  return real;
}

/** A path that leads out sounds the same whether or not it exists (tools/refusal-reveals-nothing). */
async function resolveNew(root: string, path: string, protectedPlaces: readonly string[]): Promise<string> {
  refuseMalformed(path);
  if (/(^|\/)\.{0,2}$/.test(path)) {
    throw new PathRefused(
      'bad-path',
      `cannot write ${shownPath(path)}: that names a folder. Give the path of a file; its folders are made.`,
    );
  }
  const target = await findLookalike(root, isAbsolute(path) ? resolve(path) : resolve(root, path));
  const real = await realpath(target).catch(async (error: unknown) => {
    const { real: above, at } = await nearestExisting(target);
    if (!isInside(root, above)) throw outside(path);
    if (errorCode(error) !== 'ENOENT') throw toRefusal(path, error);
    return join(above, relative(at, target));
  });
  if (!isInside(root, real)) throw outside(path);
  // Also by the name in the call: `.git` may be a link to a folder of another name.
  if (isInside(root, target)) refuseProtected(root, target, protectedPlaces);
  refuseProtected(root, real, protectedPlaces);
  return real;
}

/**
 * The path as its names stand in their folders, where one of them is not there as it is written and another looks the same
 * (`findNamed`). It is looked for inside the root alone; what is found is resolved and judged as any other path.
 */
export async function findLookalike(root: string, path: string): Promise<string> {
  for (let found = path; ;) {
    const { at, real } = await nearestExisting(found);
    const [name = '', ...below] = relative(at, found).split(sep);
    if (name === '' || !isInside(root, real)) return found;
    const names = await readNames(root, real).catch(() => []);
    const same = findNamed(names, name, (one) => relative(root, join(real, one)));
    // One that is there and cannot be reached is another matter.
    if (same === undefined || same === name) return found;
    found = join(at, same, ...below);
  }
}

/** Beyond these a name that only looks the same is not looked for. */
const MAX_NAMES = 20_000;

async function readNames(root: string, real: string): Promise<readonly string[]> {
  return opened(root, real, shownPath(relative(root, real) || '.'), constants.O_RDONLY | constants.O_DIRECTORY, async (handle) => {
    const names = await readdir(hasHandlePaths() ? handlePath(handle) : real).finally(() => handle.close());
    return names.length > MAX_NAMES ? [] : names;
  });
}

async function openFile(root: string, real: string): Promise<OpenedFile> {
  const path = shownPath(relative(root, real) || '.');
  // Opening a device can have effects, so its kind is looked at before as well as after (tools/regular-files-only).
  refuseUnlessRegular(path, await orRefuse(path, lstat(real, { bigint: true })));
  return opened(root, real, path, constants.O_RDONLY, async (handle, found) => {
    refuseUnlessRegular(path, found);
    return { handle, bytes: Number(found.size), seen: found };
  });
}

async function readFolder(root: string, real: string, most: number): Promise<Folder> {
  const path = shownPath(relative(root, real) || '.');
  return opened(root, real, path, constants.O_RDONLY | constants.O_DIRECTORY, async (handle) => {
    try {
      // On Linux everything goes through the handle, so that it is this folder and no other that is read.
      const base = hasHandlePaths() ? handlePath(handle) : real;
      const names = (await orRefuse(path, readdir(base))).sort();
      const entries: FolderEntry[] = [];
      for (const name of names.slice(0, most)) entries.push(await toEntry(base, name));
      if (!hasHandlePaths()) await refuseUnlessSame(root, real, path, await handle.stat({ bigint: true }));
      return { entries, total: names.length };
    } finally {
      await handle.close();
    }
  });
}

async function toEntry(base: string, name: string): Promise<FolderEntry> {
  try {
    const found = await lstat(join(base, name));
    if (found.isFile()) return { kind: 'file', name, bytes: found.size };
    return { kind: found.isDirectory() ? 'folder' : found.isSymbolicLink() ? 'link' : 'other', name };
  } catch {
    // Gone since, or a name that is not UTF-8.
    return { kind: 'other', name };
  }
}
