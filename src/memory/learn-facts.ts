/** Facts on their way into a scope, from wherever they come: what is to stay forgotten does not get in (design section 4, Forgetting). */
import type { FactRecord, FactSource, ScopeKey, Store } from '../stores/store.js';
import { isForgotten } from './documents/forgetting.js';
import type { SemanticItem } from '../records/memory/items.js';

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
