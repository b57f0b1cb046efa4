/** What was deleted is not gone on with, however much of it Temporal's history still has. */
import { LifeDeleted, type ConversationKey, type Store } from '../stores/store.js';

/** Throws LifeDeleted; `attempt` ends the sentence "cannot …". */
export async function refuseDeleted({ lives }: Pick<Store, 'lives'>, key: ConversationKey, attempt: string): Promise<void> {
  const tombstone = (await lives.deleted(key)).find(({ life }) => life === key.life);
  if (tombstone) throw new LifeDeleted(attempt, { conversation: key.conversation, at: tombstone.at });
}

export function describeDeleted(attempt: string, of: { readonly conversation: string; readonly at: number }): string {
  return new LifeDeleted(attempt, of).message;
}
