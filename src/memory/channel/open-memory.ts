/**
 * `AgentMemory` over a store: the items of one session of one conversation, or of another one that shares them. A reset begins a session,
 * and with it an empty memory; the old one's items stay in the store for the record.
 */
import { type Cut, withSlot, type SlotRange } from '../../records/slots.js';
import { type JsonValue, isFromPerson } from '../../records/message.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import type { Ask } from '../long-record.js';
import type { CallInTree } from '../../records/identity.js';
import { cutBefore } from '../prefix.js';
import {
  byTime,
  DEFAULT_LIMIT,
  ITEM_TYPES,
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
import { slotOfItem } from './citations.js';
import { transformed } from './transforms.js';

/** What `openMemory` is given. */
export interface OpenMemory {
  readonly store: Pick<Store, 'items' | 'bodies' | 'entries' | 'lives'>;
  readonly place: ItemPlace;
  /** Of the result of the call that it is opened for, where that is of the same place. */
  readonly slot?: number;
  /** Of a sub-agent's call: those below the one in `slot`. */
  readonly calls?: readonly CallInTree[];
  /**
   * Only what was there before the call with its result in `slot`; in a memory that a tree shares before the last of `calls`, by the slots of
   * the deepest conversation that both have a call in. What is side by side with it further up, or has no slot, counts by its time (epoch
   * milliseconds). Nothing can be stored there.
   */
  readonly asOf?: { readonly slot?: number; readonly calls?: readonly CallInTree[]; readonly at: number };
  /** Of the next item that is stored: the same for every attempt at the same call. */
  readonly nextId: () => string;
  /** Of what is stored. */
  readonly now: () => Date;
  /** Makes summaries. Without it there are none. */
  readonly ask?: Ask;
}

const MAX_TAGS = 20;
const MAX_WORD = 200;

/** The memory channel of one session of one life. */
export function openMemory({ store, place, slot: toolSlot, calls, asOf, nextId, now, ask }: OpenMemory): AgentMemory {
  const { items, bodies, entries } = store;
  const key = keyOfPlace(place);
  const { session } = place;
  const wasThere = (one: Pick<ItemRecord, 'slot' | 'calls' | 'ts'>): boolean => asOf === undefined || isBefore(one, asOf);
  const visible = async (): Promise<readonly ItemRecord[]> => {
    const isSeen = await seenBy(store, key, session);
    return (await items.list(key)).items.filter((record) => isSeen(record) && wasThere(record));
  };

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
      if (!record || !wasThere(record) || !(await seenBy(store, key, session))(record)) return null;
      const body = await bodies.get(key, record.content.ref);
      if (body === undefined) throw new TransformRefused(`the ${record.content.bytes} bytes of ${id} are no longer in the store`);
      const content = record.content.json ? (JSON.parse(body) as JsonValue) : body;
      return { ...toHead(record), content: transform ? await transformed(content, transform, ask) : content };
    },

    async query(criteria = {}) {
      refuseCriteria(criteria);
      const { limit = DEFAULT_LIMIT } = criteria;
      const found = (await visible()).filter((record) => isWanted(record, criteria)).sort(byTime);
      return found.slice(0, Math.max(0, Math.min(limit, MAX_FOUND))).map(toHead);
    },

    async clear() {
      await items.remove(
        key,
        (await visible()).map(({ id }) => id),
        { ts: now().getTime() / 1000, ...(toolSlot !== undefined && { slot: toolSlot }) },
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
        // What is lost there is named when it is read here.
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
    if (!entry || !isFromPerson(entry.message) || !wasThere(entry) || !(await seenBy(store, key, session))(entry)) return null;
    const { text } = entry.message;
    const content = typeof text === 'string' ? text : await bodies.get(key, text.ref);
    if (content === undefined) throw new TransformRefused(`the text of ${id} is no longer in the store`);
    const metadata = { source: 'user', timestamp: new Date(entry.ts * 1000), size: countCharacters(content) };
    return { id, type: 'custom', metadata, content: transform ? await transformed(content, transform, ask) : content };
  }

  async function toRecord({ type = 'custom', content, metadata = {} }: NewMemoryItem, id: string): Promise<ItemRecord> {
    if (!ITEM_TYPES.includes(type)) throw new TypeError(`cannot store an item in memory: its type must be ${ITEM_TYPES.join(', ')}`);
    const json = typeof content !== 'string';
    const text = json ? JSON.stringify(content) : content.toWellFormed();
    const { ref, bytes } = await bodies.put(key, text);
    return {
      v: 1,
      id,
      session,
      ...(toolSlot !== undefined && { slot: toolSlot }),
      ...(calls && { calls: [...calls] }),
      type,
      content: { ref, bytes, json },
      ts: (metadata.timestamp ?? now()).getTime() / 1000,
      source: (metadata.source ?? 'user').slice(0, MAX_WORD),
      size: metadata.size ?? countCharacters(content),
      tags: words(metadata.tags),
      relatedTo: words(metadata.relatedTo),
    };
  }
}

function isBefore({ slot, calls = [], ts }: Pick<ItemRecord, 'slot' | 'calls' | 'ts'>, moment: NonNullable<OpenMemory['asOf']>): boolean {
  const isInTime = ts * 1000 <= moment.at;
  if (slot === undefined || moment.slot === undefined) return isInTime;
  const last = moment.calls?.at(-1);
  for (const bound of [...(moment.calls ?? [])].reverse()) {
    const same = calls.find(({ life }) => life === bound.life);
    if (same) return same.slot < bound.slot || (bound !== last && isInTime);
  }
  return slot < moment.slot || (last !== undefined && isInTime);
}

/** Characters as JSON (seed 003: `JSON.stringify(content).length`). */
export function countCharacters(content: JsonValue): number {
  return JSON.stringify(content).length;
}

function keyOfPlace({ namespace, scope, conversation, life }: ItemPlace): ConversationKey {
  return { namespace, scope, conversation, life };
}

function words(given: readonly string[] = []): string[] {
  return given.slice(0, MAX_TAGS).map((word) => word.toWellFormed().slice(0, MAX_WORD));
}

/** A slip would find nothing, and pass for an empty memory. */
function refuseCriteria({ type, tags, timeRange, limit }: MemoryCriteria): void {
  const isTime = (time: unknown): boolean => time instanceof Date && !Number.isNaN(time.getTime());
  const problem =
    type !== undefined && !(ITEM_TYPES as readonly string[]).includes(type)
      ? `type must be ${ITEM_TYPES.join(', ')}`
      : tags !== undefined && !(Array.isArray(tags) && tags.every((tag) => typeof tag === 'string'))
        ? 'tags must be a list of texts'
        : timeRange !== undefined && !(isTime(timeRange.start) && isTime(timeRange.end))
          ? 'timeRange needs the dates start and end'
          : limit !== undefined && !(Number.isSafeInteger(limit) && limit >= 0)
            ? 'limit must be a whole number from 0'
            : undefined;
  if (problem !== undefined) throw new TypeError(`cannot search the items in memory: ${problem}`);
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

/** A sub-agent's memory beside those that it sees: it finds what is in any. What it stores is for all who share `shared`, or for itself. */
export function withOthers(
  memory: AgentMemory,
  { shared, snapshots }: { readonly shared?: AgentMemory; readonly snapshots: readonly AgentMemory[] },
): AgentMemory {
  const all = [memory, ...(shared ? [shared] : []), ...snapshots];
  return {
    // A sub-agent does not clear what is shared.
    ...memory,
    store: (item) => (shared ?? memory).store(item),
    async retrieve(id, transform) {
      for (const one of all) {
        const found = await one.retrieve(id, transform);
        if (found) return found;
      }
      return null;
    },
    async query(criteria = {}) {
      const found = (await Promise.all(all.map((one) => one.query(criteria)))).flat();
      const each = [...new Map(found.map((head) => [head.id, head])).values()];
      const newestFirst = each.sort((a, b) => b.metadata.timestamp.getTime() - a.metadata.timestamp.getTime());
      return newestFirst.slice(0, Math.max(0, Math.min(criteria.limit ?? DEFAULT_LIMIT, MAX_FOUND)));
    },
  };
}

/** Of an item or an entry; `slot` is absent for what no call has stored. */
type IsSeen = (one: { readonly session: number; readonly slot?: number }) => boolean;

/** Whose items a session sees: its items, and those of the sessions that a rewind past `/new` went back into; none that a rewind has cut. */
async function seenBy(store: Pick<Store, 'lives' | 'entries'>, key: ConversationKey, session: number): Promise<IsSeen> {
  const [cuts, beginning] = await Promise.all([store.lives.cuts(key), store.lives.beginning(key)]);
  const groups = (beginning?.joined ?? []).map((one) => [one.session, ...one.of]);
  const sessions = new Set([session]);
  for (const at of sessions) {
    for (const number of groups.find((group) => group.includes(at)) ?? []) sessions.add(number);
    const kept = cuts.filter((cut) => cut.session === at).map(({ begun }) => begun);
    for (const entry of await store.entries.read(key, kept)) if (entry && entry.session < at) sessions.add(entry.session);
  }
  // What an origin has cut since is still here.
  const here = await slotsInLine(store, key, cuts);
  const isCut = (slot: number): boolean => cuts.some(({ slots }) => slots.some(holds(slot))) && !here.some(holds(slot));
  return ({ session: of, slot }) => sessions.has(of) && (slot === undefined || !isCut(slot));
}

/** The turn that the conversation is at; a rewind may have gone back into what another one had cut. As `lineTo` in prefix.ts, by slots. */
async function slotsInLine(store: Pick<Store, 'entries'>, key: ConversationKey, cuts: readonly Cut[]): Promise<SlotRange[]> {
  const here: SlotRange[] = [];
  for (let upper = Infinity; ;) {
    const cut = cutBefore(cuts, upper);
    here.push([(cut?.slot ?? -1) + 1, upper]);
    if (!cut) return here;
    here.push(...(await restOfTurn(store, key, cut)));
    upper = cut.begun;
  }
}

const PAGE = 500;

/** Slots of the turn that a rewind goes on from, after its first answer. */
async function restOfTurn({ entries }: Pick<Store, 'entries'>, key: ConversationKey, { begun, slot: last }: Cut): Promise<SlotRange[]> {
  const [first] = await entries.read(key, [begun]);
  const slots: number[] = [];
  for (let after = begun; first !== undefined && after < last; after += PAGE) {
    const page = await entries.page(key, after, Math.min(PAGE, last - after));
    slots.push(...page.entries.filter(({ turn }) => turn === first.turn).map(({ slot }) => slot));
  }
  return slots.reduce<readonly SlotRange[]>(withSlot, []) as SlotRange[];
}

function holds(slot: number): (range: SlotRange) => boolean {
  return ([first, last]) => first <= slot && slot <= last;
}
