import type { ConversationKey } from '../stores/store.js';

/** What one compaction learns is one batch: added twice, it counts once. */
export function factsBatch({ conversation, life }: ConversationKey, epoch: number): string {
  return `${conversation}/${life}/${epoch}`;
}
