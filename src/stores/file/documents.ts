/**
 * The memory of a scope in words, in `<dir>/agents/<scope>/`:
 *
 *   MEMORY.md              the text itself, for people to read and to edit
 *   memory-changes.jsonl   who changed it when, and which lines are new by that (memory-text.ts)
 *   memory-versions/       its earlier texts, and the present one, by version
 *   HISTORY.md, HISTORY-YYYY-MM.md
 *                          every entry in both (documents.ts)
 *   history.jsonl          the ids of the entries
 *   proposals.jsonl        lines that wait for a person
 *   forgotten.jsonl        what is to stay forgotten
 *   documents.lock         who writes just now
 *
 * They are the scope's alone: the Temporal namespaces that one folder serves share them, ids included, as people who open
 * MEMORY.md expect.
 */
import { basename, join } from 'node:path';
import { readFile, stat, unlink } from 'node:fs/promises';
import { z } from 'zod';
import { describeErrors, unlessAbsent } from './errors.js';
import { refuseErased } from './erasure.js';
import { withLock } from './lock.js';
import {
  createFileMemoryText,
  foldChanges,
  changeLineSchema,
  seeHand,
  versionPath,
  type FindFolder,
  type DocumentFile,
  type DocumentFolder,
  readDocument,
  readStored,
  toBuffer,
  replaceDocument,
  appendBlock,
  whyUnreadable,
  type HistoryLog,
  type Begun,
  type Known,
  type Name,
} from './memory-text.js';
import { scopeDir } from './paths.js';
import type { AtRest } from '../../platform/at-rest.js';
import type { OpenCollection } from '../collections/collection.js';
import { createProposals, redactProposals } from '../collections/proposals.js';
import type { Documents } from '../memory-ports.js';
import type { ScopeKey } from '../store.js';
import type { HistoryEntry } from '../../records/memory/documents.js';
import {
  headerTime,
  withoutHeaders,
  historyBlock,
  formatMonth,
  parseHistory,
  supersede,
  toKeptEntry,
  type WrittenEntry,
} from '../../records/memory/history-text.js';
import { decodeRecord, encodeRecord, redactChange, redactRecord, redactText, entrySchema, memoryVersion } from '../codecs.js';
import { decodeText, detectForm, encodeText } from '../../records/file-type.js';
import { createFileCollections } from './collections.js';
import { resealLines } from './reseal.js';
import { createTurns, foldLines, namesIn, replaceFile, type FoldedLines } from './lines.js';

/** Beyond these the one that was opened first is let go, and read again when it is needed. */
const OPEN_FOLDERS = 256;

export interface FileDocuments extends Documents {
  /** Writes again with the newest key what is plain or of an older one; answers how many texts (reseal.ts). */
  reseal(key: ScopeKey): Promise<number>;
}

export function createFileDocuments(dir: string, atRest: AtRest): FileDocuments {
  const findFolder = createFolders(dir, atRest);
  const collections = createFileCollections(dir, atRest);
  return {
    ...createFileMemoryText(findFolder),
    ...createFileHistory(findFolder),
    ...createProposals(collections),
    redact: (key, redact) =>
      describeErrors(findFolder(key).dir, `redact the documents of ${key.scope}`, () =>
        redactFiles(findFolder(key), collections, key, redact),
      ),
    reseal: (key) => describeErrors(findFolder(key).dir, `encrypt anew the documents of ${key.scope}`, () => resealFiles(findFolder(key))),
  };
}

/** Beyond these scopes `findUnreadable` looks no further. */
const MAX_SCOPES = 1_000;

/** What no turn can read of the memory in words, in whatever scope: the file, why, and what to do. Changes nothing. */
export async function findUnreadable(dir: string, atRest: AtRest): Promise<readonly string[]> {
  const found: string[] = [];
  for (const scope of (await namesIn(join(dir, 'agents'))).slice(0, MAX_SCOPES)) {
    const folder = join(dir, 'agents', scope);
    for (const path of [join(folder, 'MEMORY.md'), ...(await historyFiles(folder).catch(() => []))]) {
      const message = await whyUnreadable({ path, atRest }, `${basename(path)} of ${scope}`);
      if (message !== undefined) found.push(message);
    }
  }
  return found;
}

function createFolders(dir: string, atRest: AtRest): FindFolder {
  const folders = new Map<string, DocumentFolder>();
  return (key) => {
    const path = scopeDir(dir, key);
    const folder = folders.get(path) ?? openFolder(dir, path, atRest);
    folders.set(path, folder);
    if (folders.size > OPEN_FOLDERS) folders.delete(folders.keys().next().value ?? '');
    return folder;
  };
}

