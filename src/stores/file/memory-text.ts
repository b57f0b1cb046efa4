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
import { lstat, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { type MemoryChange, type MemoryText, newLines, NO_MEMORY_VERSION } from '../../records/memory/documents.js';
import { changeSchema, decodeRecord, encodeRecord, memoryVersion, refuseLongMemory, toMemoryText } from '../codecs.js';
import { readDocument, replaceDocument, type DocumentFolder, type FindFolder, type Changes } from './document.js';
import { describeErrors, unlessAbsent } from './errors.js';
import { foldLines, replaceFile, type FoldedLines } from './lines.js';
import { MAX_MEMORY, type Documents } from '../store.js';

export const changeLineSchema = z.object({ kind: z.enum(['begun', 'done']), change: changeSchema });

/** A file that was changed so lately can change once more within its time stamp's grain, and look the same. */
const FRESH_MS = 2_000;

export function foldChanges(path: string): FoldedLines<Changes> {
  return foldLines<Changes>({
    path,
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
      return describeErrors(memoryPath(folder), `write the MEMORY.md of ${key.scope}`, () =>
        folder.locked(async () => {
          const current = await seeHand(folder);
          const known = (await folder.changes.read()).state.versions.get(write.id);
          if (known !== undefined) return { status: 'written', version: known };
          if (current.version !== write.from) return { status: 'conflict', current };
          await keepVersion(folder, change.version, text);
          await folder.changes.append(encodeRecord({ kind: 'begun', change }));
          // An editor takes no lock: what it saved in the meantime must not be lost.
          if ((await readText(folder)).version !== write.from) return { status: 'conflict', current: await seeHand(folder) };
          if (change.version !== write.from) await replaceDocument(memoryPath(folder), text);
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
    const before = (await readVersion(folder, from)) ?? '';
    return {
      // With its number: the same text may come back later.
      id: `hand/${version}/${state.done.length + 1}`,
      // A file may be older than the last change, put back from a copy.
      ts: Math.max(changedAt / 1000, state.done.at(-1)?.ts ?? 0),
      cause: 'hand',
      from,
      version,
      lines: newLines(before, text).map((line) => ({ line, source: { trust: 'person' } })),
    };
  }
}

async function readText(folder: DocumentFolder): Promise<MemoryText & { readonly changedAt: number }> {
  const path = memoryPath(folder);
  const bytes = await readDocument(path, MAX_MEMORY);
  const text = bytes === undefined ? '' : toMemoryText(path, bytes);
  const changedAt = bytes === undefined ? Date.now() : (await lstat(path)).mtimeMs;
  return { text, version: memoryVersion(text), changedAt };
}

/** Written again when it is there with other words: they were redacted, and now the text is back. */
async function keepVersion(folder: DocumentFolder, version: string, text: string): Promise<void> {
  if (version === NO_MEMORY_VERSION || (await readVersion(folder, version)) === text) return;
  await mkdir(join(folder.dir, 'memory-versions'), { recursive: true });
  await replaceFile(versionPath(folder, version), text);
}

async function readVersion(folder: DocumentFolder, version: string): Promise<string | undefined> {
  return unlessAbsent(readFile(versionPath(folder, version), 'utf8'));
}

function lastVersion({ done }: Changes): string {
  return done.at(-1)?.version ?? NO_MEMORY_VERSION;
}

function memoryPath(folder: DocumentFolder): string {
  return join(folder.dir, 'MEMORY.md');
}

async function readStamp(path: string): Promise<{ readonly stamp: string; readonly changedAt: number }> {
  const found = await unlessAbsent(lstat(path, { bigint: true }));
  if (!found) return { stamp: 'absent', changedAt: 0 };
  return { stamp: [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(':'), changedAt: Number(found.ctimeMs) };
}
