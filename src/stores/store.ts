/**
 * Where bytes live. Narrow ports; Redis and files implement them under one contract test (`test/stores/contract.ts`).
 *
 * @rule stores/idempotent-writes: Every write is idempotent by its own id: the same write again, at any time, changes nothing. (test:
 *   test/stores/contract.ts)
 * @rule stores/rejected-is-unknown: A rejected promise means *unknown outcome*: the write may have been applied. Callers write again.
 *   (test: test/stores/redis/redis.test.ts)
 * @rule stores/commit-whole: `commit` is one atomic write: result, entries and items are all there or all not. (test:
 *   test/stores/file/file.test.ts)
 * @rule stores/fenced-gains-nothing: A fenced effect never gains entries. (test: test/stores/contract.ts)
 * @rule stores/foreign-is-skipped: Foreign or damaged data is skipped and counted, and never fails a reader of something else. (test:
 *   test/stores/file/file.test.ts)
 */
import type { CompactionRecord, EpisodeLinks, Replacement } from '../records/episodes.js';
import type { Beginning, Cut, LifeName } from '../records/lives.js';
import type { BodyRef, Entry, JsonValue } from '../records/message.js';
import type { SlotRange } from '../records/slots.js';
import type { TurnEnd } from '../records/turn-end.js';
import type { HistoryEntry, MemoryChange, MemoryText, MemoryWrite, Proposal, Tombstone } from '../records/memory/documents.js';
import type { ItemRecord } from '../records/memory/agent-memory.js';
import type { EpisodicItem, SemanticItem } from '../records/memory/items.js';
import type { Amount, Limit, Room, RoomClaim } from '../records/shared-budget.js';
import type { Spending, Spent } from '../records/spending.js';
import type { Upload, UploadUse } from '../records/uploads.js';
import type { AgentKey, ConversationKey, ConversationName, DeletedLife, ScopeKey, UploadOwner } from './names.js';

export type { LifeName };
export type { AgentKey, ConversationKey, ConversationName, DeletedLife, ScopeKey, UploadOwner };
export { DocumentRefused, LifeDeleted, StoreUnavailable } from './errors.js';

export interface Store {
  readonly kind: 'redis' | 'file';
  /** Where it is, for people: no password in it. */
  readonly where: string;
  /** Six characters that it was given when it was first asked: the same by whatever address it is reached. */
  id(): Promise<string>;
  readonly entries: Entries;
  readonly bodies: Bodies;
  readonly items: Items;
  readonly effects: Effects;
  readonly spendings: Spendings;
  readonly budgets: Budgets;
  readonly writes: Writes;
  readonly lives: Lives;
  readonly turnEnds: TurnEnds;
  readonly feed: Feed;
  readonly episodes: Episodes;
  readonly facts: Facts;
  readonly documents: Documents;
  readonly pins: Pins;
  readonly scopes: Scopes;
  readonly vectors: Vectors;
  readonly uploads: Uploads;
  /** What a person should know about this store's settings (AOF off, eviction on, …); throws StoreUnavailable when it does not answer. */
  check(): Promise<string[]>;
  close(): Promise<void>;
}

/** What became of a message; empty when its slot has it now, or had something before. */
export interface Recording {
  /** The place of the first one of its id. */
  readonly duplicate?: { readonly turn: string; readonly slot: number };
}

