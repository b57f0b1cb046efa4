/**
 * What a scope remembers in words, in `<dir>/agents/<scope>/`:
 *
 *   MEMORY.md              the text itself, for people to read and to edit
 *   memory-changes.jsonl   who changed it when, and which lines are new by that (file-memory-text.ts)
 *   memory-versions/       its earlier texts, and the present one, by version
 *   HISTORY.md, HISTORY-YYYY-MM.md
 *                          every entry in both (file-history.ts)
 *   history.jsonl          the ids of the entries
 *   proposals.jsonl        lines that wait for a person
 *   forgotten.jsonl        what is to stay forgotten
 *   documents.lock         who writes just now
 *
 * They are the scope's alone: the Temporal namespaces that one folder serves share them, ids included, as people who open
 * MEMORY.md expect.
 */
import { join } from 'node:path';
import { inDocumentWords } from './errors.js';
import { createFileHistory, foldHistory } from './history.js';
import { withLock } from './lock.js';
import { createFileMemoryText, foldChanges } from './memory-text.js';
import { scopeDir } from './paths.js';
import { createFileProposals } from './proposals.js';
import { redactFiles } from './redact.js';
import type { Documents } from '../store.js';
import { createTurns } from './turns.js';
import type { FolderOf, DocumentFolder } from './document-folder.js';

/** Beyond these the one that was opened first is let go, and read again when it is asked for. */
const OPEN_FOLDERS = 256;

export function createFileDocuments(dir: string): Documents {
  const folderOf = createFolders(dir);
  return {
    ...createFileMemoryText(folderOf),
    ...createFileHistory(folderOf),
    ...createFileProposals(dir),
    redact: (key, redact) =>
      inDocumentWords(folderOf(key).dir, `redact the documents of ${key.scope}`, () => redactFiles(folderOf(key), dir, key, redact)),
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
