/**
 * What reading and writing in the workspace share: which paths are inside, which refusals there are, and how a file or folder is opened so
 * that it cannot be swapped (workspace.ts).
 */
import { constants, type BigIntStats } from 'node:fs';
import { lstat, open, readlink, realpath, stat, type FileHandle } from 'node:fs/promises';
import { dirname, isAbsolute, relative, sep } from 'node:path';
import { hasHidden } from './hidden-text.js';
import { errorCode } from '../platform/errors.js';

const MAX_PATH = 4_096;
const MAX_NAME = 255;
/** File systems whose regular files the kernel writes: environment variables, other processes. */
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

/** Of a path that may be used, but not be written, or not now. For the model as well. */
export class WriteRefused extends Error {
  override readonly name = 'WriteRefused';
  constructor(
    readonly kind: 'protected' | 'changed' | 'no-room',
    message: string,
  ) {
    super(message);
  }
}

/** By segments, so that neither `ws-evil` nor a file named `..notes` is misjudged (tools/real-path-decides). */
export function isInside(root: string, real: string): boolean {
  const way = relative(root, real);
  const leaves = way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way);
  // What a handle without a place in the file system calls itself (`pipe:[4711]`) is no absolute path.
  return isAbsolute(real) && !leaves && !KERNEL_FOLDERS.some((folder) => real === folder || real.startsWith(folder + sep));
}

/** A name may hold a line break, which would forge a line of our output, or a turn of direction: such a name is written as a JSON string. */
export function onOneLine(path: string): string {
  if (!/[\t\n]/.test(path) && !hasHidden(path)) return path;
  const codes = (found: string): string => found.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return [...JSON.stringify(path)].map((character) => (hasHidden(character) ? codes(character) : character)).join('');
}

export function shownPath(path: string): string {
  return onOneLine(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

export function refuseMalformed(path: string): void {
  if (path === '~' || path.startsWith(`~${sep}`)) {
    throw new PathRefused('outside', `cannot use ${shownPath(path)}: "~" is a home folder, which lies outside the workspace. ${RELATIVE}`);
  }
  if (path.includes('\0')) throw new PathRefused('bad-path', `cannot use ${shownPath(path)}: it holds a NUL character. Leave that out.`);
  if (Buffer.byteLength(path) > MAX_PATH || path.split(sep).some((name) => Buffer.byteLength(name) > MAX_NAME)) {
    throw new PathRefused('bad-path', `cannot use ${shownPath(path)}: a path has at most ${MAX_PATH} bytes, each name in it ${MAX_NAME}.`);
  }
}

/** The first of `path` and its parents that has a real path; a link that leads nowhere counts as leading out. */
export async function nearestExisting(path: string): Promise<{ readonly at: string; readonly real: string }> {
  for (let at = path; ; at = dirname(at)) {
    const real = await realpath(at).catch(() => undefined);
    if (real !== undefined) return { at, real };
    const isLink = await lstat(at).then(
      (found) => found.isSymbolicLink(),
      () => false,
    );
    if (isLink || at === dirname(at)) return { at, real: sep };
  }
}

/**
 * The one name that looks like the wanted one, of a folder where that one is not: people and models write a letter with its accent as one
 * character, an ordinary blank and a straight quote, and Macs do not (U+202F stands before the PM of a screenshot's name). Undefined where
 * there is none; throws where there are several, with the paths that `show` makes of them.
 */
export function findNamed(names: readonly string[], wanted: string, show: (name: string) => string): string | undefined {
  const plain = toPlainName(wanted);
  const same = names.filter((name) => toPlainName(name) === plain);
  if (same.length < 2) return same[0];
  const listed = same.slice(0, 5).map((name) => escapeUnusual(show(name)));
  const more = same.length > listed.length ? ` and ${same.length - listed.length} more` : '';
  throw new PathRefused(
    'bad-path',
    `cannot use ${shownPath(wanted)}: ${same.length} names look like it, ${listed.join(', ')}${more}. Give one exactly, with the characters behind \\u.`,
  );
}

function toPlainName(name: string): string {
  return name
    .normalize('NFC')
    .replace(/\p{Zs}/gu, ' ')
    .replace(/[\u2018\u2019\u201b\u02bc]/g, "'")
    .replace(/[\u201c\u201d\u201f]/g, '"');
}

/** As a JSON string: how names differ that look the same. */
function escapeUnusual(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

export function refuseUnlessRegular(path: string, found: BigIntStats, verb: 'read' | 'write' = 'read'): void {
  if (found.isFile()) return;
  if (found.isDirectory()) throw new PathRefused('not-a-file', `cannot ${verb} ${path}: it is a folder. List it with list_files.`);
  // `real` was resolved, so a link here is one that was put in its place since.
  if (found.isSymbolicLink()) throw outside(path);
  throw new PathRefused(
    'not-a-file',
    `cannot ${verb} ${path}: it is a pipe, a socket or a device, and only regular files can be ${verb === 'read' ? 'read' : 'written'}.`,
  );
}

/**
 * Opens without following a link at the end or waiting for a FIFO's other side (tools/opened-handle-checked); closes the handle if `use`
 * throws.
 */
export async function opened<T>(
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

export function hasHandlePaths(): boolean {
  return process.platform === 'linux';
}

export function handlePath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}

/** Where a handle does not give its path (macOS): what lies at the path now, inside the root, must be what was opened. */
export async function refuseUnlessSame(root: string, real: string, path: string, found: BigIntStats): Promise<void> {
  const now = await orRefuse(path, realpath(real));
  const there = await orRefuse(path, stat(now, { bigint: true }));
  const again = await orRefuse(path, realpath(real));
  if (now !== again || !isInside(root, now) || there.dev !== found.dev || there.ino !== found.ino) throw outside(path);
}

const RELATIVE = 'Give a path relative to the workspace, such as "notes/plan.md"; list_files shows what is there.';

export function outside(path: string): PathRefused {
  return new PathRefused('outside', `cannot use ${shownPath(path)}: it leads out of the workspace, or nowhere. ${RELATIVE}`);
}

export async function orRefuse<T>(path: string, attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    throw toRefusal(path, error);
  }
}

export function toRefusal(path: string, error: unknown): unknown {
  const name = shownPath(path);
  switch (errorCode(error)) {
    case 'ENOENT':
      return new PathRefused('missing', `cannot find ${name} in the workspace. Look with list_files for what is there.`);
    case 'ENOTDIR':
      return new PathRefused('not-a-folder', `cannot use ${name}: what would have to be a folder is a file.`);
    case 'ELOOP':
      return outside(path);
    case 'EACCES':
    case 'EPERM':
      return new PathRefused('not-permitted', `cannot use ${name}: this process has no permission to. Ask the person for access.`);
    case 'ENAMETOOLONG':
      return new PathRefused('bad-path', `cannot use ${name}: the path is too long.`);
    case 'ENOSPC':
    case 'EDQUOT':
      return new WriteRefused('no-room', `cannot write ${name}: the disk is full. Nothing was changed; tell the person.`);
    case 'EROFS':
      return new PathRefused('not-permitted', `cannot write ${name}: the file system can only be read. Ask the person.`);
    case 'ENXIO':
    case 'ENODEV':
      return new PathRefused('not-a-file', `cannot read ${name}: it is a pipe, a socket or a device, and only regular files can be read.`);
    default:
      return error;
  }
}