/** The conversation's messages, addressed by slot; writes may come out of order and more than once. The first write of a slot wins. */
export interface Entries {
  /**
   * Writes user messages, each once per `entry.messageId`: the same id in another slot or turn is a duplicate and writes nothing. In
   * the same slot and turn it is the same message, and none.
   */
  record(key: ConversationKey, entries: readonly Entry[]): Promise<readonly Recording[]>;
  /** Writes entries whose slot is empty; what is there stays. */
  append(key: ConversationKey, entries: readonly Entry[]): Promise<void>;
  /** In the order of `slots`; undefined where there is nothing, or nothing readable. */
  read(key: ConversationKey, slots: readonly number[]): Promise<(Entry | undefined)[]>;
  /** Entries with slot in `(after, after + limit]` that exist, ascending, and the highest slot of all; `skipped` counts unreadable records. */
  page(
    key: ConversationKey,
    after: number,
    limit: number,
  ): Promise<{ readonly entries: Entry[]; readonly last: number; readonly skipped: number }>;
  /**
   * Marks slots as compacted: `read` and `page` answer as before, the active traces (`raw_traces.jsonl`) no longer have them.
   * `move` is the workflow's number of this change, ascending over a life, from 0. The highest one is kept: a change with a lower
   * one is a late attempt and is ignored; the same one again applies again.
   */
  archive(key: ConversationKey, slots: readonly SlotRange[], move: number): Promise<void>;
  /** Takes the mark away, as an undone compaction does; `move` as above. */
  restore(key: ConversationKey, slots: readonly SlotRange[], move: number): Promise<void>;
  /** Ascending; slots beside each other are one range. */
  archived(key: ConversationKey): Promise<SlotRange[]>;
}

/** Long texts, content-addressed by the SHA-256 of their UTF-8 bytes. */
export interface Bodies {
  put(key: ConversationKey, text: string): Promise<BodyRef>;
  get(key: ConversationKey, ref: string): Promise<string | undefined>;
}

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
  /** What is not there is removed all the same. */
  remove(key: ConversationKey, ids: readonly string[]): Promise<void>;
  /** What a model has made to be shown for that item; '' for nothing of use. Once per item: the first one counts. */
  cite(key: ConversationKey, id: string, citation: string): Promise<void>;
  /** In the order of `ids`; undefined where there is none. */
  citations(key: ConversationKey, ids: readonly string[]): Promise<(string | undefined)[]>;
}

/**
 * How lives stand on each other. `entries.read`, `entries.page` and `bodies.get` of a life with a beginning answer with what it shares
 * as if it were its own; `archived` has those of the beginning from the start.
 */
export interface Lives {
  /** Once: the first one counts. The lives that it shares entries with know of it from then on. */
  begin(key: ConversationKey, beginning: Beginning): Promise<void>;
  beginning(key: ConversationKey): Promise<Beginning | undefined>;
  /** Lives that share entries of this one. */
  forks(key: ConversationKey): Promise<LifeName[]>;
  /** Once per `cut.id`: the first one counts. What is cut is read as before. */
  cut(key: ConversationKey, cut: Cut): Promise<void>;
  /** In the order of their branches. */
  cuts(key: ConversationKey): Promise<Cut[]>;
  /**
   * The lives of a conversation that there are, with `tree` those of its sub-agents too. Without `scope` it is found where the store keeps
   * it; Redis, which does not, answers `default`.
   */
  list(of: {
    readonly namespace: string;
    readonly conversation: string;
    readonly scope?: string;
    readonly tree?: boolean;
  }): Promise<ConversationKey[]>;
  /** Everything of one life, and nothing else: what it shared stays. What is not there is no error. The caller checks that no other life shares it. */
  delete(key: ConversationKey): Promise<void>;
  /**
   * Tombstones, once per life. From then on nothing begins with what that life has, and what a late worker writes to it is removed
   * again and throws LifeDeleted. They outlast `delete`, and have no word of what was said.
   */
  markDeleted(of: ConversationName, lives: readonly DeletedLife[]): Promise<void>;
  /** Takes tombstones away, where what was marked could not be deleted after all. */
  unmarkDeleted(of: ConversationName, lives: readonly string[]): Promise<void>;
  /** Tombstones of a conversation. */
  deleted(of: ConversationName): Promise<readonly DeletedLife[]>;
}

