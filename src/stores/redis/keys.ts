/**
 * The keys in Redis, and their content. Those of a life are
 * `perdura:{c:<namespace>:<conversation>}:<life>:<what>`; the hash tag keeps one conversation in one cluster slot. `<what>` is
 *
 *   entries   hash, slot -> entry, as JSON (codecs.ts); field `last` is the highest slot, `move` the
 *             highest number of an archiving or restoring, `away` how many entries an archive has
 *   messages  hash, message id -> "slot turn" of the first with that id
 *   effects   hash, `hash:<id>`, `attempts:<id>`, `result:<id>`, `fenced:<id>`
 *   spendings hash, id of an effect or of a failed attempt -> what it cost, as JSON (records/spending.ts)
 *   budget    hash, kind and id -> record of the ledger, as JSON (collections/budgets.ts)
 *   bodies    hash, SHA-256 -> text
 *   items     hash, id -> item of the memory channel, as JSON (collections/items.ts); `cited:<call>` -> what is shown for its result
 *   archived  set of slots, and of ranges `1-40` of those that another life has
 *   episodes  hash, id -> episode, as JSON (collections/memory.ts)
 *   lineage   hash, `beginning` -> where it begins
 *   cuts      hash, id -> what a rewind has cut
 *   forks     hash, `<conversation>/<life>` -> who shares its entries
 *   turn-ends hash, turn -> how it ended, where it has no whole answer
 *   vectors   hash, `[model, size, text]` as JSON -> vector, as JSON (collections/memory.ts)
 *   archives  hash, SHA-256 of an object of the archive -> what is in it, as JSON (archived.ts)
 *   feed      stream of live events; `feed-batches` and `feed-ids` remember what was published last
 *
 * and for what conversations of a scope share `perdura:{m:<namespace>:<scope>}:<what>`, where `<what>` is
 *
 *   facts       hash, id -> fact, as JSON (collections/memory.ts)
 *   removed-facts
 *               hash, id -> batches of a fact that is gone
 *   memory      hash, `text` and `version` of MEMORY.md, `sum` of what we wrote, `text:<version>`, `id:<write>` -> version
 *   changes     list of what changed it, oldest first
 *   history     hash, `last` number given, `entry:<number>`, `of:<kind>:<id>` -> number
 *   history-order
 *               sorted set, number by time in milliseconds
 *   proposals   hash, id -> proposal
 *   forgotten   hash, id -> tombstone
 *   lives       set of lives that have entries, each `[conversation, life]` as JSON
 *   written-lives
 *               sorted set of those that were written to, by the number of their last write
 *   erased      hash, life or run that may not write there any more -> when the scope was erased
 *   search-index
 *               set of the parts of the index for search (derived). `search-index:<part>` is a hash, number -> a piece of it,
 *               `pieces` how many; the next one is written beside it
 *
 * and for what is accepted of the MCP servers of an agent, and what waits for that, `perdura:{p:<namespace>:<agent>}:pins`, a hash, server
 * and tool -> pin; for what these have given when a person signed in, `perdura:{i:<namespace>:<owner>}:sign-ins`, a hash, server -> sealed.
 * Files that wait to be used are under `perdura:{u:<namespace>:<tenant>}:<what>`, each until it expires:
 *
 *   arriving:<uuid> bytes of what is being sent
 *   waiting:<id>    bytes of one that no conversation has used
 *   known:<id>      hash, id -> what it is, until when, and who has used it, as JSON (collections/uploads.ts)
 *   sizes           hash, id -> size of each that waits, and until when
 *   kept            hash, life -> files that it keeps and their sizes, and the sum of all; a life's `counted-by` says whose they are
 *   spent           hash, day or month -> what its calls have cost (collections/tenant-spendings.ts)
 *
 * Lives of a conversation that were deleted are named in `perdura:{c:<namespace>:<conversation>}:deleted`, a hash, life -> when, which
 * each script that writes to a life looks at.
 * The leases of workers are under `perdura:{w:<namespace>:<task queue>}:<what>` (leases.ts), limits of providers under
 * `perdura:{r:<provider/model#account>}:<what>` (redis-rate-limits.ts).
 * `perdura:store` is the name that the store gave itself; `perdura:wake:<id>` is a stream by which a reader of feeds wakes itself, and is
 * gone in a minute.
 */
import type { NamedPlace } from '../whole-ports.js';
import type { AgentKey, ConversationKey, ConversationName, ScopeKey, SignInOwner, UploadOwner } from '../store.js';

export const STORE_KEY = 'perdura:store';
export const WAKE_KEY = 'perdura:wake';

/** All that there is of one life. */
export const KEY_NAMES = [
  'entries',
  'messages',
  'effects',
  'spendings',
  'budget',
  'bodies',
  'feed',
  'feed-batches',
  'feed-ids',
  'archived',
  'episodes',
  'items',
  'lineage',
  'cuts',
  'claims',
  'forks',
  'turn-ends',
  'vectors',
  'counted-by',
  'archives',
] as const;
export type KeyName = (typeof KEY_NAMES)[number];
export const SCOPE_KEY_NAMES = [
  'facts',
  'removed-facts',
  'memory',
  'changes',
  'history',
  'history-order',
  'proposals',
  'forgotten',
  'lives',
  'written-lives',
  'search-index',
] as const;
export type ScopeKeyName = (typeof SCOPE_KEY_NAMES)[number];

