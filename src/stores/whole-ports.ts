/** The ports to entries and long texts, and those to a store as a whole: for copies of it, and for what of it is in an archive. */
import type { BodyRef, Entry, JsonValue } from '../records/message.js';
import type { SlotRange } from '../records/slots.js';
import type { Spending } from '../records/spending.js';
import type { OpenCollection } from './collections/ports.js';
import type { AgentKey, ConversationKey, ConversationName, SignInOwner } from './names.js';

/** The outcome of recording a message; empty when its slot has it now, or had something before. */
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
  /**
   * Entries with slot in `(after, after + limit]` that exist, ascending, and the highest slot of all; `skipped` counts unreadable records.
   */
  page(
    key: ConversationKey,
    after: number,
    limit: number,
  ): Promise<{ readonly entries: Entry[]; readonly last: number; readonly skipped: number }>;
  /**
   * Marks slots as compacted: `read` and `page` answer as before, the active traces (`raw_traces.jsonl`) no longer have them.
   * `move` is the workflow's number of this change, ascending over a life, from 0. The highest one counts: a change with a lower
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

/** What the ledger has of one effect, and what was spent. */
export type LedgerRecord =
  | { readonly kind: 'committed'; readonly id: string; readonly hash: string; readonly result: JsonValue }
  | { readonly kind: 'reserved'; readonly id: string; readonly hash: string; readonly attempts: readonly string[] }
  | { readonly kind: 'fenced'; readonly id: string }
  | { readonly kind: 'spent'; readonly id: string; readonly spending: Spending };

/** What has records beside scopes and lives. */
export type NamedPlace =
  | { readonly kind: 'deleted'; readonly key: ConversationName }
  | { readonly kind: 'pins'; readonly key: AgentKey }
  | { readonly kind: 'sign-ins'; readonly key: SignInOwner };

export interface Contents {
  /** Each once, in no order. */
  named(namespace: string): AsyncIterable<NamedPlace>;
  /** Of one life alone, without what it shares. Of what an archive has nothing is here. */
  readonly entries: Entries;
  readonly bodies: Bodies;
  /** Refs of those of one life alone. */
  bodyRefs(key: ConversationKey): Promise<readonly string[]>;
  /**
   * Takes out what an archive has, each only as it was given: what was written since stays. Message ids stay known. `standIn` is the result
   * of effects from then on. False where the life cannot be written anew now, and nothing was taken out.
   */
  drop(key: ConversationKey, content: ToArchive, standIn: JsonValue): Promise<boolean>;
  /** The highest number of an archiving or restoring of entries; -1 where there was none. */
  lastMove(key: ConversationKey): Promise<number>;
  /** In no order; results as they are stored. */
  ledger(key: ConversationKey): AsyncIterable<LedgerRecord>;
  /** What is there stays (stores/idempotent-writes). */
  restoreLedger(key: ConversationKey, records: readonly LedgerRecord[]): Promise<void>;
  readonly open: OpenCollection;
}

// What is in an archive (archived.ts).

export interface ArchivePlace {
  /** For people: no password in it. */
  readonly where: string;
  /** On the disk, or acknowledged, once it resolves. The same again changes nothing. */
  put(name: string, bytes: Buffer): Promise<void>;
  /** Undefined where there is none. */
  get(name: string): Promise<Buffer | undefined>;
  list(prefix: string): AsyncIterable<ArchivedObject>;
  /** A missing one is no error. */
  remove(name: string): Promise<void>;
}

export interface ArchivedObject {
  readonly name: string;
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** An object of an archive, as the index has it. */
export interface ArchiveRecord {
  /** SHA-256 of its bytes. */
  readonly id: string;
  readonly name: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly bytes: number;
  /** Of its texts. */
  readonly plain: number;
  readonly slots: readonly SlotRange[];
  /** SHA-256 of each. */
  readonly bodies: readonly string[];
  readonly results: number;
}

/** What goes into one object. */
export interface ToArchive {
  readonly entries: readonly Entry[];
  readonly bodies: readonly string[];
  readonly results: Readonly<Record<string, JsonValue>>;
}

export interface Archived {
  readonly place: ArchivePlace | undefined;
  index(key: ConversationKey): Promise<readonly ArchiveRecord[]>;
  /** Those of `slots` that are there, by slot. */
  readEntries(key: ConversationKey, slots: readonly number[]): Promise<Map<number, Entry>>;
  /** The place of a stored result in the ledger. */
  standIn(id: string): JsonValue;
  isStandIn(result: JsonValue): boolean;
  /** The result that it stands for; any other as it is. */
  openResult(key: ConversationKey, effect: string, result: JsonValue): Promise<JsonValue>;
  /** On the place, read back and in the index, once it resolves (stores/written-before-removed). */
  write(key: ConversationKey, content: ToArchive): Promise<ArchiveRecord>;
  /** Takes an object of the life into the index that is not in it; false where it cannot be read. */
  adopt(key: ConversationKey, name: string): Promise<boolean>;
  /** (stores/goes-with-its-life) */
  removeLife(key: ConversationKey): Promise<void>;
  withLives<Storage extends { remove(key: ConversationKey, attempt: string): Promise<void> }>(storage: Storage): Storage;
  /** The same ports, which find there what the store has no more. */
  through<Ports extends { readonly entries: Entries; readonly bodies: Bodies }>(ports: Ports): Ports;
}