function openFolder(root: string, dir: string, atRest: AtRest): DocumentFolder {
  const inTurn = createTurns();
  return {
    dir,
    atRest,
    refuseErased: (key, attempt) => refuseErased(root, key, attempt),
    changes: foldChanges(join(dir, 'memory-changes.jsonl'), atRest),
    history: foldHistory(join(dir, 'history.jsonl'), atRest),
    seen: undefined,
    locked: (work) => inTurn(() => withLock(join(dir, 'documents.lock'), work)),
  };
}

// Redacts what is stored beside MEMORY.md. Each file is replaced in one step, what is not redacted byte for byte as it was;
// cut short, the same call again does the rest. A version keeps its name, though it no longer is that of the bytes.

type Redact = (line: string) => string;

const NEWLINE = 0x0a;
/** Our temporary files that a dead writer left; proposals and facts have other locks, so theirs may be in use. */
const LEFT_BEHIND = /^(?:MEMORY\.md|HISTORY[-\d]*\.md|memory-changes\.jsonl|history\.jsonl)\.[0-9a-f-]{36}\.tmp$/;

async function redactFiles(folder: DocumentFolder, collections: OpenCollection, key: ScopeKey, redact: Redact): Promise<void> {
  const names = await namesIn(folder.dir);
  if (names.length === 0) return;
  await folder.locked(async () => {
    // An unfinished change would bring its words later, and an edit by a person must be recorded before it is redacted.
    await completeHistory(folder);
    const present = await seeHand(folder);
    for (const name of names.filter((each) => LEFT_BEHIND.test(each))) await unlink(join(folder.dir, name)).catch(() => undefined);
    await redactVersions(folder, present.version, redact);
    await folder.changes.rewrite((text) =>
      redactRecord(changeLineSchema, text, redact, (line) => ({ ...line, change: redactChange(line.change, redact) })),
    );
    await folder.history.rewrite((text) =>
      redactRecord(historyLineSchema, text, redact, (line) =>
        line.kind === 'done' ? line : { ...line, entry: { ...line.entry, text: redactText(line.entry.text, redact) } },
      ),
    );
    for (const path of await historyFiles(folder.dir)) await redactHistory({ path, atRest: folder.atRest }, redact);
  });
  await redactProposals(collections, key, redact);
}

/** The present one stays as MEMORY.md is: the next edit by hand is compared with it. */
async function redactVersions(folder: DocumentFolder, present: string, redact: Redact): Promise<void> {
  const versions = join(folder.dir, 'memory-versions');
  for (const name of await namesIn(versions)) {
    const path = join(versions, name);
    if (path === versionPath(folder, present)) continue;
    if (name.endsWith('.tmp')) {
      await unlink(path);
      continue;
    }
    const before = folder.atRest.openLines(await readFile(path)).toString('utf8');
    const after = redactText(before, redact);
    if (after !== before) await replaceFile(path, toBuffer(folder.atRest.sealLines(after)));
  }
}

/** By bytes, because a person may have brought some that are no UTF-8. Headers are no one's words. */
async function redactHistory({ path, atRest }: DocumentFile, redact: Redact): Promise<void> {
  const stored = await readStored(path);
  if (stored === undefined) return;
  const form = detectForm(stored);
  const isWide = form.encoding !== 'utf-8';
  const bytes = isWide ? Buffer.from(decodeText(stored)) : stored;
  const content = mapLines(bytes, (line) => {
    const text = atRest.openLines(line);
    if (text === line) return redactLine(line, redact);
    const after = mapLines(text, (each) => redactLine(each, redact));
    return after.equals(text) ? line : toBuffer(atRest.sealLines(after));
  });
  if (!content.equals(bytes)) await replaceDocument(path, isWide ? Buffer.from(encodeText(content.toString(), form)) : content);
}

function mapLines(bytes: Buffer, change: (line: Buffer) => Buffer): Buffer {
  const after: Buffer[] = [];
  for (let from = 0; from < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, from);
    const to = newline < 0 ? bytes.length : newline + 1;
    after.push(change(bytes.subarray(from, to)));
    from = to;
  }
  return Buffer.concat(after);
}

