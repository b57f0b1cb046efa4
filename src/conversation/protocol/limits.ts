/** How much of anything comes in, waits or is remembered, and which names may come in. */
import { scopeParts, TENANT_PATTERN } from '../../records/identity.js';

export { TENANT_PATTERN };

export const LIMITS = {
  /** UTF-8 bytes of one message, images, audio, video and documents included; longer ones travel by reference. */
  messageBytes: 1024 * 1024,
  /** Levels of nesting in anything that comes in. */
  depth: 64,
  /** Values (texts, numbers, lists, maps) in one of them: a megabyte of nothing but zeros takes a hundred times that to write out. */
  values: 50_000,
  /** The highest slot, session, turn or count of messages: beyond it something else is meant. */
  number: 1e9,
  /** Entries in one consolidation request: the longest window (10,000 messages) with 99 calls of tools after each. */
  slots: 1_000_000,
  /** Tokens and US dollars of one report: a sum of as many as come in stays exact. */
  tokens: 1e12,
  usd: 1e9,
  /** Message ids remembered in state; older ones are known to the store. */
  rememberedIds: 256,
  /** Turns that `turn` answers at once. */
  rememberedTurns: 50,
  /** Waiting `send`s after which the next is answered `queued`; the server takes 10 updates in flight. */
  waitingSends: 6,
  idLength: 128,
  /** UTF-8 bytes of a schema for answers, of values for tools, of a decision's note and of edited arguments. */
  outputBytes: 16 * 1024,
  contextBytes: 64 * 1024,
  /** UTF-8 bytes of what is kept with a message for its sender. */
  echoBytes: 16 * 1024,
  /** Tools that a message may bring, the UTF-8 bytes of JSON that they have together, and those of what one of them answers. */
  tools: 64,
  toolsBytes: 64 * 1024,
  clientResultBytes: 128 * 1024,
  /** Texts at which an answer ends, and UTF-16 units of each. */
  stops: 32,
  stopLength: 200,
  noteBytes: 16 * 1024,
  editedBytes: 64 * 1024,
  /** Of a sub-agent's task and of its report. */
  taskBytes: 8 * 1024,
  reportBytes: 64 * 1024,
  /** Images, audio, video and documents together. */
  mediaPerMessage: 20,
  /** UTF-16 units of an address of one, and of a reference to one. */
  mediaUrl: 8 * 1024,
  /** Application events that may wait at once, and the UTF-8 bytes of their payloads together: these lie in the state. */
  queuedEvents: 500,
  queuedEventBytes: 128 * 1024,
  /** Ids of such events that are remembered once they are reduced. */
  rememberedEvents: 256,
  /** Chunks that one request may name, and such requests that may wait. */
  chosenChunks: 1_000,
  choices: 16,
} as const;

/** Conversations, agents and scopes alike. */
export const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** Of a conversation: where a Temporal Schedule starts it, the time at which it was due is at the end, as Temporal writes it. */
export const CONVERSATION_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?:-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?$/;

/** Ours: a sub-agent's id is its parent's, the turn and the number of the call. */
export const CHILD_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?:-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?(?::turn_\d{4,15}:\d{1,6}){1,8}$/;

/** The conversation, and below it the turn and the call of each sub-agent down to this one. */
export function splitChildId(id: string): readonly [conversation: string, ...below: string[]] {
  const [conversation = '', ...below] = id.split(/:(?=turn_)/);
  return [conversation, ...below];
}

/** Of a run's id, as Temporal or another server makes them. */
export const LIFE_PATTERN = /^[\w.:-]{1,200}$/;

export function isTenant(value: unknown): value is string {
  return typeof value === 'string' && TENANT_PATTERN.test(value);
}

export function isScope(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  const { tenant, scope } = scopeParts(value);
  return ID_PATTERN.test(scope) && (tenant === undefined || isTenant(tenant));
}
