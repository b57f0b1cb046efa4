/** What is forgotten or deleted leaves what is written down too, where its words have left hashes. The next search makes it anew. */
import type { ScopeKey, Store } from '../../stores/store.js';
import { keepVectorsOf } from './fill-vectors.js';

/** Idempotent. A worker that has it in memory still takes it out by itself, at its next search. */
export async function dropIndex({ scopes }: Pick<Store, 'scopes'>, key: ScopeKey): Promise<void> {
  const written = await scopes.readIndex(key);
  if (written !== undefined && written.length > 0) await scopes.writeIndex(key, new Uint8Array(0));
}

/** Of what was forgotten; those of what was deleted go with their life. Idempotent. */
export async function dropVectors(store: Store, key: ScopeKey): Promise<void> {
  const { lives } = await store.scopes.marks(key);
  for (const life of lives) await keepVectorsOf(store, life.key);
}
