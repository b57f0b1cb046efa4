import type { ConversationKey } from '../../stores/store.js';

/** The same for all that one request leads to: its entries in HISTORY, its write of MEMORY.md. */
export function consolidationId({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>, requestId: string): string {
  return `${conversation}/${life}/${requestId}`;
}
