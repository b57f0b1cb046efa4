/** Facts: how they are learned, and what of the memory comes into a snapshot (seed 000, sections 5 and 19; order: design section 4). */
import { byAge, bySalience, type EpisodicItem, type SemanticItem } from '../records/memory/items.js';
import type { FactRecord, FactSource, ScopeKey, Store, ConversationKey } from '../stores/store.js';
import { isForgotten } from './documents/forgetting.js';

export const MAX_EPISODIC_ITEMS = 3;
export const MAX_SEMANTIC_ITEMS = 20;

interface MemoryBundle {
  /** Newest first. */
  readonly episodic: readonly EpisodicItem[];
  /** Most salient first, then newest. */
  readonly semantic: readonly SemanticItem[];
}

/** `episodes` are those of this conversation's session, `facts` those of its scope: which ones is the caller's choice. */
export function retrieve(
  episodes: readonly EpisodicItem[],
  facts: readonly SemanticItem[],
  {
    maxEpisodic = MAX_EPISODIC_ITEMS,
    maxSemantic = MAX_SEMANTIC_ITEMS,
  }: { readonly maxEpisodic?: number; readonly maxSemantic?: number } = {},
): MemoryBundle {
  return {
    episodic: episodes.toSorted(byAge).slice(0, maxEpisodic),
    semantic: facts.toSorted(bySalience).slice(0, maxSemantic),
  };
}

/** Facts on their way into a scope, from wherever they come: what is to stay forgotten does not get in (design section 4, Forgetting). */

/** As `Facts.add`. */
export async function learnFacts(
  store: Store,
  key: ScopeKey,
  batch: string,
  facts: readonly Omit<SemanticItem, 'id'>[],
  source: FactSource,
): Promise<FactRecord[]> {
  const tombstones = facts.length === 0 ? [] : await store.documents.forgotten(key);
  const left = facts.filter(({ fact }) => !isForgotten(fact, tombstones, key.scope));
  return store.facts.add(key, batch, left, source);
}

/** What one compaction learns is one batch: added twice, it counts once. */
export function factsBatch({ conversation, life }: ConversationKey, epoch: number): string {
  return `${conversation}/${life}/${epoch}`;
}