function redactLine(bytes: Buffer, redact: Redact): Buffer {
  const text = bytes.toString('utf8');
  if (headerTime(text.replace(/\r?\n$/, '')) !== undefined) return bytes;
  const after = redactText(text, redact);
  return after === text ? bytes : Buffer.from(withoutHeaders(after));
}

async function resealFiles(folder: DocumentFolder): Promise<number> {
  if ((await namesIn(folder.dir)).length === 0) return 0;
  return folder.locked(async () => {
    // What was begun is completed, and an edit by a person recorded, with the text that is compared with it.
    await completeHistory(folder);
    await seeHand(folder);
    const versions = join(folder.dir, 'memory-versions');
    const texts = [
      join(folder.dir, 'MEMORY.md'),
      ...(await historyFiles(folder.dir)),
      ...(await namesIn(versions)).map((name) => join(versions, name)),
    ];
    let values = 0;
    for (const path of texts) values += await resealDocument({ path, atRest: folder.atRest });
    for (const name of ['memory-changes.jsonl', 'history.jsonl']) values += await resealLines(join(folder.dir, name), folder.atRest);
    return values;
  });
}

async function resealDocument({ path, atRest }: DocumentFile): Promise<number> {
  const stored = await readStored(path);
  const lines = stored?.toString('latin1').split('\n') ?? [];
  if (stored === undefined || !lines.some((line) => line.trim() !== '' && atRest.isStale(line))) return 0;
  const text = atRest.openLines(stored);
  // What is appended to it is UTF-8.
  const isWide = text === stored && detectForm(stored).encoding !== 'utf-8' && !path.endsWith('MEMORY.md');
  await replaceDocument(path, atRest.sealLines(isWide ? decodeText(stored) : text));
  return 1;
}

// HISTORY in files: each entry is in HISTORY.md and in its month's file (seed 001), both for people to read, to search with
// grep, and to edit. `history.jsonl` knows which entries came from us.
//
// - The journal first has that an entry is begun, with its text and how long both files are; then both files get it, then it is done.
// - A process that finds one begun and not done completes it before any other append: a file that has its block gets no second one.
// - The month's file counts. HISTORY.md adds entries under other times: an older program's, a person's.

const historyLineSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('begun'), entry: entrySchema, sizes: z.tuple([z.number(), z.number()]), block: z.string().optional() }),
  z.object({ kind: z.literal('done'), of: entrySchema.pick({ id: true, kind: true }) }),
]);

const MONTH_FILE = /^HISTORY-(\d{4}-\d{2})\.md$/;

function foldHistory(path: string, atRest: AtRest): FoldedLines<HistoryLog> {
  return foldLines<HistoryLog>({
    path,
    atRest,
    empty: () => ({ known: new Map(), begun: new Map() }),
    fold({ known, begun }, text) {
      const line = decodeRecord(historyLineSchema, text);
      if (!line) return false;
      if (line.kind === 'begun') {
        const { entry } = line;
        begun.set(nameEntry(entry), line);
        known.set(nameEntry(entry), { id: entry.id, kind: entry.kind, ts: entry.ts, hash: memoryVersion(entry.text) });
      } else begun.delete(nameEntry(line.of));
      return true;
    },
  });
}

function createFileHistory(findFolder: FindFolder): Pick<Documents, 'appendHistory' | 'history'> {
  return {
    async appendHistory(key, given) {
      const folder = findFolder(key);
      const attempt = `append ${given.kind} ${given.id} to the HISTORY of ${key.scope}`;
      return describeErrors(folder.dir, attempt, () =>
        folder.locked(async () => {
          folder.refuseErased(key, attempt);
          const { known } = await completeHistory(folder);
          if (known.has(nameEntry(given))) return 'known';
          if (given.kind === 'raw-fallback' && known.has(nameEntry({ ...given, kind: 'summary' }))) return 'superseded';
          const fallback = known.get(nameEntry({ ...given, kind: 'raw-fallback' }));
          const entry = toKeptEntry(fallback ? supersede(toKeptEntry(given), fallback.ts) : given);
          const [main, month] = historyPaths(folder, entry);
          const sizes: Begun['sizes'] = [await measure(main), await measure(month)];
          // Encrypted anew it would be another one, which the files do not have.
          const block = toBuffer(folder.atRest.sealLines(historyBlock(entry))).toString('utf8');
          const begun: Begun = { entry, sizes, ...(folder.atRest.isOn && { block }) };
          await folder.history.append(encodeRecord({ kind: 'begun', ...begun }));
          await write(folder, begun);
          return 'appended';
        }),
      );
    },

    async *history(key) {
      const folder = findFolder(key);
      const attempt = <T>(work: () => Promise<T>): Promise<T> => describeErrors(folder.dir, `read the HISTORY of ${key.scope}`, work);
      const main = groupBy(await attempt(() => readEntries(folder, 'HISTORY.md')), ({ ts }) => formatMonth(ts));
      const known = groupBy((await attempt(() => folder.history.read())).state.known.values(), ({ ts }) => ts);
      const months = new Set([...main.keys(), ...(await attempt(() => monthsIn(folder.dir)))]);
      for (const month of [...months].sort().reverse()) {
        const written = await attempt(() => readEntries(folder, `HISTORY-${month}.md`));
        yield* named(together(written, main.get(month) ?? []), known);
      }
    },
  };
}

