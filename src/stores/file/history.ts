/**
 * HISTORY in files: each entry stands in HISTORY.md and in its month's file (seed 001), both for people to read, to search with
 * grep, and to edit. `history.jsonl` knows which entries came from us.
 *
 * - The journal first has that an entry is begun, with its text and how long both files are; then both files get it, then it is done.
 * - A process that finds one begun and not done completes it before any other append: a file that has its block gets no second one.
 * - The month's file counts. HISTORY.md adds entries under other times: an older program's, a person's.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { HistoryEntry } from '../../records/memory/documents.js';
import { historyBlock, monthOf, parseHistory, supersede, toKeptEntry, type WrittenEntry } from '../../records/memory/history-text.js';
import { memoryVersion } from '../../records/memory/memory-lines.js';
import { decodeRecord, encodeRecord, entrySchema } from '../codecs/document-codec.js';
import {
  appendBlock,
  readDocument,
  type DocumentFolder,
  type FolderOf,
  type HistoryLog,
  type Begun,
  type Known,
  type Name,
} from './document.js';
import { describeErrors, isAbsent } from './errors.js';
import { foldLines, type FoldedLines } from './folded-lines.js';
import type { Documents } from '../store.js';

export const historyLineSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('begun'), entry: entrySchema, sizes: z.tuple([z.number(), z.number()]) }),
  z.object({ kind: z.literal('done'), of: entrySchema.pick({ id: true, kind: true }) }),
]);

const MONTH_FILE = /^HISTORY-(\d{4}-\d{2})\.md$/;

export function foldHistory(path: string): FoldedLines<HistoryLog> {
  return foldLines<HistoryLog>({
    path,
    empty: () => ({ known: new Map(), begun: new Map() }),
    fold({ known, begun }, text) {
      const line = decodeRecord(historyLineSchema, text);
      if (!line) return false;
      if (line.kind === 'begun') {
        const { entry } = line;
        begun.set(nameOf(entry), line);
        known.set(nameOf(entry), { id: entry.id, kind: entry.kind, ts: entry.ts, hash: memoryVersion(entry.text) });
      } else begun.delete(nameOf(line.of));
      return true;
    },
  });
}

export function createFileHistory(folderOf: FolderOf): Pick<Documents, 'appendHistory' | 'history'> {
  return {
    async appendHistory(key, given) {
      const folder = folderOf(key);
      return describeErrors(folder.dir, `append ${given.kind} ${given.id} to the HISTORY of ${key.scope}`, () =>
        folder.locked(async () => {
          const { known } = await completeHistory(folder);
          if (known.has(nameOf(given))) return 'known';
          if (given.kind === 'raw-fallback' && known.has(nameOf({ ...given, kind: 'summary' }))) return 'superseded';
          const fallback = known.get(nameOf({ ...given, kind: 'raw-fallback' }));
          const entry = toKeptEntry(fallback ? supersede(toKeptEntry(given), fallback.ts) : given);
          const [main, month] = pathsOf(folder, entry);
          const sizes: Begun['sizes'] = [await sizeOf(main), await sizeOf(month)];
          await folder.history.append(encodeRecord({ kind: 'begun', entry, sizes }));
          await write(folder, { entry, sizes });
          return 'appended';
        }),
      );
    },

    async *history(key) {
      const folder = folderOf(key);
      const asked = <T>(work: () => Promise<T>): Promise<T> => describeErrors(folder.dir, `read the HISTORY of ${key.scope}`, work);
      const main = groupBy(await asked(() => readEntries(join(folder.dir, 'HISTORY.md'))), ({ ts }) => monthOf(ts));
      const known = groupBy((await asked(() => folder.history.read())).state.known.values(), ({ ts }) => ts);
      const months = new Set([...main.keys(), ...(await asked(() => monthsIn(folder.dir)))]);
      for (const month of [...months].sort().reverse()) {
        const written = await asked(() => readEntries(join(folder.dir, `HISTORY-${month}.md`)));
        yield* named(together(written, main.get(month) ?? []), known);
      }
    },
  };
}

/** Under the lock. */
export async function completeHistory(folder: DocumentFolder): Promise<HistoryLog> {
  const { state } = await folder.history.read();
  for (const begun of [...state.begun.values()]) await write(folder, begun);
  return state.begun.size === 0 ? state : (await folder.history.read()).state;
}

async function write(folder: DocumentFolder, { entry, sizes }: Begun): Promise<void> {
  for (const [i, path] of pathsOf(folder, entry).entries()) await appendBlock(path, sizes[i] ?? 0, historyBlock(entry));
  await folder.history.append(encodeRecord({ kind: 'done', of: { id: entry.id, kind: entry.kind } }));
}

/** Newest first, of the same time the one that stands further down first. */
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

/** What is no UTF-8 in it shows as such; it is read here, never written back. */
async function readEntries(path: string): Promise<WrittenEntry[]> {
  return parseHistory((await readDocument(path))?.toString('utf8') ?? '');
}

async function monthsIn(dir: string): Promise<string[]> {
  return (await namesIn(dir)).flatMap((name) => MONTH_FILE.exec(name)?.[1] ?? []);
}

export async function historyFiles(dir: string): Promise<string[]> {
  return (await namesIn(dir)).filter((name) => name === 'HISTORY.md' || MONTH_FILE.test(name)).map((name) => join(dir, name));
}

export async function namesIn(dir: string): Promise<string[]> {
  return readdir(dir).catch((error: unknown) => {
    if (isAbsent(error)) return [];
    throw error;
  });
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    (error: unknown) => {
      if (isAbsent(error)) return 0;
      throw error;
    },
  );
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

function pathsOf({ dir }: DocumentFolder, { ts }: HistoryEntry): [main: string, month: string] {
  return [join(dir, 'HISTORY.md'), join(dir, `HISTORY-${monthOf(ts)}.md`)];
}

function nameOf({ id, kind }: Name): string {
  return `${kind} ${id}`;
}
