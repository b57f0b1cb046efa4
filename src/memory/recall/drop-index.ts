/** What is forgotten or deleted leaves what is written down too, where its words have left hashes. */
import type { ScopeKey, Store } from '../../stores/store.js';
import { keepLifeVectors } from './embed-missing.js';
import { ScopeIndex } from './scope-index.js';
import { HEAD, PartLost } from './segments.js';

/** The next search makes it anew. Idempotent. A worker that has it in memory still takes it out by itself, at its next search. */
export async function dropIndex({ scopes }: Pick<Store, 'scopes'>, key: ScopeKey): Promise<void> {
  await scopes.removeIndex(key, await scopes.indexParts(key));
}

/** After a life was deleted. A large index is not made anew for one life: it is taken out of its parts. Idempotent. */
export async function dropDeleted(store: Store, key: ScopeKey): Promise<void> {
  const parts = await store.scopes.indexParts(key);
  if (parts.every((part) => part === HEAD)) return dropIndex(store, key);
  const index = new ScopeIndex({ store, key, cacheBytes: Infinity });
  const isWritten = await index.update().then(
    () => index.write({ isKept: true }),
    (error: unknown) => {
      if (error instanceof PartLost) return false;
      throw error;
    },
  );
  if (!isWritten) await dropIndex(store, key);
}

/** Of what was forgotten; those of what was deleted go with their life. Idempotent. */
export async function dropVectors(store: Store, key: ScopeKey): Promise<void> {
  const { lives } = await store.scopes.marks(key);
  for (const life of lives) await keepLifeVectors(store, life.key);
}
