/** Small collections as their users see them (collection.ts has what they mean). */
import type { AgentKey, ConversationKey, ConversationName, ScopeKey, SignInOwner, UploadOwner } from '../names.js';

export type Place =
  | {
      readonly name:
        'episodes' | 'lineage' | 'cuts' | 'claims' | 'forks' | 'turn-ends' | 'budget' | 'items' | 'vectors' | 'counted-by' | 'archives';
      readonly key: ConversationKey;
    }
  | { readonly name: 'deleted'; readonly key: ConversationName }
  | { readonly name: 'facts' | 'removed-facts' | 'proposals' | 'forgotten'; readonly key: ScopeKey }
  | { readonly name: 'upload'; readonly key: UploadOwner & { readonly id: string } }
  | { readonly name: 'waiting-uploads' | 'kept-files' | 'tenant-spendings'; readonly key: UploadOwner }
  | { readonly name: 'pins'; readonly key: AgentKey }
  | { readonly name: 'sign-ins'; readonly key: SignInOwner };

export interface RecordCodec<Item> {
  readonly identify: (item: Item) => string;
  readonly encode: (item: Item) => string;
  readonly decode: (text: string) => Item | undefined;
  /** Epoch milliseconds: a store may remove a collection when all its records have expired. */
  readonly expiresAt?: (item: Item) => number;
  /** What is stored as `encode` made it, where that is not what is stored itself. */
  readonly open?: (stored: string) => string;
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

/**
 * `attempt` ends the sentence "cannot …" of a StoreUnavailable. With `ids` the records of these ids are seen alone, however many there are.
 */
export interface Collection<Item> {
  /** `refuse`: throws where something else is in the collection's place, for what must not be taken for empty. */
  read(attempt: string, foreign?: 'skip' | 'refuse', ids?: readonly string[]): Promise<Records<Item>>;
  change(attempt: string, decide: Decide<Item>, ids?: readonly string[]): Promise<void>;
}

export type OpenCollection = <Item extends object>(place: Place, codec: RecordCodec<Item>) => Collection<Item>;
