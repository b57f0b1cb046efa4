/**
 * Small collections: records that are read whole, and changed by compare-and-set. A file and a Redis hash are two of these, so that what
 * a collection means is written once.
 *
 * - `decide` sees the records and answers with their replacements. The change is made only if none of the records it touches has changed
 *   meanwhile; otherwise `decide` runs again.
 * - A `decide` that finds its own work done answers undefined: then the same call again changes nothing (stores/idempotent-writes).
 * - A foreign record is counted, and stays where it is; in Redis until a record of its id is written, a newer one also then.
 */
import type { AgentKey, ConversationKey, ConversationName, ScopeKey } from '../store.js';

export type Place =
  | { readonly name: 'episodes' | 'lineage' | 'cuts' | 'forks' | 'turn-ends'; readonly key: ConversationKey }
  | { readonly name: 'deleted'; readonly key: ConversationName }
  | { readonly name: 'facts' | 'removed-facts' | 'proposals' | 'forgotten'; readonly key: ScopeKey }
  | { readonly name: 'pins'; readonly key: AgentKey };

export interface RecordCodec<Item> {
  readonly idOf: (item: Item) => string;
  readonly encode: (item: Item) => string;
  readonly decode: (text: string) => Item | undefined;
}

export interface Records<Item> {
  readonly items: readonly Item[];
  /** Records that are not ours; 1 for something else in the collection's place. */
  readonly skipped: number;
}

/** `taken` are the ids of records that are not ours, where the store knows them. */
export type Decide<Item> = (items: readonly Item[], taken: readonly string[]) => Decision<Item> | Promise<Decision<Item>>;
/** All items, those that stay being the very ones that were given; undefined leaves everything as it is. */
type Decision<Item> = readonly Item[] | undefined;

/** `attempt` ends the sentence "cannot …" of a StoreUnavailable. */
export interface Collection<Item> {
  /** `refuse`: throws where something else is in the collection's place, for what must not be taken for empty. */
  read(attempt: string, foreign?: 'skip' | 'refuse'): Promise<Records<Item>>;
  change(attempt: string, decide: Decide<Item>): Promise<void>;
}

export type OpenCollection = <Item extends object>(place: Place, codec: RecordCodec<Item>) => Collection<Item>;

/** Adds a record whose id is not there yet: the first one counts. */
export function addOnce<Item>(collection: Collection<Item>, idOf: (item: Item) => string, attempt: string, item: Item): Promise<void> {
  return collection.change(attempt, (items) => (items.some((one) => idOf(one) === idOf(item)) ? undefined : [...items, item]));
}