/** Only the conversation may hold colons (ids of children do), so that no two keys have one name. */
export function lifeKey(key: ConversationKey, what: KeyName): string {
  return `${conversationPrefix(key.namespace, key.conversation)}${escaped(key.life, /[%{}:\s]/g)}:${what}`;
}

/** For SCAN: every key of a conversation, of any life, or those of the sub-agents below it. */
export function scanPattern({ namespace, conversation }: ConversationName, which: 'itself' | 'sub-agents'): string {
  const beginning = conversationPrefix(namespace, conversation);
  return `${(which === 'itself' ? beginning : beginning.replace(/}:$/, ':')).replace(/[\\*?[\]]/g, '\\$&')}*`;
}

/** For SCAN: what all conversations have spent. */
export function spendingsPattern(namespace: string): string {
  return `perdura:{c:${escaped(namespace, /[%{}:\s]/g).replace(/[\\*?[\]]/g, '\\$&')}:*}:*:spendings`;
}

/** The life of a key that `lifeKey` has made; undefined for a key of no life. */
export function placeInKey(name: string): { readonly conversation: string; readonly life: string } | undefined {
  const [owner = '', rest = ''] = name.split('}:');
  const [life = '', what] = rest.split(':');
  if (what === undefined) return undefined;
  return { conversation: decodeURIComponent(owner.split(':').slice(3).join(':')), life: decodeURIComponent(life) };
}

export function deletedKey({ namespace, conversation }: ConversationName): string {
  return `${conversationPrefix(namespace, conversation)}deleted`;
}

export function scopeKey({ namespace, scope }: ScopeKey, what: ScopeKeyName): string {
  return `perdura:{m:${escaped(namespace, /[%{}:\s]/g)}:${escaped(scope, /[%{}:\s]/g)}}:${what}`;
}

/** What stays of a scope that was erased: who may not write to it. */
export function erasedKey({ namespace, scope }: ScopeKey): string {
  return `perdura:{m:${escaped(namespace, /[%{}:\s]/g)}:${escaped(scope, /[%{}:\s]/g)}}:${ERASED}`;
}

const ERASED = 'erased';

/** For SCAN: all keys that begin so. */
export function literally(beginning: string): string {
  return `${beginning.replace(/[\\*?[\]]/g, '\\$&')}*`;
}

/** For SCAN: what conversations of a scope share. */
export function scopesPattern(namespace: string): string {
  return `perdura:{m:${escaped(namespace, /[%{}:\s]/g).replace(/[\\*?[\]]/g, '\\$&')}:*}:*`;
}

/** The scope of a key that `scopeKey` has made. */
export function scopeInKey(name: string): string | undefined {
  if (name.endsWith(`}:${ERASED}`)) return undefined;
  const scope = /^perdura:\{m:[^:]*:([^:}]*)\}:/.exec(name)?.[1];
  return scope === undefined ? undefined : decodeURIComponent(scope);
}

export function pinsKey({ namespace, agent }: AgentKey): string {
  return `perdura:{p:${escaped(namespace, /[%{}:\s]/g)}:${escaped(agent, /[%{}:\s]/g)}}:pins`;
}

export function signInsKey({ namespace, owner }: SignInOwner): string {
  return `perdura:{i:${escaped(namespace, /[%{}:\s]/g)}:${escaped(owner, /[%{}:\s]/g)}}:sign-ins`;
}

export function uploadKey(
  { namespace, tenant }: UploadOwner,
  what: 'arriving' | 'waiting' | 'known' | 'sizes' | 'kept' | 'spent',
  id?: string,
): string {
  const owner = `perdura:{u:${escaped(namespace, /[%{}:\s]/g)}:${escaped(tenant, /[%{}:\s]/g)}}:${what}`;
  return id === undefined ? owner : `${owner}:${id}`;
}

export type NamedKind = NamedPlace['kind'];

const NAMED_LETTER: Readonly<Record<NamedKind, string>> = { deleted: 'c', pins: 'p', 'sign-ins': 'i' };

/** For SCAN: what deleted conversations, agents, or owners of sign-ins have. */
export function namedPattern(namespace: string, kind: NamedKind): string {
  return `${literally(`perdura:{${NAMED_LETTER[kind]}:${escaped(namespace, /[%{}:\s]/g)}:`)}}:${kind}`;
}

/** Whose it is; undefined for another key that the pattern has found. */
export function placeNamed(namespace: string, kind: NamedKind, name: string): NamedPlace | undefined {
  const beginning = `perdura:{${NAMED_LETTER[kind]}:${escaped(namespace, /[%{}:\s]/g)}:`;
  const whose = decodeURIComponent(name.slice(beginning.length, -`}:${kind}`.length));
  const place: NamedPlace =
    kind === 'deleted'
      ? { kind, key: { namespace, conversation: whose } }
      : kind === 'pins'
        ? { kind, key: { namespace, agent: whose } }
        : { kind, key: { namespace, owner: whose } };
  return namedKey(place) === name ? place : undefined;
}

function namedKey({ kind, key }: NamedPlace): string {
  if (kind === 'deleted') return deletedKey(key);
  return kind === 'pins' ? pinsKey(key) : signInsKey(key);
}

function conversationPrefix(namespace: string, conversation: string): string {
  return `perdura:{c:${escaped(namespace, /[%{}:\s]/g)}:${escaped(conversation, /[%{}\s]/g)}}:`;
}

/** Of a key that has no colon inside. */
export function escapedForKey(part: string): string {
  return escaped(part, /[%{}:\s]/g);
}

function escaped(part: string, unwanted: RegExp): string {
  return part.replace(unwanted, (character) => encodeURIComponent(character));
}
