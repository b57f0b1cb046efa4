/** The state that a conversation begins with, of a start that was checked. A sub-agent begins with its task, which is its one turn. */
import { apply } from './apply.js';
import { withOrigin } from './lineage/lineage.js';
import type { ReadStart } from './protocol/input.js';
import { openConversation, type ConversationState } from './state.js';

export function openStarted(
  { agent, scope, delegation, origin, tenant: _tenant, publicId: _publicId, ...rest }: ReadStart,
  first: { readonly conversation: string; readonly life: string; readonly rules: number; readonly at: number },
): ConversationState {
  const { conversation, life, rules, at } = first;
  const opened = openConversation({ ...rest, identity: { life, agent, scope }, conversation, delegation, rules, at });
  if (!delegation) return origin === null ? opened : withOrigin(opened, origin);
  const asked = apply(opened, { kind: 'message-received', messageId: 'task', text: delegation.task, delivery: 'queue', at });
  return apply(asked, { kind: 'close-requested', at });
}