/** How turns ended that have no whole answer, of one life of a conversation; the newest of very many. */
export interface TurnEnds {
  /** Once per turn: the first one counts. */
  add(key: ConversationKey, ends: readonly TurnEnd[]): Promise<void>;
  /** In the order of their turns. */
  list(key: ConversationKey): Promise<TurnEnd[]>;
}

/** What an effect is about to be, done under. `hash` is of its request: the same id with another hash is a conflict. */
export interface EffectClaim {
  readonly id: string;
  readonly hash: string;
}

export type Reservation =
  /** It has not been done. `earlier` attempts reserved it before and did not commit. */
  | { readonly status: 'reserved'; readonly earlier: number }
  | { readonly status: 'committed'; readonly result: JsonValue }
  | { readonly status: 'fenced' }
  | { readonly status: 'conflict' };

export type Commitment =
  /** `result` is what counts: ours, or that of the attempt which was first. */
  { readonly status: 'committed'; readonly result: JsonValue } | { readonly status: 'fenced' } | { readonly status: 'conflict' };

/** What is written together with an effect's result. */
export interface CommitExtras {
  /** Kept also when fenced: it was paid for. */
  readonly spent?: Spending;
  /** Written with the entries or not at all (stores/commit-whole). */
  readonly items?: readonly ItemRecord[];
  /** Published when the effect has committed, now or before; lost without a word where the feed cannot be written. */
  readonly publish?: readonly LiveEvent[];
}

/** An effect that was to be fenced: `fenced` when it can no longer commit, or the result that it had committed before. */
export type Fencing = { readonly id: string } & (
  { readonly status: 'fenced' } | { readonly status: 'committed'; readonly result: JsonValue }
);

/** The ledger of model calls and tool runs: reserve, do, commit. */
export interface Effects {
  /** `attempt` makes the reservation itself idempotent: the same attempt twice counts once. */
  reserve(key: ConversationKey, claim: EffectClaim, attempt: string): Promise<Reservation>;
  commit(
    key: ConversationKey,
    claim: EffectClaim,
    result: JsonValue,
    entries: readonly Entry[],
    extras?: CommitExtras,
  ): Promise<Commitment>;
  /** From now on these cannot commit. One that has already is left, and its whole result returned. */
  fence(key: ConversationKey, ids: readonly string[]): Promise<readonly Fencing[]>;
  /** Of what has no result of its own here: an attempt that failed, a question beside the answer. Once per id: the first one counts. */
  spend(key: ConversationKey, id: string, spending: Spending): Promise<void>;
}

/** What was paid for: written with effects, gone with their life. */
export interface Spendings {
  /** Of all conversations, in no order; one that cannot be read is left out (stores/foreign-is-skipped). */
  all(of: { readonly namespace: string }): AsyncIterable<Spent>;
}

/** Budgets that hold for a tree of conversations (records/shared-budget.ts): `key` is of the one that has the budget. */
export interface Budgets {
  /** Room for one call: once per `claim.id`, however often it is asked for. */
  reserve(key: ConversationKey, claim: RoomClaim): Promise<Room>;
  /**
   * Adds a call's cost, once per id, and frees its reservation. Without `member` no conversation reports it again
   * (records/budget-comes-back).
   */
  settle(key: ConversationKey, id: string, amount: Amount, member?: string): Promise<void>;
  /** Of a call that was not made, or failed. What is not there is no error. */
  release(key: ConversationKey, id: string): Promise<void>;
  /** The latest one counts. */
  limit(key: ConversationKey, limit: Limit): Promise<void>;
}

/** What a step writes before its work: applied in the order of these fields. */
export interface WriteBatch {
  /** As `entries.record`. */
  readonly record?: readonly Entry[];
  /** As `effects.fence`. */
  readonly fence?: readonly string[];
  /** As `entries.append`. */
  readonly append?: readonly Entry[];
  /** As `feed.publish`, but lost without a word where the feed cannot be written: it must not hold up the rest. */
  readonly publish?: readonly LiveEvent[];
  /** As `effects.reserve`. */
  readonly reserve?: { readonly claim: EffectClaim; readonly attempt: string };
}

