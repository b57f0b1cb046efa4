/**
 * What a scope remembers in words, in `<dir>/agents/<scope>/`:
 *
 *   MEMORY.md              the text itself, for people to read and to edit
 *   memory-changes.jsonl   who changed it when, and which lines are new by that (memory-text.ts)
 *   memory-versions/       its earlier texts, and the present one, by version
 *   HISTORY.md, HISTORY-YYYY-MM.md
 *                          every entry in both (history.ts)
 *   history.jsonl          the ids of the entries
 *   proposals.jsonl        lines that wait for a person
 *   forgotten.jsonl        what is to stay forgotten
 *   documents.lock         who writes just now
 *
 * They are the scope's alone: the Temporal namespaces that one folder serves share them, ids included, as people who open
 * MEMORY.md expect.
 */
import { join } from 'node:path';
import { describeErrors } from './errors.js';
import { createFileHistory, foldHistory, completeHistory, historyFiles, historyLineSchema, namesIn } from './history.js';
import { withLock, createTurns } from './lock.js';
import { createFileMemoryText, foldChanges, changeLineSchema, seeHand, versionPath } from './memory-text.js';
import { scopeDir } from './paths.js';
import type { OpenCollection } from '../collections/collection.js';
import { createProposals, redactProposals } from '../collections/proposals.js';
import type { Documents, ScopeKey } from '../store.js';
import { type FolderOf, type DocumentFolder, readDocument, replaceDocument } from './document.js';
import { readFile, unlink } from 'node:fs/promises';
import type { HistoryEntry, MemoryChange } from '../../records/memory/documents.js';
import { headerTime, withoutHeaders } from '../../records/memory/history-text.js';
import { decodeRecord, encodeRecord, redactChange, redactText } from '../codecs/document-codec.js';
import { createFileCollections, replaceFile } from './lists.js';

/** Beyond these the one that was opened first is let go, and read again when it is asked for. */
const OPEN_FOLDERS = 256;

export function createFileDocuments(dir: string): Documents {
  const folderOf = createFolders(dir);
  const collections = createFileCollections(dir);
  return {
    ...createFileMemoryText(folderOf),
    ...createFileHistory(folderOf),
    ...createProposals(collections),
    redact: (key, redact) =>
      describeErrors(folderOf(key).dir, `redact the documents of ${key.scope}`, () => redactFiles(folderOf(key), collections, key, redact)),
  };
}

function createFolders(dir: string): FolderOf {
  const folders = new Map<string, DocumentFolder>();
  return (key) => {
    const path = scopeDir(dir, key);
    const folder = folders.get(path) ?? openFolder(path);
    folders.set(path, folder);
    if (folders.size > OPEN_FOLDERS) folders.delete(folders.keys().next().value ?? '');
    return folder;
  };
}

function openFolder(dir: string): DocumentFolder {
  const inTurn = createTurns();
  return {
    dir,
    changes: foldChanges(join(dir, 'memory-changes.jsonl')),
    history: foldHistory(join(dir, 'history.jsonl')),
    seen: undefined,
    locked: (work) => inTurn(() => withLock(join(dir, 'documents.lock'), work)),
  };
}

/**
 * Takes words out of what lies beside MEMORY.md. Each file is replaced in one step, what is not redacted byte for byte as it was;
 * cut short, the same call again does the rest. A version keeps its name, though it no longer is that of the bytes.
 */

type Redact = (line: string) => string;

const NEWLINE = 0x0a;
/** What a writer that died has left of ours; proposals and facts have locks of their own, so theirs may be in use. */
const LEFT_BEHIND = /^(?:MEMORY\.md|HISTORY[-\d]*\.md|memory-changes\.jsonl|history\.jsonl)\.[0-9a-f-]{36}\.tmp$/;

async function redactFiles(folder: DocumentFolder, collections: OpenCollection, key: ScopeKey, redact: Redact): Promise<void> {
  const names = await namesIn(folder.dir);
  if (names.length === 0) return;
  await folder.locked(async () => {
    // What is begun would bring its words later, and what a person has just written is to be known before it is redacted.
    await completeHistory(folder);
    const present = await seeHand(folder);
    for (const name of names.filter((each) => LEFT_BEHIND.test(each))) await unlink(join(folder.dir, name)).catch(() => undefined);
    await redactVersions(folder, present.version, redact);
    await folder.changes.rewrite((line) => redactChangeLine(line, redact));
    await folder.history.rewrite((line) => redactHistoryLine(line, redact));
    for (const path of await historyFiles(folder.dir)) await redactHistory(path, redact);
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
    const before = await readFile(path, 'utf8');
    const after = redactText(before, redact);
    if (after !== before) await replaceFile(path, after);
  }
}

/** By bytes, because a person may have brought some that are no UTF-8. Headers are no one's words. */
async function redactHistory(path: string, redact: Redact): Promise<void> {
  const bytes = await readDocument(path);
  if (bytes === undefined) return;
  const after: Buffer[] = [];
  for (let from = 0; from < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, from);
    const to = newline < 0 ? bytes.length : newline + 1;
    after.push(redactLine(bytes.subarray(from, to), redact));
    from = to;
  }
  const content = Buffer.concat(after);
  if (!content.equals(bytes)) await replaceDocument(path, content);
}

function redactLine(bytes: Buffer, redact: Redact): Buffer {
  const text = bytes.toString('utf8');
  if (headerTime(text.replace(/\r?\n$/, '')) !== undefined) return bytes;
  const after = redactText(text, redact);
  return after === text ? bytes : Buffer.from(withoutHeaders(after));
}

function redactChangeLine(text: string, redact: Redact): string {
  const line = decodeRecord(changeLineSchema, text);
  // A torn one has words too.
  if (!line) return redact(text);
  return unlessSame(text, line, { ...line, change: redactChange<MemoryChange>(line.change, redact) });
}

function redactHistoryLine(text: string, redact: Redact): string {
  const line = decodeRecord(historyLineSchema, text);
  if (!line) return redact(text);
  if (line.kind === 'done') return text;
  const entry: HistoryEntry = { ...line.entry, text: redactText(line.entry.text, redact) };
  return unlessSame(text, line, { ...line, entry });
}

function unlessSame(text: string, before: object, after: object): string {
  return encodeRecord(before) === encodeRecord(after) ? text : encodeRecord(after);
}
