/**
 * Ids of items are made of the call that stores them: every attempt at it, and healing, give the same. They are no content addresses;
 * the conversation goes in, so that shared memories do not mix theirs up.
 */
import { createHash } from 'node:crypto';
import type { ConversationKey } from '../../stores/store.js';

const HASH_CHARACTERS = 12;

/** `nth`: of several that one call stores; a tool's own result is 0. */
export function itemId({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>, callId: string, nth = 0): string {
  const hash = createHash('sha256').update(JSON.stringify([conversation, life, callId, nth]));
  return `mem_${hash.digest('hex').slice(0, HASH_CHARACTERS)}`;
}
