/** What of the memory comes into a snapshot (seed 000, sections 5 and 19; order: design section 4). */
import { byAge, bySalience, type EpisodicItem, type SemanticItem } from '../records/memory/items.js';

export const MAX_EPISODIC_ITEMS = 3;
export const MAX_SEMANTIC_ITEMS = 20;

export interface MemoryBundle {
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
