/**
 * Where bytes live. Narrow ports; Redis and files implement them under one contract test (`test/stores/contract.ts`).
 *
 * @rule stores/idempotent-writes: Every write is idempotent by its id: the same write again, at any time, changes nothing. (test:
 *   test/stores/contract.ts)
 * @rule stores/rejected-is-unknown: A rejected promise means *unknown outcome*: the write may have been applied. Callers write again.
 *   (test: test/stores/redis/redis.test.ts)
 * @rule stores/commit-whole: `commit` is one atomic write: result, entries and items are all there or all not. (test:
 *   test/stores/file/file.test.ts)
 * @rule stores/fenced-gains-nothing: A fenced effect never gains entries. (test: test/stores/contract.ts)
 * @rule stores/foreign-is-skipped: Foreign or damaged data is skipped and counted, and never fails a reader of something else. (test:
 *   test/stores/file/file.test.ts)
 */
import type { Beginning, Claim, Cut, LifeName } from '../records/slots.js';
import type { Entry, JsonValue } from '../records/message.js';
import type { TurnEnd } from '../records/turn-end.js';
import type { ItemRecord } from '../records/memory/agent-memory.js';
import type { Amount, Limit, Room, RoomClaim } from '../records/shared-budget.js';
import type { Spending, Spent } from '../records/spending.js';
import type { Period, PeriodSums } from '../records/tenant-budget.js';
import type { Documents, Episodes, Facts, Items, Scopes, Vectors } from './memory-ports.js';
import type { Archived, Bodies, Contents, Entries, Recording } from './whole-ports.js';
import type { AgentKey, ConversationKey, ConversationName, DeletedLife, ScopeKey, SignInOwner, UploadOwner } from './names.js';
import type { RateLimits } from './rate-limits.js';

export type { LifeName };
export type { AgentKey, ConversationKey, ConversationName, DeletedLife, ScopeKey, SignInOwner, UploadOwner };
export type * from './memory-ports.js';
export type { Outcome, RateLimits, Taken, LimitClaim, LimitState } from './rate-limits.js';
export type * from './whole-ports.js';

export interface Store {
  readonly kind: 'redis' | 'file';
  /** Where it is, for people: no password in it. */
  readonly where: string;
  /** Six characters that it was given when it was first opened: the same at every address by which it is reached. */
  id(): Promise<string>;
  readonly entries: Entries;
  readonly bodies: Bodies;
  readonly items: Items;
  readonly effects: Effects;
  readonly spendings: Spendings;
  readonly budgets: Budgets;
  readonly rateLimits: RateLimits;
  readonly tenantSpendings: TenantSpendings;
  readonly writes: Writes;
  readonly lives: Lives;
  readonly turnEnds: TurnEnds;
  readonly feed: Feed;
  readonly episodes: Episodes;
  readonly facts: Facts;
  readonly documents: Documents;
  readonly pins: Pins;
  readonly signIns: SignIns;
  readonly scopes: Scopes;
  readonly vectors: Vectors;
  readonly uploads: Uploads;
  /** For copies of all that it has. */
  readonly contents: Contents;
  /** What of it is in an archive. */
  readonly archived: Archived;
  /**
   * Writes again, with the newest key, what is plain or of an older key, while others write. Live events and the index for search, which
   * are made again, are removed instead. A second run finds nothing. Throws StoreUnavailable where a key is missing.
   */
  reseal(): AsyncIterable<Resealed>;
  /** What a person should know about this store's settings (AOF off, eviction on, …); throws StoreUnavailable when it does not answer. */
  check(): Promise<string[]>;
  close(): Promise<void>;
}

/** One place of a store whose content was encrypted anew. */
export interface Resealed {
  /** A key of Redis, or a folder. */
  readonly place: string;
  /** Values that were written again. */
  readonly values: number;
  /** Values that another writer changed meanwhile: the next run finds whether with the newest key. */
  readonly left: number;
}

/**
 * How lives share entries. `entries.read`, `entries.page` and `bodies.get` of a life with a beginning answer with what it shares
 * as if that were part of it; `archived` has those of the beginning from the start.
 */
