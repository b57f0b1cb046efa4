/**
 * The fourth channel's words (seed 003, "Memory Interface"): a store of contents beside the conversation, which the model reaches by
 * tools alone. What the stores keep is an `ItemRecord`; its content is a body, by reference.
 */
import { z } from 'zod';
import type { JsonValue } from '../message.js';

export const ITEM_TYPES = ['action_result', 'web_content', 'database_result', 'custom'] as const;
export type MemoryItemType = (typeof ITEM_TYPES)[number];

/** Their results are contents of the memory already, and are not stored again. */
export const MEMORY_TOOLS: readonly string[] = ['store_in_memory', 'retrieve_from_memory', 'query_memory'];

export const TRANSFORM_TYPES = ['full', 'excerpt', 'summary', 'first_n', 'last_n', 'filtered'] as const;

/** How many a query answers with where it does not say. */
export const DEFAULT_LIMIT = 10;
export const MAX_FOUND = 50;

/** What is known of an item. */
export interface MemoryItemMetadata {
  /** Name of the tool, or who stored it. */
  readonly source: string;
  readonly timestamp: Date;
  /** Characters of the content as JSON, as the seed counts. */
  readonly size: number;
  readonly tags?: readonly string[];
  /** Ids of other items. */
  readonly relatedTo?: readonly string[];
}

/** An item without its content. */
export interface MemoryItemHead {
  readonly id: string;
  readonly type: MemoryItemType;
  readonly metadata: MemoryItemMetadata;
}

/** An item of the memory channel with its content. */
export interface MemoryItem extends MemoryItemHead {
  /** After a transform: what it has made of the content, as text. */
  readonly content: JsonValue;
}

/** Before it has an id; what is left out of the metadata is filled in. */
export interface NewMemoryItem {
  /** Default: custom. */
  readonly type?: MemoryItemType;
  readonly content: JsonValue;
  readonly metadata?: Partial<MemoryItemMetadata>;
}

/** What an excerpt is counted in. */
export type TransformUnit = 'characters' | 'lines' | 'items';

/** What `retrieve` is to make of a content. */
export interface MemoryTransform {
  readonly type: (typeof TRANSFORM_TYPES)[number];
  readonly params?: {
    /** `excerpt`, `first_n`, `last_n`: how many. */
    readonly n?: number;
    /** How many are passed over first; for `last_n` from the end. */
    readonly offset?: number;
    readonly unit?: TransformUnit;
    /** `filtered`: lines with this text, in upper or lower case. */
    readonly match?: string;
    /** `filtered`: what lies there in the content's JSON. */
    readonly path?: string;
    /** `summary`: what it is wanted for. */
    readonly goal?: string;
  };
}

/** Which items `query` is to find: those that fit all of it. */
export interface MemoryCriteria {
  readonly type?: string;
  readonly source?: string;
  /** Items that have all of them. */
  readonly tags?: readonly string[];
  readonly timeRange?: { readonly start: Date; readonly end: Date };
  /** Default 10, at most 50. */
  readonly limit?: number;
}

/** By reference, so that it is small: contents are read from where they lie when it is restored. */
export interface MemorySnapshot {
  readonly v: 1;
  readonly from: ItemPlace;
  readonly items: readonly ItemRecord[];
}

/** Whose items: one session of one life of a conversation. */
export interface ItemPlace {
  readonly namespace: string;
  readonly scope: string;
  readonly conversation: string;
  readonly life: string;
  readonly session: number;
}

/** The memory channel (seed 003): items that tools and agents store in a session. */
export interface AgentMemory {
  /** Answers with the item's id. */
  store(item: NewMemoryItem): Promise<string>;
  /** Null where there is no such item. Throws TransformRefused for one that cannot be made. */
  retrieve(id: string, transform?: MemoryTransform): Promise<MemoryItem | null>;
  /** Newest first, never with their contents. Throws TypeError for criteria that there are not. */
  query(criteria?: MemoryCriteria): Promise<MemoryItemHead[]>;
  /** What is cleared does not come back by a repeated store. */
  clear(): Promise<void>;
  /** All of it, to be handed to `restore`. */
  snapshot(): Promise<MemorySnapshot>;
  /** Adds the snapshot's items to those that are there, under the ids that they have. Throws for another scope's. */
  restore(snapshot: MemorySnapshot): Promise<void>;
}

/** When items were removed: in that call, or else at that time. `slot` and `ts` as those of an item. */
export interface RemovedAt extends Pick<ItemRecord, 'slot' | 'ts'> {}

/** A transform that this content does not have, in words for the model. */
export class TransformRefused extends Error {
  override readonly name = 'TransformRefused';
}

const texts = z.array(z.string());

export const itemRecordSchema = z.object({
  v: z.literal(1),
  id: z.string().regex(/^mem_[A-Za-z0-9_]{1,64}$/),
  session: z.int(),
  /**
   * Of the result of the call that stored it, among the entries of its place; of a sub-agent's the result of the call that began it; absent
   * where none did.
   */
  slot: z.int().optional(),
  /** Of a sub-agent's, below the call in `slot`: the results of the calls down to the one that stored it, each in the life of its conversation. */
  calls: z.array(z.object({ life: z.string(), slot: z.int() })).optional(),
  type: z.enum(ITEM_TYPES),
  /** Where its body lies; `json`: the body is JSON, else it is the text itself. */
  content: z.object({ ref: z.string(), bytes: z.int(), json: z.boolean() }),
  /** Epoch seconds. */
  ts: z.number(),
  source: z.string(),
  size: z.int(),
  tags: texts,
  relatedTo: texts,
});

/** An item of the memory channel as stores keep it. */
export type ItemRecord = Readonly<z.output<typeof itemRecordSchema>>;

/** Newest first; of the same time by id. */
export function byTime(a: ItemRecord, b: ItemRecord): number {
  return b.ts - a.ts || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

/** `a, b` as words. */
export function splitAtCommas(text: JsonValue | undefined): string[] {
  return typeof text === 'string' ? text.split(',').flatMap((word) => (word.trim() === '' ? [] : [word.trim()])) : [];
}
