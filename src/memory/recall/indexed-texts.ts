/**
 * What of a scope can be found: the texts of its messages, and of what is remembered in words. Each names its author, and how far that is
 * to be trusted.
 */
import type { Entry } from '../../records/message.js';
import { type Trust, foldedLine, splitLines } from '../../records/memory/documents.js';
import { hashText, type Kind } from '../../search/passage-table.js';
import type { Text } from '../../search/search-index.js';
import type { ConversationKey, ScopeKey, Store, EpisodeRecord } from '../../stores/store.js';
import { readText } from '../bodies.js';
import { blame } from '../documents/memory-diff.js';
import type { ItemRecord } from '../../records/memory/agent-memory.js';
import { readSources } from '../consolidation/message-lines.js';
import { listSources } from '../consolidation/provenance.js';
import { readPages } from '../past-life.js';
import { currentLine, episodesInSight, slotsIn } from '../prefix.js';

/** What these answer was found or remembered already: it would be found again and again. */
const ECHOES = ['search_memory', 'open_memory', 'search_history', 'read_episode', 'retrieve_from_memory', 'query_memory'];

export interface Source {
  readonly kind: Kind;
  /** `user`, `assistant`, `application`, the name of a tool, or of what remembers. */
  readonly speaker: string;
  readonly trust: Trust;
  /** Of what the model says: what it had read before. */
  readonly tools?: readonly string[];
}

export interface Told extends Source {
  readonly text: string;
}

/** UTF-16 units of a tool's result that can be found: a long page must not outweigh the messages. */
const MAX_TOOL_TEXT = 64 * 1024;

/** As an index has it. */
export function foundText({ kind, text }: Pick<Told, 'kind' | 'text'>, redact: (text: string) => string): string {
  return redact(text).slice(0, kind === 'tool' ? MAX_TOOL_TEXT : Infinity);
}

/** Undefined for what is not to be found: notices, tools' arguments, and what was read from memory. */
export async function textOfEntry(store: Store, key: ConversationKey, { message }: Entry): Promise<Told | undefined> {
  switch (message.role) {
    case 'user': {
      if (message.late) return { kind: 'tool', speaker: message.late.name, trust: `tool:${message.late.name}`, text: message.late.text };
      if (message.from === 'notice') return undefined;
      return { kind: 'user', ...asker(key, message.from), text: await readText(store, key, message.text) };
    }
    case 'assistant': {
      const texts = message.blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : []));
      if (texts.length === 0) return undefined;
      const text = (await Promise.all(texts.map((one) => readText(store, key, one)))).join('\n\n');
      return { kind: 'assistant', speaker: 'assistant', trust: 'model', text };
    }
    case 'tool': {
      const { name } = message;
      if (ECHOES.includes(name)) return undefined;
      return { kind: 'tool', speaker: name, trust: `tool:${name}`, text: await readText(store, key, message.text) };
    }
  }
}

/** Slots before an answer that are read at once. */
const LOOKED_AT = 16;

/** What the model had read in a turn before it wrote this; of a long turn what is nearest. */
export async function readBefore(store: Store, key: ConversationKey, { slot, turn, message }: Entry): Promise<readonly string[]> {
  if (message.role !== 'assistant') return [];
  for (let end = slot; end > 1; end -= LOOKED_AT) {
    const slots = Array.from({ length: Math.min(LOOKED_AT, end - 1) }, (_, i) => end - 1 - i).reverse();
    const entries = (await store.entries.read(key, slots)).filter((entry) => entry !== undefined);
    const ofTurn = entries.filter((entry) => entry.turn === turn);
    // A long text is known in part, and where a file begins is not.
    const whole = await Promise.all(ofTurn.map(async (entry) => ({ ...entry, message: await withText(store, key, entry.message) })));
    const sources = new Set(whole.flatMap((entry) => listSources(entry, new Set())));
    if (sources.size > 0 || ofTurn.length < entries.length || entries.length === 0) return [...sources].sort();
  }
  return [];
}

async function withText(store: Store, key: ConversationKey, message: Entry['message']): Promise<Entry['message']> {
  return message.role === 'user' ? { ...message, text: await readText(store, key, message.text) } : message;
}

/** The task of a sub-agent was written by an agent. */
function asker({ conversation }: ConversationKey, from: 'app' | undefined): Omit<Source, 'kind'> {
  if (from === 'app') return { speaker: 'application', trust: 'application' };
  return conversation.includes(':') ? { speaker: 'agent', trust: 'model' } : { speaker: 'user', trust: 'user' };
}

/** A text without neighbours. */
export interface NamedText extends Text, Source {
  /** As people name it: `sem_0003`. */
  readonly name: string;
  /** Where it was learnt, if that is known. */
  readonly conversation?: string;
  readonly turn?: string;
  readonly speaker: string;
}

export const DOCUMENTS = ['memory', 'history', 'fact'] as const;

