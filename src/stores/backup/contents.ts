/**
 * What copies and archives of a store need beyond the ports that conversations use: all that one life has of its own, and the small
 * collections as they are. A copy is of records, and of no keys or files, so that each kind of store takes what another one had.
 *
 * Not copied, because it is made again or ends by itself: live events, indexes for search, leases, and files that no message has used yet.
 */
import type { Beginning, Claim, Cut } from '../../records/slots.js';
import type { JsonValue } from '../../records/message.js';
import type { Spending } from '../../records/spending.js';
import { BUDGET } from '../collections/budgets.js';
import type { OpenCollection, RecordCodec } from '../collections/collection.js';
import { ITEMS } from '../collections/items.js';
import { BEGINNINGS, CLAIMS, CUTS, DELETED, ENDS, FORKS } from '../collections/lives.js';
import { PINNED, SIGN_INS } from '../collections/mcp-servers.js';
import { EPISODES, FACTS, REMOVED, VECTORS } from '../collections/memory.js';
import { FORGOTTEN, PROPOSALS } from '../collections/proposals.js';
import type { ToArchive } from '../archive/archived.js';
import type { AgentKey, Bodies, ConversationKey, ConversationName, Entries, SignInOwner } from '../store.js';

/** What the ledger has of one effect, and what was spent. */
export type LedgerRecord =
  | { readonly kind: 'committed'; readonly id: string; readonly hash: string; readonly result: JsonValue }
  | { readonly kind: 'reserved'; readonly id: string; readonly hash: string; readonly attempts: readonly string[] }
  | { readonly kind: 'fenced'; readonly id: string }
  | { readonly kind: 'spent'; readonly id: string; readonly spending: Spending };

/** What has records of its own beside scopes and lives. */
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

type Codec = RecordCodec<object>;
// Each is used with what it has decoded itself.
const codec = <Item extends object>(of: RecordCodec<Item>): Codec => of as unknown as Codec;

/** Collections of a life that are copied record by record. */
export const COPIED_OF_LIFE = {
  lineage: codec<Beginning>(BEGINNINGS),
  forks: codec(FORKS),
  cuts: codec<Cut>(CUTS),
  claims: codec<Claim>(CLAIMS),
  'turn-ends': codec(ENDS),
  episodes: codec(EPISODES),
  items: codec(ITEMS),
  budget: codec(BUDGET),
  vectors: codec(VECTORS),
} as const;

/** Of a scope. */
export const COPIED_OF_SCOPE = {
  proposals: codec(PROPOSALS),
  forgotten: codec(FORGOTTEN),
  facts: codec(FACTS),
  'removed-facts': codec(REMOVED),
} as const;

export const COPIED_BY_NAME = { deleted: codec(DELETED), pins: codec(PINNED), 'sign-ins': codec(SIGN_INS) } as const;