export interface Applied {
  /** In the order of `record`. */
  readonly recorded: readonly Recording[];
  /** In the order of `fence`. */
  readonly fenced: readonly Fencing[];
  /** Where `reserve` was given. */
  readonly reservation?: Reservation;
}

/** Several writes of one conversation as one: one round trip to Redis, one line of the journal and one wait for the disk on files. */
export interface Writes {
  /** All but the events is there or all not; the same batch again changes nothing and answers the same. */
  apply(key: ConversationKey, batch: WriteBatch): Promise<Applied>;
}

export const REMEMBERED_EVENT_IDS = 256;

/** An event to be published. With an `id` it is published once: the feed of a life remembers its last REMEMBERED_EVENT_IDS ids. */
export interface LiveEvent {
  readonly id?: string;
  readonly event: JsonValue;
}

/** Live events beside Temporal: lost with the store, bounded, never the truth. `cursor` is the feed's own, opaque and ordered. */
export interface Feed {
  publish(key: ConversationKey, events: readonly LiveEvent[]): Promise<void>;
  /** The cursor of the latest event, "0" where there is none: reading after it misses nothing that is published from now on. */
  newest(key: ConversationKey): Promise<string>;
  /**
   * Events after `after` ("0" = from the oldest kept, "$" = from now on), then live ones, until `signal` aborts (then it ends
   * without error). When events after `after` were trimmed it first yields `{ cursor, event: { kind: 'resync' } }`.
   */
  read(key: ConversationKey, after: string, signal: AbortSignal): AsyncIterable<{ readonly cursor: string; readonly event: JsonValue }>;
}

/** Beyond the seed's fields: which entries it stands for, and since when. */
export interface EpisodeRecord extends EpisodicItem, EpisodeLinks {
  readonly session: number;
  readonly epoch: number;
  readonly slots: readonly SlotRange[];
  /** How it was made; absent where an earlier version, or somebody else, has made it. */
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
  /** Of an undone compaction. What is not there is no error. */
  remove(key: ConversationKey, id: string): Promise<void>;
}

/** Where a fact was learnt. */
export interface FactSource {
  readonly conversation: string;
  readonly turn_ids: readonly string[];
}

export interface FactRecord extends SemanticItem {
  /** The batch that brought it first; null for one that somebody wrote by hand. */
  readonly batch: string | null;
  readonly source: FactSource | null;
  /** Absent: it counts. Else by which fact it was replaced (null: by none), and when. */
  readonly replaced?: { readonly by: string | null; readonly ts: number };
}

/** What a scope knows, from all its conversations. */
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

/** The longest MEMORY.md that is read or written, in bytes. */
export const MAX_MEMORY = 1024 * 1024;

/**
 * MEMORY.md and HISTORY of a scope (seed 001), and what people have decided about them. A MEMORY.md that is no text, or longer than
 * MAX_MEMORY, is refused in words (DocumentRefused), never replaced.
 */
export interface Documents {
  /** As it is now. What a person has made of it with an editor becomes a change of its own, cause `hand`, when it is first seen. */
  memory(key: ScopeKey): Promise<MemoryText>;
  /** The text of a version that there was once; undefined when there was none. */
  memoryText(key: ScopeKey, version: string): Promise<string | undefined>;
  /** Oldest first. `skipped` counts unreadable records. */
  changes(key: ScopeKey): Promise<{ readonly changes: MemoryChange[]; readonly skipped: number }>;
  /** Compare and set, in one step that is there or not: a reader sees the old text or the new one. A repeated `id` answers as it did first. */
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
   * Rewrites what is kept beside the present MEMORY.md: earlier versions, lines of changes, HISTORY, proposals. `redact` gets one line
   * and answers what is to stand there; the same line again must give the same.
   */
  redact(key: ScopeKey, redact: (line: string) => string): Promise<void>;
}

