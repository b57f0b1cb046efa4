import { createHash } from 'node:crypto';
import type { ConversationIdentity } from '../conversation/effects.js';
import type { ConversationKey } from '../stores/store.js';

export function keyOf({ namespace, conversation, life, scope }: ConversationIdentity): ConversationKey {
  return { namespace, conversation, life, scope };
}

/** Of an effect's request: the same id with another hash is a conflict, never an answer. */
export function hashOf(request: unknown): string {
  return createHash('sha256').update(JSON.stringify(request)).digest('hex');
}
