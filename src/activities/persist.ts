import type { ConversationIdentity } from '../conversation/effects.js';
import type { Entry } from '../conversation/message.js';
import { keepItems } from '../memory/channel/items-of-entries.js';
import type { Store } from '../stores/store.js';
import { keyOf } from './key.js';

export interface PersistInput {
  readonly identity: ConversationIdentity;
  readonly entries: readonly Entry[];
}

/** Writes what the store could not take when it was made; what it took after all stays as it is. */
export async function persist(store: Store, { identity, entries }: PersistInput): Promise<void> {
  const key = keyOf(identity);
  await store.entries.append(key, entries);
  await keepItems(store, key, entries);
}
