/**
 * A Markdown file that people edit too: what is in its place is looked at before it is believed. No link is followed, no pipe
 * waited for, and nothing that is not text is written over.
 */
import { constants } from 'node:fs';
import { lstat, open, type FileHandle } from 'node:fs/promises';
import { unlessAbsent } from './errors.js';
import { replaceFile, type FoldedLines } from './lines.js';
import { DocumentRefused, type ScopeKey } from '../store.js';
import type { MemoryText, MemoryChange, HistoryEntry } from '../../records/memory/documents.js';
import { errorCode } from '../../platform/errors.js';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;
const NEWLINE = 0x0a;

/** Undefined where there is no such file. */
export async function readDocument(path: string, longest = Infinity): Promise<Buffer | undefined> {
  const file = await unlessAbsent(openDocument(path, O_RDONLY));
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    if (size > longest) throw new DocumentRefused(`cannot read ${path}: it has ${size} bytes, at most ${longest} are read; shorten it`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** All of `content` or what was there before. Permissions stay as they were. */
export async function replaceDocument(path: string, content: string | Buffer): Promise<void> {
  const there = await unlessAbsent(lstat(path));
  if (there) refuseReadOnly(path, there.mode);
  await replaceFile(path, content, there === undefined ? undefined : there.mode & 0o777);
}

/**
 * Appends `block` after an empty line, to a file that had `size` bytes when this was begun. Begun before and cut short, it goes on
 * where it ended; a block that is there is not written again, wherever a person has moved it.
 */
export async function appendBlock(path: string, size: number, block: string): Promise<void> {
  const file = await openDocument(path, O_RDWR | O_APPEND | O_CREAT);
  try {
    const now = await file.stat();
    refuseReadOnly(path, now.mode);
    const missing = now.size === size ? (await separatorAt(file, size)) + block : await findMissing(file, size, block);
    if (missing === '') return;
    await file.appendFile(missing);
    await file.datasync();
  } finally {
    await file.close();
  }
}

async function findMissing(file: FileHandle, size: number, block: string): Promise<Buffer | string> {
  const wanted = Buffer.from((await separatorAt(file, size)) + block);
  const there = Buffer.alloc((await file.stat()).size);
  await file.read(there, 0, there.length, 0);
  const begun = there.subarray(size);
  if (begun.length > 0 && wanted.subarray(0, begun.length).equals(begun))
    return begun.length === wanted.length ? '' : wanted.subarray(begun.length);
  return there.includes(block) ? '' : (await separatorAt(file, there.length)) + block;
}

/** The newlines after the text before `at`, so that an empty line follows it. */
async function separatorAt(file: FileHandle, at: number): Promise<string> {
  const tail = Buffer.alloc(Math.min(2, at));
  await file.read(tail, 0, tail.length, at - tail.length);
  if (tail.length === 0) return '';
  if (tail.at(-1) !== NEWLINE) return '\n\n';
  return tail.length === 2 && tail.at(-2) !== NEWLINE ? '\n' : '';
}

async function openDocument(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | O_NOFOLLOW | O_NONBLOCK).catch((cause: unknown) => {
    if (errorCode(cause) === 'ELOOP') throw refused(path, 'it is a link, and links are not followed', cause);
    if (errorCode(cause) === 'ENXIO') throw refused(path, 'it is no regular file', cause);
    throw cause;
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw refused(path, 'it is no regular file');
}

function refused(path: string, why: string, cause?: unknown): DocumentRefused {
  return new DocumentRefused(`cannot use ${path}: ${why}; put the file itself there`, { cause });
}

/** Renaming would replace it all the same, and root may write anything: but a person has made it so that it is not to be written. */
function refuseReadOnly(path: string, mode: number): void {
  if ((mode & 0o222) !== 0) return;
  throw Object.assign(new Error(`${path} is read-only`), { code: 'EACCES' });
}

/** One scope's documents, as this process knows them. */
export interface DocumentFolder {
  readonly dir: string;
  readonly changes: FoldedLines<Changes>;
  readonly history: FoldedLines<HistoryLog>;
  /** The MEMORY.md that was read last, and how its file looked to `stat`. */
  seen: { readonly stamp: string; readonly memory: MemoryText } | undefined;
  /** One writer at a time; those of this process take turns in the order of their asking. */
  locked<T>(work: () => Promise<T>): Promise<T>;
}

export type FindFolder = (key: ScopeKey) => DocumentFolder;

export interface Changes {
  readonly done: MemoryChange[];
  /** id -> version */
  readonly versions: Map<string, string>;
  /** The last one, when it is begun and not known to be done. */
  begun: MemoryChange | undefined;
}

export type Name = Pick<HistoryEntry, 'id' | 'kind'>;

/** The fields of an entry that stay in memory. */
export interface Known extends Name {
  readonly ts: number;
  readonly hash: string;
}

export interface Begun {
  readonly entry: HistoryEntry;
  /** Bytes of HISTORY.md and of the month's file. */
  readonly sizes: readonly [number, number];
}

export interface HistoryLog {
  /** In the order of writing. */
  readonly known: Map<string, Known>;
  readonly begun: Map<string, Begun>;
}
