/**
 * The guard of the workspace: from a path that a model gave to a file or folder inside the root, or a refusal.
 *
 * W1  What decides is the real path, after every symbolic link, compared by path segments: `ws-evil` is not inside `ws`.
 * W2  Between the check and the opening a folder can be swapped for a link. So the opened handle itself is asked where it
 *     lies, and nothing is read before it has answered. Linux can answer; elsewhere (macOS) the path is looked at again,
 *     which leaves a program that swaps folders in a tight loop a small chance.
 * W3  Only regular files are read. A FIFO, a socket or a device is never waited for, and never opened where that can be helped.
 * W4  A refusal tells nothing about the outside: not whether a file is there, not where a link leads.
 *
 * A hard link cannot be told from a file of the workspace, and counts as one.
 */
import { constants, type BigIntStats } from 'node:fs';
import { lstat, open, readdir, readlink, realpath, stat, type FileHandle } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

const LONGEST_PATH = 4_096;
const LONGEST_NAME = 255;
/** File systems whose regular files are the kernel's own words: environment variables, other processes. */
const KERNEL_FOLDERS = ['/proc', '/sys'];

export type RefusalKind = 'outside' | 'missing' | 'not-a-file' | 'not-a-folder' | 'not-permitted' | 'bad-path';

/** The message is for the model: what was attempted, why not, what it can do. */
export class PathRefused extends Error {
  override readonly name = 'PathRefused';
  constructor(
    readonly kind: RefusalKind,
    message: string,
  ) {
    super(message);
  }
}

export interface OpenedFile {
  /** The caller closes it. */
  readonly handle: FileHandle;
  readonly bytes: number;
}

export type FolderEntry =
  | { readonly kind: 'file'; readonly name: string; readonly bytes: number }
  | { readonly kind: 'folder' | 'link' | 'other'; readonly name: string };

export interface Folder {
  /** Sorted by name; at most as many as were asked for. */
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
  /** The path as the model should write it: relative to the root, on one line. */
  readonly shown: (real: string) => string;
}

export async function enterWorkspace(root: string): Promise<Workspace> {
  const realRoot = await realpath(root).catch((cause: unknown) => {
    throw new Error(`the workspace folder ${root} cannot be entered: create it, or set PERDURA_WORKSPACE to one that exists`, { cause });
  });
  return {
    resolve: (path) => resolveInside(realRoot, path),
    openFile: (real) => openFile(realRoot, real),
    readFolder: (real, most) => readFolder(realRoot, real, most),
    shown: (real) => onOneLine(relative(realRoot, real) || '.'),
  };
}

/** W1: by segments, so that neither `ws-evil` nor a file named `..notes` is misjudged. */
function isInside(root: string, real: string): boolean {
  const way = relative(root, real);
  const leaves = way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way);
  // What a handle without a place in the file system calls itself (`pipe:[4711]`) is no absolute path.
  return isAbsolute(real) && !leaves && !KERNEL_FOLDERS.some((folder) => real === folder || real.startsWith(folder + sep));
}

/** A name may hold a line break, which would forge a line of our output: such a name is written as a JSON string. */
function onOneLine(path: string): string {
  return /[\u0000-\u001f\u007f]/.test(path) ? JSON.stringify(path) : path;
}

