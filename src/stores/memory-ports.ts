/** The memory of a store beyond the entries: items, summaries, facts, MEMORY.md and HISTORY, and what a search needs. Rules: store.ts. */
import type { CompactionRecord, EpisodeLinks, Replacement } from '../records/episodes.js';
import type { LifeName, SlotRange } from '../records/slots.js';
import type { ItemRecord, RemovedAt } from '../records/memory/agent-memory.js';
import type { HistoryEntry, MemoryChange, MemoryText, MemoryWrite, Proposal, Tombstone } from '../records/memory/documents.js';
import type { EpisodicItem, SemanticItem } from '../records/memory/items.js';
import type { ConversationKey, ScopeKey } from './names.js';

/** Contents of the memory channel (seed 003), of one life of a conversation. Their texts are bodies. */
export interface Items {
  /** Once per id: the first one counts, and one that was removed does not come back. */
  put(key: ConversationKey, items: readonly ItemRecord[]): Promise<void>;
  get(key: ConversationKey, id: string): Promise<ItemRecord | undefined>;
  /** Newest first; of one session where `session` is given. `skipped` counts unreadable records. */
  list(
    key: ConversationKey,
    which?: { readonly session?: number },
  ): Promise<{ readonly items: readonly ItemRecord[]; readonly skipped: number }>;
  /**
   * Ids that are not there are no error. A fork has what was removed after the turns that it shares; a life that resumes this one has
   * nothing that was removed.
   */
  remove(key: ConversationKey, ids: readonly string[], at: RemovedAt): Promise<void>;
  /** Stores a model's text to show for that item; '' for nothing of use. Once per item: the first one counts. */
  cite(key: ConversationKey, id: string, citation: string): Promise<void>;
  /** In the order of `ids`; undefined where there is none. */
  citations(key: ConversationKey, ids: readonly string[]): Promise<(string | undefined)[]>;
}

/** Beyond the seed's fields: which entries it summarizes, and since when. */
export interface EpisodeRecord extends EpisodicItem, EpisodeLinks {
  readonly session: number;
  readonly epoch: number;
  readonly slots: readonly SlotRange[];
  /** How it was made; absent where an earlier version, or another program, made it. */
  readonly made?: CompactionRecord;
}

/** Summaries of one life of a conversation. */
export interface Episodes {
  /** Once per `episode.id`: the first one counts. */
  add(key: ConversationKey, episode: EpisodeRecord): Promise<void>;
  /** Newest first; of one session where `session` is given. `skipped` counts unreadable records. */
  list(
    key: ConversationKey,
    which?: { readonly session?: number; readonly limit?: number },
  ): Promise<{ readonly episodes: EpisodeRecord[]; readonly skipped: number }>;
  /** For an undone compaction. A missing one is no error. */
  remove(key: ConversationKey, id: string): Promise<void>;
}

/** Where a fact was learnt. */
export interface FactSource {
  readonly conversation: string;
  readonly turn_ids: readonly string[];
  /** Tools (or `file`, `application`) that spoke in these turns, as far as their word is not enough. */
  readonly tools?: readonly string[];
}

export interface FactRecord extends SemanticItem {
  /** The batch that brought it first; null for one that a person wrote by hand. */
  readonly batch: string | null;
  readonly source: FactSource | null;
  /** Absent: it counts. Else by which fact it was replaced (null: by none), and when. */
  readonly replaced?: { readonly by: string | null; readonly ts: number };
}

/** The facts of a scope, from all its conversations. */
export interface Facts {
  /**
   * Gives each new fact its number and answers with the items of this batch, ascending by number, each once. A batch that was added
   * before adds nothing and answers with those of its items that are still there. A fact whose words are known (spaces folded) stays
   * as it is, but for salience and confidence, which rise to the higher; its `batch` shows that it was there before. Of what is
   * `replaced` the facts that were there before the batch count no longer; learned again they are new facts.
   */
  add(
    key: ScopeKey,
    batch: string,
    facts: readonly Omit<SemanticItem, 'id'>[],
    source: FactSource,
    replaced?: readonly Replacement[],
  ): Promise<FactRecord[]>;
  /** Most salient first, then newest; those that were replaced only with `all`. `skipped` counts unreadable records. */
  list(
    key: ScopeKey,
    which?: { readonly limit?: number; readonly all?: boolean },
  ): Promise<{ readonly facts: FactRecord[]; readonly skipped: number }>;
  /** Their numbers are not given again, and no repeated batch brings them back. What they have replaced stays replaced. */
  remove(key: ScopeKey, ids: readonly string[]): Promise<void>;
  /** Removes what the batch brought first, and what it has replaced counts again. */
  undo(key: ScopeKey, batch: string): Promise<void>;
}

/**
 * MEMORY.md and HISTORY of a scope (seed 001), and what people have decided about them. A MEMORY.md that is no text, or longer than
 * MAX_MEMORY, is refused in words (DocumentRefused), never replaced.
 */
