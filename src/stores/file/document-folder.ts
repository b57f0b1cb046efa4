/** One scope's documents, as a process knows them. */
import type { MemoryText, MemoryChange, HistoryEntry } from '../../records/memory/documents.js';
import type { FoldedLines } from './folded-lines.js';
import type { ScopeKey } from '../store.js';

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

export type FolderOf = (key: ScopeKey) => DocumentFolder;

export interface Changes {
  readonly done: MemoryChange[];
  /** id -> version */
  readonly versions: Map<string, string>;
  /** The last one, when it is begun and not known to be done. */
  begun: MemoryChange | undefined;
}

export type Name = Pick<HistoryEntry, 'id' | 'kind'>;

/** What of an entry stays in memory. */
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