function shownPath(path: string): string {
  return onOneLine(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

async function resolveInside(root: string, path: string): Promise<string> {
  refuseMalformed(path);
  const asked = isAbsolute(path) ? resolve(path) : resolve(root, path);
  const real = await realpath(asked).catch(async (error: unknown) => {
    // W4: `link/x` must sound the same whether or not x is there, so the nearest parent that exists decides first.
    if (!isInside(root, await nearestExisting(asked))) throw outside(path);
    throw toRefusal(path, error);
  });
  if (!isInside(root, real)) throw outside(path);
  return real;
}

function refuseMalformed(path: string): void {
  if (path === '~' || path.startsWith(`~${sep}`)) {
    throw new PathRefused('outside', `cannot use ${shownPath(path)}: "~" is a home folder, which lies outside the workspace. ${RELATIVE}`);
  }
  if (path.includes('\0')) throw new PathRefused('bad-path', `cannot use ${shownPath(path)}: it holds a NUL character. Leave that out.`);
  if (Buffer.byteLength(path) > LONGEST_PATH || path.split(sep).some((name) => Buffer.byteLength(name) > LONGEST_NAME)) {
    throw new PathRefused(
      'bad-path',
      `cannot use ${shownPath(path)}: a path has at most ${LONGEST_PATH} bytes, each name in it ${LONGEST_NAME}.`,
    );
  }
}

/** The real path of the first of `path`'s parents that has one; a link that leads nowhere counts as leading out. */
async function nearestExisting(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    const real = await realpath(at).catch(() => undefined);
    if (real !== undefined) return real;
    const isLink = await lstat(at).then(
      (found) => found.isSymbolicLink(),
      () => false,
    );
    if (isLink || at === dirname(at)) return sep;
  }
}

async function openFile(root: string, real: string): Promise<OpenedFile> {
  const path = shownPath(relative(root, real) || '.');
  // W3: opening a device can have effects of its own, so its kind is looked at before as well as after.
  refuseUnlessRegular(path, await orRefuse(path, lstat(real, { bigint: true })));
  return opened(root, real, path, constants.O_RDONLY, async (handle, found) => {
    refuseUnlessRegular(path, found);
    return { handle, bytes: Number(found.size) };
  });
}

function refuseUnlessRegular(path: string, found: BigIntStats): void {
  if (found.isFile()) return;
  if (found.isDirectory()) throw new PathRefused('not-a-file', `cannot read ${path}: it is a folder. List it with list_files.`);
  // `real` was resolved, so a link here is one that was put in its place since.
  if (found.isSymbolicLink()) throw outside(path);
  throw new PathRefused('not-a-file', `cannot read ${path}: it is a pipe, a socket or a device, and only regular files can be read.`);
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

/** Opens without following a link at the end or waiting for a FIFO's other side; W2; closes the handle if `use` throws. */
async function opened<T>(
  root: string,
  real: string,
  path: string,
  flags: number,
  use: (handle: FileHandle, found: BigIntStats) => Promise<T>,
): Promise<T> {
  const handle = await orRefuse(path, open(real, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY));
  try {
    const found = await handle.stat({ bigint: true });
    if (!hasHandlePaths()) await refuseUnlessSame(root, real, path, found);
    else if (!isInside(root, await readlink(handlePath(handle)))) throw outside(path);
    return await use(handle, found);
  } catch (error) {
    await handle.close().catch(() => undefined);
    throw error;
  }
}

function hasHandlePaths(): boolean {
  return process.platform === 'linux';
}

function handlePath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}

/** Where a handle cannot be asked for its path (macOS): what lies at the path now, inside the root, must be what was opened. */
async function refuseUnlessSame(root: string, real: string, path: string, found: BigIntStats): Promise<void> {
  const now = await orRefuse(path, realpath(real));
  const there = await orRefuse(path, stat(now, { bigint: true }));
  const again = await orRefuse(path, realpath(real));
  if (now !== again || !isInside(root, now) || there.dev !== found.dev || there.ino !== found.ino) throw outside(path);
}

const RELATIVE = 'Give a path relative to the workspace, such as "notes/plan.md"; list_files shows what is there.';

function outside(path: string): PathRefused {
  return new PathRefused('outside', `cannot use ${shownPath(path)}: it leads out of the workspace, or nowhere. ${RELATIVE}`);
}

async function orRefuse<T>(path: string, attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    throw toRefusal(path, error);
  }
}

function toRefusal(path: string, error: unknown): unknown {
  const name = shownPath(path);
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return new PathRefused('missing', `cannot find ${name} in the workspace. Look with list_files for what is there.`);
    case 'ENOTDIR':
      return new PathRefused('not-a-folder', `cannot use ${name}: what would have to be a folder is a file.`);
    case 'ELOOP':
      return outside(path);
    case 'EACCES':
    case 'EPERM':
      return new PathRefused('not-permitted', `cannot read ${name}: this process has no permission to. Ask the person for access.`);
    case 'ENAMETOOLONG':
      return new PathRefused('bad-path', `cannot use ${name}: the path is too long.`);
    case 'ENXIO':
    case 'ENODEV':
      return new PathRefused('not-a-file', `cannot read ${name}: it is a pipe, a socket or a device, and only regular files can be read.`);
    default:
      return error;
  }
}
