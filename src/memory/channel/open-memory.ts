/**
 * `AgentMemory` over a store: the items of one session of one conversation, its own or, shared, another's. A reset begins a session,
 * and with it an empty memory; the old one's items stay in the store for the record.
 */
import type { JsonValue } from '../../records/message.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import type { Ask } from '../long-record.js';
import {
  byTime,
  DEFAULT_LIMIT,
  MAX_FOUND,
  TransformRefused,
  type AgentMemory,
  type ItemPlace,
  type ItemRecord,
  type MemoryCriteria,
  type MemoryItem,
  type MemoryItemHead,
  type MemoryTransform,
  type NewMemoryItem,
} from '../../records/memory/agent-memory.js';
import { isFromPerson } from '../../records/message.js';
import { slotOfItem } from './cite-messages.js';
import { transformed } from './transforms.js';

export interface OpenMemory {
  readonly store: Pick<Store, 'items' | 'bodies' | 'entries'>;
  readonly place: ItemPlace;
  /** Of the next item that is stored: the same for every attempt at the same call. */
  readonly nextId: () => string;
  readonly now: () => Date;
  /** Makes summaries. Without it there are none. */
  readonly ask?: Ask;
}

const MAX_TAGS = 20;
const MAX_WORD = 200;

export function openMemory({ store: { items, bodies, entries }, place, nextId, now, ask }: OpenMemory): AgentMemory {
  const key = keyOfPlace(place);
  const { session } = place;
  const visible = async (): Promise<readonly ItemRecord[]> => (await items.list(key, { session })).items;

  return {
    async store(item) {
      const record = await toRecord(item, nextId());
      await items.put(key, [record]);
      return record.id;
    },

    async retrieve(id, transform) {
      const slot = slotOfItem(id);
      if (slot !== undefined) return retrieveMessage(id, slot, transform);
      const record = await items.get(key, id);
      if (record?.session !== session) return null;
      const body = await bodies.get(key, record.content.ref);
      if (body === undefined) throw new TransformRefused(`the ${record.content.bytes} bytes of ${id} are no longer in the store`);
      const content = record.content.json ? (JSON.parse(body) as JsonValue) : body;
      return { ...toHead(record), content: transform ? await transformed(content, transform, ask) : content };
    },

    async query(criteria = {}) {
      const { limit = DEFAULT_LIMIT } = criteria;
      const found = (await visible()).filter((record) => isWanted(record, criteria)).sort(byTime);
      return found.slice(0, Math.max(0, Math.min(limit, MAX_FOUND))).map(toHead);
    },

    async clear() {
      await items.remove(
        key,
        (await visible()).map(({ id }) => id),
      );
    },

    async snapshot() {
      return { v: 1, from: place, items: await visible() };
    },

    async restore({ from, items: taken }) {
      if (from.namespace !== place.namespace || from.scope !== place.scope) {
        throw new Error(`cannot restore a memory of the scope ${from.scope} in ${place.scope}: memories are shared within one scope`);
      }
      const origin = keyOfPlace(from);
      for (const record of taken) {
        const body = await bodies.get(origin, record.content.ref);
        // What is lost there is named when it is asked for here.
        if (body !== undefined) await bodies.put(key, body);
      }
      await items.put(
        key,
        taken.map((record) => ({ ...record, session })),
      );
    },
  };

  /** A message that a compaction has cited. */
  async function retrieveMessage(id: string, slot: number, transform: MemoryTransform | undefined): Promise<MemoryItem | null> {
    const [entry] = await entries.read(key, [slot]);
    if (entry?.session !== session || !isFromPerson(entry.message)) return null;
    const { text } = entry.message;
    const content = typeof text === 'string' ? text : await bodies.get(key, text.ref);
    if (content === undefined) throw new TransformRefused(`the text of ${id} is no longer in the store`);
    const metadata = { source: 'user', timestamp: new Date(entry.ts * 1000), size: sizeOf(content) };
    return { id, type: 'custom', metadata, content: transform ? await transformed(content, transform, ask) : content };
  }

  async function toRecord({ type = 'custom', content, metadata = {} }: NewMemoryItem, id: string): Promise<ItemRecord> {
    const json = typeof content !== 'string';
    const text = json ? JSON.stringify(content) : content.toWellFormed();
    const { ref, bytes } = await bodies.put(key, text);
    return {
      v: 1,
      id,
      session,
      type,
      content: { ref, bytes, json },
      ts: (metadata.timestamp ?? now()).getTime() / 1000,
      source: (metadata.source ?? 'user').slice(0, MAX_WORD),
      size: metadata.size ?? sizeOf(content),
      tags: words(metadata.tags),
      relatedTo: words(metadata.relatedTo),
    };
  }
}

