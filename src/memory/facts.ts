/** Facts: how they are learned, and what of the memory comes into a snapshot (seed 000, sections 5 and 19; order: design section 4). */
import type { Replacement } from '../records/episodes.js';
import { byAge, type SemanticItem, MAX_EPISODIC_ITEMS, MAX_SEMANTIC_ITEMS, type ShownMemory } from '../records/memory/items.js';
import { foldEarlier, type FoldedEpisode, type MemoryBundle } from './compaction/snapshot.js';
import type { Summary } from './compaction/summary-answer.js';
import type { FactRecord, FactSource, ScopeKey, Store, ConversationKey } from '../stores/store.js';
import { isForgotten } from './documents/forgetting.js';

/** `episodes` are those of this conversation's session, `facts` those of its scope: which ones is the caller's choice. */
export function retrieve(
  episodes: readonly FoldedEpisode[],
  facts: readonly SemanticItem[],
  { maxEpisodic = MAX_EPISODIC_ITEMS, maxSemantic = MAX_SEMANTIC_ITEMS }: Partial<ShownMemory> = {},
): MemoryBundle {
  const newest = episodes.toSorted(byAge);
  const earlier = foldEarlier(newest, maxEpisodic);
  return {
    ...(earlier && { earlier }),
    episodic: newest.slice(0, maxEpisodic),
    semantic: mostRelevant(facts, maxSemantic),
  };
}

/** So many newer facts halve what a fact's salience counts. */
const HALVED_BY = 20;
/** Of the room: for the newest facts, however little they matter beside others. */
const NEWEST_SHARE = 1 / 4;

/** By salience, which counts less the more facts are newer; facts of one time are of one age. The newest are always among them. */
export function mostRelevant<Item extends SemanticItem>(facts: readonly Item[], most: number): Item[] {
  const newest = facts.toSorted(byAge);
  const newer = new Map<number, number>();
  for (const [at, { ts }] of newest.entries()) if (!newer.has(ts)) newer.set(ts, at);
  const weigh = ({ salience, ts }: Item): number => salience * 0.5 ** ((newer.get(ts) ?? 0) / HALVED_BY);
  const ranked = newest.toSorted((a, b) => weigh(b) - weigh(a) || byAge(a, b));
  const shown = new Set(newest.slice(0, Math.ceil(most * NEWEST_SHARE)));
  for (const fact of ranked) if (shown.size < most) shown.add(fact);
  return ranked.filter((fact) => shown.has(fact));
}

// Facts on their way into a scope, from wherever they come: what is to stay forgotten does not get in (design section 4, Forgetting).

/** As `Facts.add`. */
export async function learnFacts(
  store: Store,
  key: ScopeKey,
  batch: string,
  facts: readonly Omit<SemanticItem, 'id'>[],
  source: FactSource,
  replaced: readonly Replacement[] = [],
): Promise<FactRecord[]> {
  const tombstones = facts.length === 0 ? [] : await store.documents.forgotten(key);
  const left = facts.filter(({ fact }) => !isForgotten(fact, tombstones, key.scope));
  return store.facts.add(key, batch, left, source, replaced);
}

/** What a summary says of facts that are known, by their words: numbers may be other ones in a store that was healed. */
export function listReplacements(
  { semantic, retired = [] }: Pick<Summary, 'semantic' | 'retired'>,
  known: readonly Pick<SemanticItem, 'id' | 'fact'>[],
  ts: number,
): Replacement[] {
  const factById = new Map(known.map(({ id, fact }) => [id, fact]));
  const replaced = (ids: readonly string[], by: string | null): Replacement[] =>
    ids.flatMap((id) => {
      const fact = factById.get(id);
      return fact === undefined ? [] : [{ fact, by, ts }];
    });
  return [...semantic.flatMap(({ fact, supersedes = [] }) => replaced(supersedes, fact)), ...replaced(retired, null)];
}

/** What one compaction learns is one batch: added twice, it counts once. */
export function factsBatch({ conversation, life }: ConversationKey, epoch: number): string {
  return `${conversation}/${life}/${epoch}`;
}