/** A life in which something was written, with a mark that changes when its entries, its cuts, its episodes or its vectors do. */
export interface MarkedLife {
  readonly key: ConversationKey;
  readonly mark: string;
}

export interface Marks {
  /** Changes when MEMORY.md, HISTORY, facts or tombstones do. */
  readonly documents: string;
  /** Lives that have entries, in no order: all, or those of `changed`. */
  readonly lives: readonly MarkedLife[];
  /** Those that were written to since the cursor; of what is not among `lives` nothing is there any more. Absent: any may be. */
  readonly changed?: readonly LifeName[];
  readonly cursor: string;
}

/** What a scope has, seen from far: for an index of all that was said in it. */
export interface Scopes {
  /** `since`: the cursor of an earlier answer, for what has changed from then on alone. */
  marks(key: ScopeKey, since?: string): Promise<Marks>;
  /** Names of the parts of the index that are written. It is derived: what is lost or damaged is made again from the rest. */
  indexParts(key: ScopeKey): Promise<readonly string[]>;
  /** As it was written; undefined where there is none. */
  readIndex(key: ScopeKey, part: string): Promise<Uint8Array | undefined>;
  /** In the place of the one before, which a reader sees whole until then. `part`: letters, digits and dashes. */
  writeIndex(key: ScopeKey, part: string, bytes: Uint8Array): Promise<void>;
  /** What is not there is gone. */
  removeIndex(key: ScopeKey, parts: readonly string[]): Promise<void>;
}

/** What one text means, as an embedder has said: a vector, each of whose numbers is one byte. */
export interface StoredVector {
  /** `provider/model`. Vectors of another one say nothing about these. */
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
  /** Takes away those of all models whose text is none of `texts`, which is asked only where there are some: of what was forgotten. */
  keep(key: ConversationKey, texts: () => Promise<ReadonlySet<number>>): Promise<void>;
}

/** What has been accepted of one tool of a server: its words, and their SHA-256. */
export interface ToolPin {
  readonly server: string;
  readonly tool: string;
  readonly hash: string;
  readonly text: string;
}

/** What an agent's servers may say about their tools without a person being asked again. */
export interface Pins {
  list(key: AgentKey): Promise<ToolPin[]>;
  /** Once per server and tool: what is pinned stays. */
  pin(key: AgentKey, pins: readonly ToolPin[]): Promise<void>;
  /** In the place of what was pinned: a person's word. Of two the last one written counts. */
  accept(key: AgentKey, pins: readonly ToolPin[]): Promise<void>;
}

/** A file that is arriving: nobody finds it until it is kept, and what is left of one whose writer died goes by itself. */
export interface UploadDraft {
  append(bytes: Uint8Array): Promise<void>;
  /** The file is there from now on, under `upload.id`; of one that was there before, the bytes are there again and its uses stay. */
  keep(upload: Omit<Upload, 'uses'>): Promise<void>;
  discard(): Promise<void>;
}

/**
 * Files that were sent before a message names them. The bytes of one lie here until a conversation uses it; from then on they are that
 * conversation's body, and go with it. What has expired is not there, whether or not it was removed already.
 */
export interface Uploads {
  begin(owner: UploadOwner): Promise<UploadDraft>;
  find(owner: UploadOwner, id: string): Promise<Upload | undefined>;
  /** Undefined where they were used, or are damaged. */
  bytes(owner: UploadOwner, id: string): Promise<Buffer | undefined>;
  /** A conversation has the bytes: they are no longer kept here. `expiresAt` only ever moves on. What is not there is no error. */
  use(owner: UploadOwner, id: string, use: UploadUse, expiresAt: number): Promise<void>;
  /** Those of an owner that no conversation has used. */
  waiting(owner: UploadOwner): Promise<{ readonly count: number; readonly bytes: number }>;
  /** Removes what has expired, of all owners; answers how many. */
  sweep(): Promise<number>;
}
