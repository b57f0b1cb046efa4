/** Small real things to write. */
import { randomUUID } from 'node:crypto';
import type { Entry, JsonValue } from '../../src/records/message.js';
import type { ItemRecord } from '../../src/records/memory/agent-memory.js';
import { episodicId, type SemanticItem } from '../../src/records/memory/items.js';
import type { AgentKey, ConversationKey, Feed, LiveEvent, ScopeKey, EpisodeRecord } from '../../src/stores/store.js';

/** A conversation that nobody else uses. */
export function aConversation(over: Partial<ConversationKey> = {}): ConversationKey {
  return { namespace: 'default', scope: 'default', conversation: 'conv_8', life: randomUUID(), ...over };
}

/** A scope that nobody else uses. */
export function aScope(): ScopeKey {
  return { namespace: 'default', scope: randomUUID() };
}

/** An agent that nobody else uses. */
export function anAgent(): AgentKey {
  return { namespace: 'default', agent: randomUUID() };
}

export function episode(n: number, over: Partial<EpisodeRecord> = {}): EpisodeRecord {
  return {
    id: episodicId(n),
    ts: 1738100500.25 + n,
    turn_ids: [turnOf(n)],
    summary: `summary ${n}`,
    tags: ['project'],
    salience: 0.7,
    session: 1,
    epoch: n,
    slots: [[n, n + 3]],
    ...over,
  };
}

export function fact(text: string, over: Partial<SemanticItem> = {}): Omit<SemanticItem, 'id'> {
  return { ts: 1738100501.5, fact: text, tags: ['testing'], confidence: 0.8, salience: 0.7, ...over };
}

export function item(n: number, over: Partial<ItemRecord> = {}): ItemRecord {
  return {
    v: 1,
    id: `mem_${n}`,
    session: 1,
    type: 'action_result',
    content: { ref: `sha256:${String(n).padStart(64, '0')}`, bytes: 5_000 + n, json: false },
    ts: 1738100000.5 + n,
    source: 'fetch_url',
    size: 5_010 + n,
    tags: ['action', 'fetch_url'],
    relatedTo: [],
    ...over,
  };
}

export function userEntry(slot: number, text = `message ${slot}`, messageId = `m${slot}`): Entry {
  return { v: 1, slot, session: 1, turn: turnOf(slot), seq: 1, ts: 1738100000.5 + slot, message: { role: 'user', text }, messageId };
}

export function answerEntry(slot: number, text = `answer ${slot}`): Entry {
  return {
    v: 1,
    slot,
    session: 1,
    turn: turnOf(slot),
    seq: 2,
    ts: 1738100000.5 + slot,
    message: { role: 'assistant', blocks: [{ kind: 'text', text }], model: 'scripted/one', stop: 'end' },
  };
}

export function turnOf(slot: number): string {
  return `turn_${String(slot).padStart(4, '0')}`;
}

export interface Read {
  readonly cursor: string;
  readonly event: JsonValue;
}

/** Reads until `enough` says so, then lets the reader go. */
export async function readUntil(
  feed: Feed,
  key: ConversationKey,
  after: string,
  enough: (read: readonly Read[]) => boolean,
): Promise<Read[]> {
  const stop = new AbortController();
  const read: Read[] = [];
  for await (const item of feed.read(key, after, stop.signal)) {
    read.push(item);
    if (enough(read)) break;
  }
  stop.abort();
  return read;
}

export function readCount(feed: Feed, key: ConversationKey, after: string, count: number): Promise<Read[]> {
  return readUntil(feed, key, after, ({ length }) => length === count);
}

export function eventsOf(read: readonly Read[]): JsonValue[] {
  return read.map(({ event }) => event);
}

export function numbered(from: number, to: number): { readonly n: number }[] {
  return Array.from({ length: to - from + 1 }, (_, i) => ({ n: from + i }));
}

/** Events without an id. */
export function events(all: readonly JsonValue[]): LiveEvent[] {
  return all.map((event) => ({ event }));
}