export interface Lives {
  /** Once: the first one counts. The lives that it shares entries with know of it from then on. */
  begin(key: ConversationKey, beginning: Beginning): Promise<void>;
  beginning(key: ConversationKey): Promise<Beginning | undefined>;
  /** Lives that share entries of this one. */
  forks(key: ConversationKey): Promise<LifeName[]>;
  /** Once per `cut.id`: the first one counts. Entries that are cut are read as before. */
  cut(key: ConversationKey, cut: Cut): Promise<void>;
  /** In the order of their branches. */
  cuts(key: ConversationKey): Promise<Cut[]>;
  /** Entries of this life that a consolidation has taken up, once per `claim.id`: the first one counts. */
  claim(key: ConversationKey, claim: Claim): Promise<void>;
  claims(key: ConversationKey): Promise<readonly Claim[]>;
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
  /**
   * Everything of one life, and nothing else: what it shared stays. What is not there is no error. The caller checks that no other life
   * shares it.
   */
  delete(key: ConversationKey): Promise<void>;
  /**
   * Tombstones, once per life. From then on nothing begins with what that life has, and what a late worker writes to it is removed
   * again and throws LifeDeleted. They outlast `delete`, and have no word of a message.
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

/** The claim under which an effect is done. `hash` is of its request: the same id with another hash is a conflict. */
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

/** Records that are written together with an effect's result. */
export interface CommitExtras {
  /** Written also when fenced: it was paid for. */
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
  /** For work without a result here: an attempt that failed, a question beside the answer. Once per id: the first one counts. */
  spend(key: ConversationKey, id: string, spending: Spending): Promise<void>;
}

/** Costs: written with effects, gone with their life. */
export interface Spendings {
  /** Of all conversations, in no order; one that cannot be read is left out (stores/foreign-is-skipped). */
  all(of: { readonly namespace: string }): AsyncIterable<Spent>;
}

/** What the conversations of each tenant have used, a day and a month at a time (records/tenant-budget.ts). */
export interface TenantSpendings {
  /** Counts a call, once per `id`, and answers with the sums of the day and the month of `at`, in epoch milliseconds. */
  add(owner: UploadOwner, id: string, at: number, amount: Amount): Promise<PeriodSums>;
  read(owner: UploadOwner, at: number): Promise<PeriodSums>;
  /** That `mark` percent of a budget were used was told. */
  tell(owner: UploadOwner, period: Period, name: string, mark: number): Promise<void>;
}

/** Budgets that hold for a tree of conversations (records/shared-budget.ts): `key` is of the one that has the budget. */
export interface Budgets {
  /** Room for one call: once per `claim.id`, however often it is claimed. */
  reserve(key: ConversationKey, claim: RoomClaim): Promise<Room>;
  /**
   * Adds a call's cost, once per id, and frees its reservation. Without `member` no conversation reports it again
   * (records/budget-comes-back).
   */
  settle(key: ConversationKey, id: string, amount: Amount, member?: string): Promise<void>;
  /** For a call that was not made, or failed. A missing one is no error. */
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

/** Live events beside Temporal: lost with the store, bounded, never the truth. `cursor` is the feed's, opaque and ordered. */
export interface Feed {
  publish(key: ConversationKey, events: readonly LiveEvent[]): Promise<void>;
  /** The cursor of the latest event, "0" where there is none: reading after it misses nothing that is published from now on. */
  newest(key: ConversationKey): Promise<string>;
  /**
   * Events after `after` ("0" = from the oldest, "$" = from now on), then live ones, until `signal` aborts (then it ends
   * without error). When events after `after` were trimmed it first yields `{ cursor, event: { kind: 'resync' } }`.
   */
  read(key: ConversationKey, after: string, signal: AbortSignal): AsyncIterable<{ readonly cursor: string; readonly event: JsonValue }>;
}

/** The accepted description of one tool of a server, and its SHA-256. */
export interface ToolPin {
  readonly server: string;
  readonly tool: string;
  readonly hash: string;
  readonly text: string;
}

/**
 * The tools of an agent's MCP servers that were accepted: those that a server has when it is first seen, and from then on those that a
 * person accepts. What it adds or changes later waits.
 */
export interface Pins {
  list(key: AgentKey): Promise<ServerPins>;
  /** The first acceptance of a server, with the tools that it has then. Changes nothing where the server was accepted before. */
  acceptServer(key: AgentKey, server: string, pins: readonly ToolPin[]): Promise<void>;
  /** In the place of what was accepted, and of what waited: a person's word. Of two the last one written counts. */
  accept(key: AgentKey, pins: readonly ToolPin[]): Promise<void>;
  /** What waits of a server now, in the place of what waited before. */
  wait(key: AgentKey, server: string, pins: readonly ToolPin[]): Promise<void>;
}

export interface ServerPins {
  readonly accepted: readonly ToolPin[];
  /** For people to look at, as a worker saw it last. Nothing of it reaches a model. */
  readonly waiting: readonly ToolPin[];
  /** Those that were accepted, also without any tool. */
  readonly servers: readonly string[];
}

/** What MCP servers have given for a scope or a tenant when a person signed in: sealed by who writes it. */
export interface SignIns {
  read(of: SignInOwner, id: string): Promise<string | undefined>;
  /** Compare and set: `decide` is called again where another writer came first. Undefined leaves it as it is, '' takes it away. */
  change(of: SignInOwner, id: string, decide: (sealed: string | undefined) => string | undefined): Promise<void>;
  /** All of an owner; answers how many there were. */
  removeAll(of: SignInOwner): Promise<number>;
}

/** A life of a conversation whose body `ref` the file is, as base64. */
export interface UploadUse {
  readonly conversation: string;
  readonly life: string;
  readonly scope: string;
  readonly ref: string;
}

/** A file of a conversation: a name that its bytes alone have, how many are stored, and how many its tenant may keep in all. */
export interface CountedFile {
  readonly file: string;
  readonly size: number;
  readonly limit: number;
  /** Of one life: all of them are in one record, which each count reads and writes. */
  readonly maxFiles: number;
}

export interface Upload {
  readonly id: string;
  /** By its content. */
  readonly mediaType: string;
  /** In bytes. */
  readonly size: number;
  readonly sha256: string;
  /** When it was sent last, and from when it is not there, in milliseconds since 1970. */
  readonly at: number;
  readonly expiresAt: number;
  /** Newest first; of very many the newest. */
  readonly uses: readonly UploadUse[];
}

/** A file that is arriving: no one finds it until `keep`, and what is left of one whose writer died goes by itself. */
export interface UploadDraft {
  append(bytes: Uint8Array): Promise<void>;
  /** The file is there from now on, under `upload.id`; of one that was there before, the bytes are there again and its uses stay. */
  keep(upload: Omit<Upload, 'uses'>): Promise<void>;
  discard(): Promise<void>;
}

/**
 * Files that were sent before a message names them. The bytes of one are here until a conversation uses it; from then on they are that
 * conversation's body, and go with it. An expired file is not there, whether or not it was removed already.
 */
export interface Uploads {
  begin(owner: UploadOwner): Promise<UploadDraft>;
  find(owner: UploadOwner, id: string): Promise<Upload | undefined>;
  /** Undefined where they were used, or are damaged. */
  bytes(owner: UploadOwner, id: string): Promise<Buffer | undefined>;
  /** A conversation has the bytes: they are no longer here. `expiresAt` only ever moves on. What is not there is no error. */
  use(owner: UploadOwner, id: string, use: UploadUse, expiresAt: number): Promise<void>;
  /**
   * Counts what a conversation is about to keep, once per `file` of a life, for the tenant of its scope. `full`: with it more than `limit`
   * bytes would be kept; `many`: the life has `maxFiles` already. Then nothing was counted.
   */
  count(key: ConversationKey, wanted: CountedFile): Promise<{ readonly status: 'counted' | 'full' | 'many'; readonly kept: number }>;
  /** Bytes that the conversations of an owner keep, as they were counted. */
  kept(owner: UploadOwner): Promise<number>;
  /** What that life has kept counts no more. */
  release(key: ConversationKey): Promise<void>;
  /** Bytes that the store takes before it is so full that it should take no more files; Infinity where it cannot say. */
  room(): Promise<number>;
  /** Those of an owner that no conversation has used. */
  waiting(owner: UploadOwner): Promise<{ readonly count: number; readonly bytes: number }>;
  /** Removes what has expired, of all owners; answers how many. */
  sweep(): Promise<number>;
  /**
   * All of an owner; with `scope` only the records of files that no conversation of another scope has used: whose a file is that waits is
   * not known before. Answers how many files there were.
   */
  erase(owner: UploadOwner, scope?: string): Promise<number>;
}

/** The longest MEMORY.md that is read or written, in bytes. */
export const MAX_MEMORY = 1024 * 1024;

/** The store cannot be reached or does not take writes; trying again later may help. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/**
 * The stored MEMORY.md or HISTORY cannot be used, and a person must repair it: the message states which and how. Trying again does not
 * help.
 */
export class DocumentRefused extends Error {
  override readonly name = 'DocumentRefused';
}

/** The life was deleted: nothing is read or written for it any more. Trying again does not help. */
export class LifeDeleted extends Error {
  override readonly name = 'LifeDeleted';
  constructor(attempt: string, { conversation, at }: { readonly conversation: string; readonly at: number }) {
    super(`cannot ${attempt}: ${conversation} was deleted on ${new Date(at * 1000).toISOString()}; what it had cannot be brought back`);
  }
}