/** Under the lock. */
async function completeHistory(folder: DocumentFolder): Promise<HistoryLog> {
  const { state } = await folder.history.read();
  for (const begun of [...state.begun.values()]) await write(folder, begun);
  return state.begun.size === 0 ? state : (await folder.history.read()).state;
}

async function write(folder: DocumentFolder, { entry, sizes, block }: Begun): Promise<void> {
  const text = block ?? toBuffer(folder.atRest.sealLines(historyBlock(entry))).toString('utf8');
  for (const [i, path] of historyPaths(folder, entry).entries()) {
    if (folder.atRest.isOn) await resealDocument({ path, atRest: folder.atRest });
    await appendBlock(path, sizes[i] ?? 0, text);
  }
  await folder.history.append(encodeRecord({ kind: 'done', of: { id: entry.id, kind: entry.kind } }));
}

/** Newest first, of the same time the one that is further down first. */
function together(month: readonly WrittenEntry[], main: readonly WrittenEntry[]): WrittenEntry[] {
  const times = new Set(month.map(({ ts }) => ts));
  return [...main.filter(({ ts }) => !times.has(ts)), ...month].reverse().sort((a, b) => b.ts - a.ts);
}

/** With the ids that the journal has for them: by time and words, or by time alone when a person has changed the words. */
function named(written: readonly WrittenEntry[], byTime: ReadonlyMap<number, readonly Known[]>): HistoryEntry[] {
  const left = new Map([...new Set(written.map(({ ts }) => ts))].map((ts) => [ts, [...(byTime.get(ts) ?? [])]]));
  const take = (ts: number, is: (known: Known) => boolean): Known | undefined => {
    const candidates = left.get(ts) ?? [];
    const at = candidates.findLastIndex(is);
    return at < 0 ? undefined : candidates.splice(at, 1)[0];
  };
  const exact = written.map(({ ts, text }) => take(ts, ({ hash }) => hash === memoryVersion(text)));
  return written.map(({ ts, text }, i) => {
    const { id, kind } = exact[i] ??
      take(ts, () => true) ?? { id: '', kind: text.startsWith('[raw-fallback]') ? 'raw-fallback' : 'summary' };
    return { id, kind, ts, text };
  });
}

/** Bytes that are no text show as such; the text is read here, never written back. */
async function readEntries({ dir, atRest }: DocumentFolder, name: string): Promise<WrittenEntry[]> {
  const bytes = await readDocument({ path: join(dir, name), atRest });
  return bytes === undefined ? [] : parseHistory(decodeText(bytes));
}

async function monthsIn(dir: string): Promise<string[]> {
  return (await namesIn(dir)).flatMap((name) => MONTH_FILE.exec(name)?.[1] ?? []);
}

async function historyFiles(dir: string): Promise<string[]> {
  return (await namesIn(dir)).filter((name) => name === 'HISTORY.md' || MONTH_FILE.test(name)).map((name) => join(dir, name));
}

async function measure(path: string): Promise<number> {
  return (await unlessAbsent(stat(path)))?.size ?? 0;
}

function groupBy<Item, By>(items: Iterable<Item>, by: (item: Item) => By): Map<By, Item[]> {
  const groups = new Map<By, Item[]>();
  for (const item of items) {
    const group = groups.get(by(item));
    if (group) group.push(item);
    else groups.set(by(item), [item]);
  }
  return groups;
}

function historyPaths({ dir }: DocumentFolder, { ts }: HistoryEntry): [main: string, month: string] {
  return [join(dir, 'HISTORY.md'), join(dir, `HISTORY-${formatMonth(ts)}.md`)];
}

function nameEntry({ id, kind }: Name): string {
  return `${kind} ${id}`;
}