/** MEMORY.md by its lines, HISTORY by its entries, and facts that count. */
export async function documentTexts(store: Store, key: ScopeKey): Promise<NamedText[]> {
  const [memory, { changes }, { facts }] = await Promise.all([
    store.documents.memory(key),
    store.documents.changes(key),
    store.facts.list(key),
  ]);
  const texts: NamedText[] = [];
  const sources = new Map(blame(memory.text, changes).map((one) => [one.number, one]));
  for (const [i, line] of splitLines(memory.text).entries()) {
    if (!/[\p{L}\p{N}]/u.test(line) || foldedLine(line) === '') continue;
    const { source, change } = sources.get(i + 1) ?? { source: { trust: 'person' as const } };
    const { trust, conversation, turn_ids, tools } = source;
    const learnt = { conversation, turn: turn_ids?.[0], tools };
    texts.push(named('memory', `line ${i + 1}`, { line: 'memory', ts: change?.ts ?? 0, text: line, trust, ...learnt }));
  }
  for (const { id, ts, fact, source } of facts) {
    const learnt = { conversation: source?.conversation, turn: source?.turn_ids[0], tools: source?.tools };
    texts.push(named('fact', id, { line: 'fact', ts, text: fact, trust: source === null ? 'person' : 'model', ...learnt }));
  }
  for await (const { id, ts, text } of store.documents.history(key)) {
    const trust = id === '' ? 'person' : 'model';
    const tools = trust === 'model' ? readSources(text) : [];
    texts.push(named('history', id === '' ? `by hand ${hashText(text, 0).toString(16)}` : id, { line: 'history', ts, text, trust, tools }));
  }
  return texts;
}

export function named(
  kind: Kind,
  name: string,
  {
    line,
    ts,
    text,
    trust,
    conversation,
    turn,
    tools = [],
  }: Pick<NamedText, 'line' | 'ts' | 'text' | 'trust'> & {
    readonly conversation?: string | undefined;
    readonly turn?: string | undefined;
    readonly tools?: readonly string[] | undefined;
  },
): NamedText {
  const at = hashText(`${name}\0${text}`, 0);
  const learnt = {
    ...(conversation !== undefined && { conversation }),
    ...(turn !== undefined && { turn }),
    ...(tools.length > 0 && { tools }),
  };
  return { line, at, session: at, ts, kind, text, name, speaker: kind, trust, ...learnt };
}

/** Those that no rewind has taken back, with the slots that each summarizes. */
export async function episodeTexts(store: Store, key: ConversationKey): Promise<(NamedText & Pick<EpisodeRecord, 'slots'>)[]> {
  const [{ episodes }, cuts] = await Promise.all([store.episodes.list(key), store.lives.cuts(key)]);
  return episodesInSight(episodes, cuts).map(({ id, ts, summary, turn_ids, slots, made }) => ({
    ...named('episode', id, {
      ...{ line: lineName(key, 'episode'), ts, text: summary, trust: 'model' },
      ...{ conversation: key.conversation, turn: turn_ids[0], tools: made?.tools },
    }),
    slots,
  }));
}

/** What its agent stored itself: results of tools are found as messages. Nothing tells where the agent has it from. */
export async function itemTexts(store: Store, key: ConversationKey): Promise<NamedText[]> {
  const { items } = await store.items.list(key);
  const stored = items.filter(({ source }) => source === 'user');
  if (stored.length === 0) return [];
  const isThere = await slotsThatCount(store, key);
  const texts = stored.map(async ({ id, ts, slot, content }: ItemRecord): Promise<NamedText[]> => {
    const text = slot === undefined || isThere(slot) ? await store.bodies.get(key, content.ref) : undefined;
    if (text === undefined) return [];
    const { conversation } = key;
    return [named('item', id, { line: lineName(key, 'item'), ts, text, trust: 'tool:store_in_memory', conversation })];
  });
  return (await Promise.all(texts)).flat();
}

/** Which slots no rewind has cut. */
export async function slotsThatCount(store: Store, key: ConversationKey): Promise<(slot: number) => boolean> {
  const cuts = await store.lives.cuts(key);
  if (cuts.length === 0) return () => true;
  const { entries } = await readPages(store, key);
  const now = new Set(slotsIn(currentLine(entries, cuts)));
  return (slot) => now.has(slot);
}

// What is called how in the index of a scope, and by which address people and models open it.

/** What a life has beside its messages. */
export type Beside = 'episode' | 'item';

export function lineName({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>, beside?: Beside): string {
  return JSON.stringify(beside === undefined ? [conversation, life] : [conversation, life, beside]);
}

export interface LifeLine {
  readonly key: ConversationKey;
  /** Absent: its messages. */
  readonly beside?: Beside;
}

/** Undefined for a document's. */
export function readLine(scope: ScopeKey, line: string): LifeLine | undefined {
  if (!line.startsWith('[')) return undefined;
  const [conversation = '', life = '', beside] = JSON.parse(line) as [string, string, Beside?];
  const key = { namespace: scope.namespace, scope: scope.scope, conversation, life };
  return beside === undefined ? { key } : { key, beside };
}

/**
 * A life in an address: 12 hexadecimal digits that say nothing. A conversation's id would show a tenant's model how the installation
 * calls it.
 */
export function lifeMark({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>): string {
  const name = `${conversation}\0${life}`;
  return `${digits(hashText(name, 0x2f0b4d1), 8)}${digits(hashText(name, 0x9e3779b1), 4)}`;
}

/** `3f2a9c1d52b0/12`, `3f2a9c1d52b0/ep_0003`. */
export function addressIn(key: Pick<ConversationKey, 'conversation' | 'life'>, place: number | string): string {
  return `${lifeMark(key)}/${place}`;
}

/** `fact/sem_0003`. */
export function addressOfDocument(kind: string, name: string): string {
  return `${kind}/${name}`;
}

function digits(hash: number, count: number): string {
  return (hash >>> 0).toString(16).padStart(8, '0').slice(-count);
}