/** Characters as JSON (seed 003: `JSON.stringify(content).length`). */
export function sizeOf(content: JsonValue): number {
  return JSON.stringify(content).length;
}

function keyOfPlace({ namespace, scope, conversation, life }: ItemPlace): ConversationKey {
  return { namespace, scope, conversation, life };
}

function words(given: readonly string[] = []): string[] {
  return given.slice(0, MAX_TAGS).map((word) => word.toWellFormed().slice(0, MAX_WORD));
}

function isWanted(record: ItemRecord, { type, source, tags = [], timeRange }: MemoryCriteria): boolean {
  const at = record.ts * 1000;
  return (
    (type === undefined || record.type === type) &&
    (source === undefined || record.source === source) &&
    tags.every((tag) => record.tags.includes(tag)) &&
    (timeRange === undefined || (at >= timeRange.start.getTime() && at <= timeRange.end.getTime()))
  );
}

function toHead({ id, type, ts, source, size, tags, relatedTo }: ItemRecord): MemoryItemHead {
  return {
    id,
    type,
    metadata: {
      source,
      timestamp: new Date(ts * 1000),
      size,
      ...(tags.length > 0 && { tags }),
      ...(relatedTo.length > 0 && { relatedTo }),
    },
  };
}

/**
 * A sub-agent's memory that is shared with the conversation it works for: it finds what lies in either, and what it stores is for both.
 * Its own tools' results lie in its own place, since they are written with them.
 */
export function sharedMemory(own: AgentMemory, shared: AgentMemory): AgentMemory {
  return {
    store: (item) => shared.store(item),
    retrieve: async (id, transform) => (await own.retrieve(id, transform)) ?? shared.retrieve(id, transform),
    async query(criteria = {}) {
      const found = (await Promise.all([own.query(criteria), shared.query(criteria)])).flat();
      const newestFirst = found.sort((a, b) => b.metadata.timestamp.getTime() - a.metadata.timestamp.getTime());
      return newestFirst.slice(0, Math.max(0, Math.min(criteria.limit ?? DEFAULT_LIMIT, MAX_FOUND)));
    },
    /** What is shared is not one's own to clear. */
    clear: () => own.clear(),
    snapshot: () => own.snapshot(),
    restore: (snapshot) => own.restore(snapshot),
  };
}

/** What the other one had at `until` (epoch milliseconds) can be seen; what is stored is one's own. */
export function snapshotMemory(own: AgentMemory, other: AgentMemory, until: number): AgentMemory {
  const wasThere = ({ metadata }: { readonly metadata: { readonly timestamp: Date } }): boolean => metadata.timestamp.getTime() <= until;
  return {
    ...own,
    async retrieve(id, transform) {
      const mine = await own.retrieve(id, transform);
      if (mine) return mine;
      const theirs = await other.retrieve(id, transform);
      return theirs && wasThere(theirs) ? theirs : null;
    },
    async query(criteria = {}) {
      const found = [...(await own.query(criteria)), ...(await other.query(criteria)).filter(wasThere)];
      const newestFirst = found.sort((a, b) => b.metadata.timestamp.getTime() - a.metadata.timestamp.getTime());
      return newestFirst.slice(0, Math.max(0, Math.min(criteria.limit ?? DEFAULT_LIMIT, MAX_FOUND)));
    },
  };
}