export interface Documents {
  /** The present text. An edit by a person with an editor becomes a change, cause `hand`, when it is first seen. */
  memory(key: ScopeKey): Promise<MemoryText>;
  /** The text of a version that there was once; undefined when there was none. */
  memoryText(key: ScopeKey, version: string): Promise<string | undefined>;
  /** Oldest first. `skipped` counts unreadable records. */
  changes(key: ScopeKey): Promise<{ readonly changes: MemoryChange[]; readonly skipped: number }>;
  /**
   * Compare and set, in one step that is there or not: a reader sees the old text or the new one. A repeated `id` answers as it did first.
   */
  writeMemory(
    key: ScopeKey,
    write: MemoryWrite,
  ): Promise<{ readonly status: 'written'; readonly version: string } | { readonly status: 'conflict'; readonly current: MemoryText }>;
  /**
   * Appends once per `id` and kind: `known` when it is there. A raw fallback is not written after the summary of the same id
   * (`superseded`); a summary after the raw fallback says in its first line which one it supersedes.
   */
  appendHistory(key: ScopeKey, entry: HistoryEntry): Promise<'appended' | 'known' | 'superseded'>;
  /** Newest first, a month at a time; entries that a person wrote into the files too (their id is ''). */
  history(key: ScopeKey): AsyncIterable<HistoryEntry>;
  /** Numbers them and answers with those of this batch, in their order. A batch that was added before adds nothing. */
  propose(key: ScopeKey, batch: string, lines: readonly Pick<Proposal, 'ts' | 'line' | 'source'>[]): Promise<Proposal[]>;
  /** Oldest first. */
  proposals(key: ScopeKey): Promise<{ readonly proposals: Proposal[]; readonly skipped: number }>;
  /** A proposal is settled once: the first decision stays, and is answered. Undefined when there is none of that id. */
  settleProposal(key: ScopeKey, id: string, state: 'accepted' | 'rejected'): Promise<Proposal | undefined>;
  /** Once per id. */
  forget(key: ScopeKey, tombstone: Tombstone): Promise<void>;
  /** Oldest first. */
  forgotten(key: ScopeKey): Promise<Tombstone[]>;
  /**
   * Rewrites what is stored beside the present MEMORY.md: earlier versions, lines of changes, HISTORY, proposals. `redact` gets one line
   * and answers its replacement; the same line again must give the same.
   */
  redact(key: ScopeKey, redact: (line: string) => string): Promise<void>;
}

/** A life in which something was written, with a mark that changes when its entries, its cuts, its episodes or its vectors do. */
export interface MarkedLife {
  readonly key: ConversationKey;
  readonly mark: string;
}

/** How much there was of what the conversations of a scope share. */
export interface ErasedScope {
  /** Files, or keys of Redis. */
  readonly records: number;
}

export interface Marks {
  /** Changes when MEMORY.md, HISTORY, facts or tombstones do. */
  readonly documents: string;
  /** Lives that have entries, in no order: all, or those of `changed`. */
  readonly lives: readonly MarkedLife[];
  /** Those that were written to since the cursor; of what is not among `lives` nothing is there any more. Absent: any may be. */
  readonly changed?: readonly LifeName[];
  readonly cursor: string;
  /** As `Scopes.erasures`. */
  readonly erasures: number;
}

/** Which scopes there are, and the content of each in short, for an index for search. */
export interface Scopes {
  /** Names of those that have messages or memories, sorted. */
  list(namespace: string): Promise<readonly string[]>;
  /** `since`: the cursor of an earlier answer, for what has changed from then on alone. */
  marks(key: ScopeKey, since?: string): Promise<Marks>;
  /** Names of the parts of the index that are written. It is derived: what is lost or damaged is made again from the rest. */
  indexParts(key: ScopeKey): Promise<readonly string[]>;
  /** As it was written; undefined where there is none. */
  readIndex(key: ScopeKey, part: string): Promise<Uint8Array | undefined>;
  /** In the place of the one before, which a reader sees whole until then. `part`: letters, digits and dashes. */
  writeIndex(key: ScopeKey, part: string, bytes: Uint8Array): Promise<void>;
  /** Missing parts are no error. */
  removeIndex(key: ScopeKey, parts: readonly string[]): Promise<void>;
  /** Lives that have anything there. Redis: that have had an entry. */
  lives(key: ScopeKey): Promise<readonly ConversationKey[]>;
  /**
   * All that the conversations of a scope share, and not the conversations themselves. `writers`: lives of conversations, and runs of the
   * memory workflow, that may still be at work: what one of them writes to the scope from now on is refused with LifeDeleted, in the step
   * that writes. Others write as before. Their ids are kept, and no word. Again it changes nothing.
   *
   * @rule stores/erased-stays-empty: Nothing that was at work when a scope was erased can write to it afterwards. (test:
   *   test/stores/erasure-contract.ts)
   */
  erase(key: ScopeKey, writers: readonly string[]): Promise<ErasedScope>;
  /** Grows with each erasure that named writers which it did not know: what was read of the scope before one of them is no longer true. */
  erasures(key: ScopeKey): Promise<number>;
}

/** The vector of one text, as an embedder answers: each of its numbers is one byte. */
export interface StoredVector {
  /** `provider/model`. Vectors of another one cannot be compared with these. */
  readonly model: string;
  /** Hash of the text, as the index of a scope has it. */
  readonly text: number;
  readonly values: Int8Array;
}

/** Vectors of texts of one life, which go with it. They are derived: what is lost is made again. */
export interface Vectors {
  /** Each once per model, size and text: the first one counts. */
  add(key: ConversationKey, vectors: readonly StoredVector[]): Promise<void>;
  /** Those of a model, of whatever size, in no order. */
  read(key: ConversationKey, model: string): Promise<readonly StoredVector[]>;
  /** Takes away those of all models whose text is none of `texts`, which runs only where there are some: of what was forgotten. */
  keep(key: ConversationKey, texts: () => Promise<ReadonlySet<number>>): Promise<void>;
}
