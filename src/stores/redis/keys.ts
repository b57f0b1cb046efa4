/** Names of Redis keys. */
import type { AgentKey, ConversationKey, ScopeKey } from '../store.js';

/** All that there is of one life. */
export const KEY_NAMES = [
  'entries',
  'messages',
  'effects',
  'bodies',
  'feed',
  'feed-batches',
  'feed-ids',
  'archived',
  'episodes',
  'items',
  'lineage',
  'cuts',
  'forks',
] as const;
export type KeyName = (typeof KEY_NAMES)[number];
export type ScopeKeyName = 'facts' | 'removed-facts' | 'memory' | 'changes' | 'history' | 'history-order' | 'proposals' | 'forgotten';

/** Only the conversation may hold colons (ids of children do), so that no two keys have one name. */
export function keyOf(key: ConversationKey, what: KeyName): string {
  return `${beginningOf(key.namespace, key.conversation)}${escaped(key.life, /[%{}:\s]/g)}:${what}`;
}

/** For SCAN: every key of a conversation, whatever its life. */
export function scanPatternOf(namespace: string, conversation: string): string {
  return `${beginningOf(namespace, conversation).replace(/[\\*?[\]]/g, '\\$&')}*`;
}

/** Of a key that `keyOf` has made. */
export function lifeInKey(name: string): string {
  return decodeURIComponent(name.split('}:')[1]?.split(':')[0] ?? '');
}

export function scopeKeyOf({ namespace, scope }: ScopeKey, what: ScopeKeyName): string {
  return `perdura:{m:${escaped(namespace, /[%{}:\s]/g)}:${escaped(scope, /[%{}:\s]/g)}}:${what}`;
}

export function pinsKeyOf({ namespace, agent }: AgentKey): string {
  return `perdura:{p:${escaped(namespace, /[%{}:\s]/g)}:${escaped(agent, /[%{}:\s]/g)}}:pins`;
}

function beginningOf(namespace: string, conversation: string): string {
  return `perdura:{c:${escaped(namespace, /[%{}:\s]/g)}:${escaped(conversation, /[%{}\s]/g)}}:`;
}

function escaped(part: string, unwanted: RegExp): string {
  return part.replace(unwanted, (character) => encodeURIComponent(character));
}
