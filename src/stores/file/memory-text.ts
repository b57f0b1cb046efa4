/**
 * MEMORY.md and its changes, in files.
 *
 * The text of a version is stored before anything names the version.
 *
 * @rule file/memory-replaced-in-one-step: A change is begun in the journal, then MEMORY.md is replaced in one step, then the change is
 *   done. A process that finds it begun and MEMORY.md at its version writes that it is done; with any other MEMORY.md it never happened.
 *   (test: test/stores/file/documents.test.ts)
 * @rule file/edit-becomes-a-change: A MEMORY.md that no change has made was made by hand, and becomes a change before anything else is
 *   written. (test: test/stores/documents-contract.ts)
 */
import { lstat, mkdir, readFile, open, type FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { constants } from 'node:fs';
import { z } from 'zod';
import { type MemoryChange, type MemoryText, type HistoryEntry, NO_MEMORY_VERSION } from '../../records/memory/documents.js';
import { SealBroken, type AtRest } from '../../platform/at-rest.js';
import { changeSchema, decodeRecord, encodeRecord, memoryVersion, refuseLongMemory, toHandChange, toMemoryText } from '../codecs.js';
import { describeErrors, unlessAbsent } from './errors.js';
import { foldLines, replaceFile, type FoldedLines } from './lines.js';
import { MAX_MEMORY, DocumentRefused, type ScopeKey } from '../store.js';
import type { Documents } from '../memory-ports.js';
import { errorCode, errorMessage } from '../../platform/errors.js';
import { decodeExactly, detectForm, encodeText, type TextForm } from '../../records/file-type.js';

export const changeLineSchema = z.object({ kind: z.enum(['begun', 'done']), change: changeSchema });

/** A file that was changed so lately can change once more within its time stamp's grain, and look the same. */
const FRESH_MS = 2_000;

export function foldChanges(path: string, atRest: AtRest): FoldedLines<Changes> {
  return foldLines<Changes>({
    path,
    atRest,
    empty: () => ({ done: [], versions: new Map(), begun: undefined }),
    fold(changes, text) {
      const line = decodeRecord(changeLineSchema, text);
      if (!line) return false;
      if (line.kind === 'begun') {
        changes.begun = line.change;
        return true;
      }
      changes.begun = undefined;
      // The first line of an id counts, should two ever hold the lock.
      if (changes.versions.has(line.change.id)) return true;
      changes.versions.set(line.change.id, line.change.version);
      changes.done.push(line.change);
      return true;
    },
  });
}

export function createFileMemoryText(findFolder: FindFolder): Pick<Documents, 'memory' | 'memoryText' | 'changes' | 'writeMemory'> {
  return {
    memory: (key) => {
      const folder = findFolder(key);
      return describeErrors(memoryPath(folder), `read the MEMORY.md of ${key.scope}`, () => readMemory(folder));
    },

    memoryText: (key, version) => {
      const folder = findFolder(key);
      return describeErrors(folder.dir, `read version ${version} of the MEMORY.md of ${key.scope}`, async () => {
        if (version === NO_MEMORY_VERSION) return '';
        const { state } = await folder.changes.read();
        return state.done.some((change) => change.version === version) ? readVersion(folder, version) : undefined;
      });
    },

    changes: (key) => {
      const folder = findFolder(key);
      return describeErrors(folder.dir, `read the changes of the MEMORY.md of ${key.scope}`, async () => {
        const { state, skipped } = await folder.changes.read();
        return { changes: [...state.done], skipped };
      });
    },

    async writeMemory(key, { text, ...write }) {
      refuseLongMemory(key.scope, text);
      const folder = findFolder(key);
      const change = { ...write, version: memoryVersion(text) };
      const attempt = `write the MEMORY.md of ${key.scope}`;
      return describeErrors(memoryPath(folder), attempt, () =>
        folder.locked(async () => {
          folder.refuseErased(key, attempt);
          const current = await seeHand(folder);
          const known = (await folder.changes.read()).state.versions.get(write.id);
          if (known !== undefined) return { status: 'written', version: known };
          if (current.version !== write.from) return { status: 'conflict', current };
          await keepVersion(folder, change.version, text);
          await folder.changes.append(encodeRecord({ kind: 'begun', change }));
          // An editor takes no lock: what it saved in the meantime must not be lost.
          const now = await readText(folder);
          if (now.version !== write.from) return { status: 'conflict', current: await seeHand(folder) };
          if (change.version !== write.from) await replaceDocument(memoryPath(folder), toStored(folder, now.encoding, text));
          await folder.changes.append(encodeRecord({ kind: 'done', change }));
          return { status: 'written', version: change.version };
        }),
      );
    },
  };
}

export function versionPath(folder: DocumentFolder, version: string): string {
  return join(folder.dir, 'memory-versions', `${version}.md`);
}

/** Cheap while nothing changes, as each turn reads it: one `stat`. */
async function readMemory(folder: DocumentFolder): Promise<MemoryText> {
  // Taken before reading: a change made meanwhile shows as another stamp next time.
  const { stamp, changedAt } = await readStamp(memoryPath(folder));
  if (folder.seen?.stamp === stamp) return folder.seen.memory;
  const { text, version } = await readText(folder);
  const isKnown = version === lastVersion((await folder.changes.read()).state);
  const memory = isKnown ? { text, version } : await folder.locked(() => seeHand(folder));
  folder.seen = Date.now() - changedAt > FRESH_MS ? { stamp, memory } : undefined;
  return memory;
}

/**
 * Under the lock: MEMORY.md as it is, after the journal has how it came to be so (file/memory-replaced-in-one-step,
 * file/edit-becomes-a-change).
 */
export async function seeHand(folder: DocumentFolder): Promise<MemoryText> {
  const { text, version, changedAt } = await readText(folder);
  const { state } = await folder.changes.read();
  const from = lastVersion(state);
  if (version === from) return { text, version };
  await keepVersion(folder, version, text);
  await folder.changes.append(encodeRecord({ kind: 'done', change: state.begun?.version === version ? state.begun : await handChange() }));
  await folder.changes.read();
  return { text, version };

  async function handChange(): Promise<MemoryChange> {
    const before = { version: from, text: (await readVersion(folder, from)) ?? '' };
    const known = { ts: changedAt / 1000, count: state.done.length, last: state.done.at(-1) };
    return toHandChange(before, { version, text }, known);
  }
}

async function readText(folder: DocumentFolder): Promise<MemoryText & Pick<TextForm, 'encoding'> & { readonly changedAt: number }> {
  const path = memoryPath(folder);
  const { text, encoding } = await readMemoryText({ path, atRest: folder.atRest });
  const changedAt = (await unlessAbsent(lstat(path)))?.mtimeMs ?? Date.now();
  return { text, encoding, version: memoryVersion(text), changedAt };
}

/** Throws `DocumentRefused` for what a person must see to. Of UTF-8 the mark is a part of the text; UTF-16 always has one. */
async function readMemoryText(document: DocumentFile): Promise<{ readonly text: string } & Pick<TextForm, 'encoding'>> {
  const bytes = await readDocument(document, MAX_MEMORY);
  if (bytes === undefined) return { text: '', encoding: 'utf-8' };
  const { encoding } = detectForm(bytes);
  const text = (encoding === 'utf-8' ? undefined : decodeExactly(bytes)?.text) ?? toMemoryText(document.path, bytes);
  return { text, encoding };
}

/** Encrypted, it is for no editor. */
function toStored({ atRest }: DocumentFolder, encoding: TextForm['encoding'], text: string): string | Uint8Array {
  return atRest.isOn ? atRest.sealLines(text) : atRest.sealLines(inEncoding(encoding, text));
}

/** As the file that is replaced, so that its editor finds it as it left it; one that would be too large so becomes UTF-8. */
function inEncoding(encoding: TextForm['encoding'], text: string): string | Buffer {
  if (encoding === 'utf-8') return text;
  const bytes = encodeText(text, { encoding, hasMark: true });
  return bytes.length > MAX_MEMORY ? text : Buffer.from(bytes);
}

/** Written again when it is there with other words: they were redacted, and now the text is back. */
async function keepVersion(folder: DocumentFolder, version: string, text: string): Promise<void> {
  if (version === NO_MEMORY_VERSION || (await readVersion(folder, version)) === text) return;
  await mkdir(join(folder.dir, 'memory-versions'), { recursive: true });
  await replaceFile(versionPath(folder, version), toBuffer(folder.atRest.sealLines(text)));
}

async function readVersion(folder: DocumentFolder, version: string): Promise<string | undefined> {
  const bytes = await unlessAbsent(readFile(versionPath(folder, version)));
  return bytes && folder.atRest.openLines(bytes).toString('utf8');
}

function lastVersion({ done }: Changes): string {
  return done.at(-1)?.version ?? NO_MEMORY_VERSION;
}

function memoryPath(folder: DocumentFolder): string {
  return join(folder.dir, MEMORY_FILE);
}

const MEMORY_FILE = 'MEMORY.md';

async function readStamp(path: string): Promise<{ readonly stamp: string; readonly changedAt: number }> {
  const found = await unlessAbsent(lstat(path, { bigint: true }));
  if (!found) return { stamp: 'absent', changedAt: 0 };
  return { stamp: [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':'), changedAt: Number(found.ctimeMs) };
}

// A Markdown file that people edit too: what is in its place is looked at before it is believed. No link is followed, no pipe
// waited for, and nothing that is not text is written over.

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

export interface DocumentFile {
  readonly path: string;
  readonly atRest: AtRest;
}

/** What it says. Undefined where there is no such file. */
export async function readDocument({ path, atRest }: DocumentFile, longest = Infinity): Promise<Buffer | undefined> {
  const stored = await readStored(path, atRest.isOn ? 2 * longest : longest);
  if (stored === undefined) return undefined;
  try {
    const bytes = atRest.openLines(stored);
    if (bytes.length > longest) throw tooLong(path, bytes.length, longest);
    return bytes;
  } catch (error) {
    if (error instanceof SealBroken)
      throw new DocumentRefused(`cannot read ${path}: ${error.message}; put it back from a copy`, { cause: error });
    throw error;
  }
}

function tooLong(path: string, bytes: number, longest: number): DocumentRefused {
  return new DocumentRefused(`cannot read ${path}: it has ${bytes} bytes, at most ${longest} are read; shorten it`);
}

/** Its bytes as they are. Undefined where there is no such file. */
export async function readStored(path: string, longest = Infinity): Promise<Buffer | undefined> {
  const file = await unlessAbsent(openDocument(path, O_RDONLY));
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    if (size > longest) throw tooLong(path, size, longest);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** Why a document cannot be read as turns read it, in words; undefined where it can, or is not there. Records nothing. */
export async function whyUnreadable({ path, atRest }: DocumentFile, what: string): Promise<string | undefined> {
  const look = async (): Promise<void> => {
    if (basename(path) === MEMORY_FILE) await readMemoryText({ path, atRest });
    else await unlessAbsent(openDocument(path, O_RDONLY).then((file) => file.close()));
  };
  return describeErrors(path, `read the ${what}`, look).then(
    () => undefined,
    (error: unknown) => errorMessage(error),
  );
}

/** All of `content` or what was there before. Permissions stay as they were. */
export async function replaceDocument(path: string, content: string | Uint8Array): Promise<void> {
  const there = await unlessAbsent(lstat(path));
  if (there) refuseReadOnly(path, there.mode);
  await replaceFile(path, toBuffer(content), there === undefined ? undefined : there.mode & 0o777);
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
    const form = await readForm(file);
    const encoded = Buffer.from(encodeText(block, form));
    const missing = now.size === size ? await separated(file, size, encoded, form) : await findMissing(file, size, encoded, form);
    if (missing.length === 0) return;
    await file.appendFile(missing);
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Without a mark: for what is added in the middle. */
async function readForm(file: FileHandle): Promise<TextForm> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
  return { encoding: detectForm(buffer.subarray(0, bytesRead)).encoding, hasMark: false };
}

async function findMissing(file: FileHandle, size: number, block: Buffer, form: TextForm): Promise<Buffer> {
  const wanted = await separated(file, size, block, form);
  const there = Buffer.alloc((await file.stat()).size);
  await file.read(there, 0, there.length, 0);
  const begun = there.subarray(size);
  if (begun.length > 0 && wanted.subarray(0, begun.length).equals(begun)) return wanted.subarray(begun.length);
  return there.includes(block) ? Buffer.alloc(0) : separated(file, there.length, block, form);
}

/** `block` behind the newlines after the text before `at`, so that an empty line is between them. */
async function separated(file: FileHandle, at: number, block: Buffer, form: TextForm): Promise<Buffer> {
  const isWide = form.encoding !== 'utf-8';
  const tail = Buffer.alloc(Math.min(isWide ? 4 : 2, at));
  await file.read(tail, 0, tail.length, at - tail.length);
  // Of UTF-8 the last bytes may be a part of a character, which is no newline.
  const text = isWide ? new TextDecoder(form.encoding).decode(tail) : tail.toString('latin1');
  const newlines = text === '' ? '' : !text.endsWith('\n') ? '\n\n' : text.length === 2 && !text.startsWith('\n') ? '\n' : '';
  return Buffer.concat([encodeText(newlines, form), block]);
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

export function toBuffer(content: string | Uint8Array): Buffer {
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content.buffer, content.byteOffset, content.byteLength);
}

/** One scope's documents, as this process knows them. */
export interface DocumentFolder {
  readonly dir: string;
  readonly atRest: AtRest;
  readonly changes: FoldedLines<Changes>;
  readonly history: FoldedLines<HistoryLog>;
  /** The MEMORY.md that was read last, and how its file looked to `stat`. */
  seen: { readonly stamp: string; readonly memory: MemoryText } | undefined;
  /** For a writer, under the lock. */
  readonly refuseErased: (key: ScopeKey, attempt: string) => void;
  /** One writer at a time; those of this process take turns in the order of their asking. */
  locked<T>(work: () => Promise<T>): Promise<T>;
}

export type FindFolder = (key: ScopeKey) => DocumentFolder;

interface Changes {
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
  /** What they get, where it is encrypted. */
  readonly block?: string | undefined;
}

export interface HistoryLog {
  /** In the order of writing. */
  readonly known: Map<string, Known>;
  readonly begun: Map<string, Begun>;
}
