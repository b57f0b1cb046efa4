/** Names of Redis keys. */
import type { AgentKey, ConversationKey, ScopeKey } from './store.js';

export type KeyName = 'entries' | 'messages' | 'effects' | 'bodies' | 'feed' | 'feed-batches' | 'archived' | 'episodes' | 'items';
export type ScopeKeyName = 'facts' | 'fact-index' | 'memory' | 'changes' | 'history' | 'history-order' | 'proposals' | 'forgotten';

/** Only the conversation may hold colons (ids of children do), so that no two keys have one name. */
export function keyOf(key: ConversationKey, what: KeyName): string {
  return `perdura:{c:${escaped(key.namespace, /[%{}:\s]/g)}:${escaped(key.conversation, /[%{}\s]/g)}}:${escaped(key.life, /[%{}:\s]/g)}:${what}`;
}

export function scopeKeyOf({ namespace, scope }: ScopeKey, what: ScopeKeyName): string {
  return `perdura:{m:${escaped(namespace, /[%{}:\s]/g)}:${escaped(scope, /[%{}:\s]/g)}}:${what}`;
}

export function pinsKeyOf({ namespace, agent }: AgentKey): string {
  return `perdura:{p:${escaped(namespace, /[%{}:\s]/g)}:${escaped(agent, /[%{}:\s]/g)}}:pins`;
}

function escaped(part: string, unwanted: RegExp): string {
  return part.replace(unwanted, (character) => encodeURIComponent(character));
}
