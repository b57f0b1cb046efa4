/**
 * Reads of a life that shares entries of another one go on there (collections/lives.ts), in any store.
 *
 * - The entries of the life come first; its beginning is read only for missing ones, so that a life without one pays only for those.
 * - Of the other life only the shared slots are seen, whatever it has become since.
 * - Nothing is ever written there: an item that is removed here is hidden here, and for what begins with that removal.
 */
import { type Beginning, type SharedSlots, withSlot, type SlotRange } from '../records/slots.js';
import { byTime, type ItemRecord, type RemovedAt } from '../records/memory/agent-memory.js';
import type { Entry } from '../records/message.js';
import type { Bodies, ConversationKey, Effects, Entries, Lives, WriteBatch, Writes } from './store.js';
import type { Items } from './memory-ports.js';

/** Beginnings never change; so many are remembered. */
const MAX_KNOWN = 256;

export interface Shared {
  readonly entries: Entries;
  readonly bodies: Bodies;
  readonly items: Items;
}

/** The stores of one life alone. */
export interface SingleLife {
  readonly entries: Entries;
  readonly bodies: Bodies;
  readonly items: LifeItems;
}

export interface LifeItems extends Omit<Items, 'get' | 'list'> {
  get(key: ConversationKey, id: string): Promise<ItemRecord | RemovedItem | undefined>;
  list(
    key: ConversationKey,
    which?: { readonly session?: number },
  ): Promise<{ readonly items: readonly ItemRecord[]; readonly removed: readonly RemovedItem[]; readonly skipped: number }>;
}

export interface RemovedItem {
  readonly kind: 'removed';
  readonly id: string;
  /** Absent where an earlier version removed it. */
  readonly at?: RemovedAt | undefined;
  /** Forks that began before may still have it. Absent where it was another life's. */
  readonly item?: ItemRecord | undefined;
}

export function withShared(single: SingleLife, lives: Pick<Lives, 'beginning'>): Shared {
  const known = new Map<string, Beginning>();

  const findBeginning = async (key: ConversationKey): Promise<Beginning | undefined> => {
    const name = JSON.stringify([key.namespace, key.conversation, key.life]);
    const found = known.get(name) ?? (await lives.beginning(key));
    if (found === undefined) return undefined;
    known.delete(name);
    known.set(name, found);
    for (const oldest of known.keys()) if (known.size > MAX_KNOWN) known.delete(oldest);
    return found;
  };

  /** Those of `slots` that are shared, by slot. */
  const readShared = async (key: ConversationKey, beginning: Beginning, slots: readonly number[]): Promise<Map<number, Entry>> => {
    const found = new Map<number, Entry>();
    for (const { conversation, life, scope, slots: shared } of beginning.shared) {
      const isShared = inRanges(shared);
      const wanted = slots.filter((slot) => !found.has(slot) && isShared(slot));
      if (wanted.length === 0) continue;
      for (const entry of await single.entries.read({ namespace: key.namespace, conversation, life, scope }, wanted)) {
        if (entry) found.set(entry.slot, entry);
      }
    }
    return found;
  };

  /** Whether the life had it where the other one began: by the slot of the call that stored it, or else by its time. */
  const wasShared = async (key: ConversationKey, slots: SharedSlots['slots'], { slot, ts }: RemovedAt): Promise<boolean> => {
    if (slot !== undefined) return inRanges(slots)(slot);
    const newest = slots.reduce((most, [, last]) => Math.max(most, last), 0);
    const [entry] = await single.entries.read(key, [newest]);
    return entry !== undefined && ts <= entry.ts;
  };

  /** Whether it was removed by then. What resumes a life begins where that one ended. */
  const wasGone = async (key: ConversationKey, slots: SharedSlots['slots'], { at }: RemovedItem, { kind }: Beginning): Promise<boolean> =>
    kind === 'resume' || at === undefined || (await wasShared(key, slots, at));

  return {
    entries: {
      ...single.entries,

      async read(key, slots) {
        const entries = await single.entries.read(key, slots);
        const missing = slots.filter((_, i) => entries[i] === undefined);
        const beginning = missing.length === 0 ? undefined : await findBeginning(key);
        if (!beginning) return entries;
        const shared = await readShared(key, beginning, missing);
        return entries.map((entry, i) => entry ?? shared.get(slots[i] ?? 0));
      },

      async page(key, after, limit) {
        const page = await single.entries.page(key, after, limit);
        const there = new Set(page.entries.map(({ slot }) => slot));
        const missing: number[] = [];
        for (let slot = Math.max(after, 0) + 1; slot <= Math.min(after + limit, page.last); slot++)
          if (!there.has(slot)) missing.push(slot);
        const beginning = missing.length === 0 && page.last > 0 ? undefined : await findBeginning(key);
        if (!beginning) return page;
        const ranges = beginning.shared.flatMap(({ slots }) => slots);
        const highest = ranges.reduce((most, [, last]) => Math.max(most, last), 0);
        for (let slot = page.last + 1; slot <= Math.min(after + limit, highest); slot++) if (slot > after) missing.push(slot);
        const shared = await readShared(key, beginning, missing);
        const entries = [...page.entries, ...shared.values()].sort((a, b) => a.slot - b.slot);
        return { ...page, entries, last: Math.max(page.last, highest) };
      },
    },

    bodies: {
      ...single.bodies,

      async get(key, ref) {
        const text = await single.bodies.get(key, ref);
        const beginning = text === undefined ? await findBeginning(key) : undefined;
        if (!beginning) return text;
        for (const { conversation, life, scope } of beginning.shared) {
          const found = await single.bodies.get({ namespace: key.namespace, conversation, life, scope }, ref);
          if (found !== undefined) return found;
        }
        return undefined;
      },
    },

    items: {
      ...single.items,

      async get(key, id) {
        const known = await single.items.get(key, id);
        if (known !== undefined) return isRemoved(known) ? undefined : known;
        const beginning = await findBeginning(key);
        let found: ItemRecord | undefined;
        for (const { slots, ...name } of beginning?.shared ?? []) {
          const source = toKey(key, name);
          const theirs = await single.items.get(source, id);
          if (beginning && theirs && isRemoved(theirs) && (await wasGone(source, slots, theirs, beginning))) return undefined;
          const item = theirs && isRemoved(theirs) ? theirs.item : theirs;
          if (item && (await wasShared(source, slots, item))) found ??= item;
        }
        return found;
      },

      async list(key, which) {
        const { items, removed, skipped } = await single.items.list(key, which);
        const hidden = new Set([...items, ...removed].map(({ id }) => id));
        const found = new Map<string, ItemRecord>();
        const beginning = await findBeginning(key);
        for (const { slots, ...name } of beginning?.shared ?? []) {
          const source = toKey(key, name);
          const theirs = await single.items.list(source, which);
          const later: ItemRecord[] = [];
          for (const one of theirs.removed) {
            if (beginning && (await wasGone(source, slots, one, beginning))) hidden.add(one.id);
            else if (one.item && (which?.session ?? one.item.session) === one.item.session) later.push(one.item);
          }
          for (const item of [...theirs.items, ...later]) {
            if (!found.has(item.id) && (await wasShared(source, slots, item))) found.set(item.id, item);
          }
        }
        const shared = [...found.values()].filter(({ id }) => !hidden.has(id));
        return { items: [...items, ...shared].sort(byTime), skipped };
      },

      async citations(key, ids) {
        const made = await single.items.citations(key, ids);
        const beginning = made.includes(undefined) ? await findBeginning(key) : undefined;
        for (const { slots: _, ...name } of beginning?.shared ?? []) {
          const missing = ids.filter((_id, i) => made[i] === undefined);
          if (missing.length === 0) break;
          const theirs = await single.items.citations(toKey(key, name), missing);
          ids.forEach((id, i) => (made[i] ??= theirs[missing.indexOf(id)]));
        }
        return made;
      },
    },
  };
}

function toKey({ namespace }: ConversationKey, { conversation, life, scope }: Omit<SharedSlots, 'slots'>): ConversationKey {
  return { namespace, conversation, life, scope };
}

function isRemoved(one: ItemRecord | RemovedItem): one is RemovedItem {
  return 'kind' in one;
}

/** Ranges may be many and in any order: each is looked at once for all slots. */
function inRanges(ranges: readonly (readonly [first: number, last: number])[]): (slot: number) => boolean {
  const sorted = [...ranges].sort((a, b) => a[0] - b[0]);
  return (slot) => {
    let low = 0;
    let high = sorted.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const [first, last] = sorted[middle] ?? [0, -1];
      if (slot < first) high = middle - 1;
      else if (slot > last) low = middle + 1;
      else return true;
    }
    return false;
  };
}

/** Writes of entries alone are batches of one kind. */
export function recordsBy(writes: Writes): Pick<Entries, 'record' | 'append'> {
  return {
    record: async (key, entries) => (entries.length === 0 ? [] : (await writes.apply(key, { record: entries })).recorded),

    async append(key, entries) {
      if (entries.length > 0) await writes.apply(key, { append: entries });
    },
  };
}

export function claimsBy(writes: Writes): Pick<Effects, 'reserve' | 'fence'> {
  return {
    async reserve(key, claim, attempt) {
      const { reservation } = await writes.apply(key, { reserve: { claim, attempt } });
      return reservation ?? { status: 'conflict' };
    },

    fence: async (key, ids) => (ids.length === 0 ? [] : (await writes.apply(key, { fence: ids })).fenced),
  };
}

/** What a batch of writes attempts, as the end of the sentence "cannot … of conv_8". */
export function describeBatch({ record = [], fence = [], append = [], publish = [], reserve }: WriteBatch): string {
  const parts = [
    ...(record.length > 0 ? [`record ${record.length} messages from slot ${record[0]?.slot}`] : []),
    ...(fence.length > 0 ? [`fence ${fence.length} effects`] : []),
    ...(append.length > 0 ? [`append ${append.length} entries from slot ${append[0]?.slot}`] : []),
    ...(publish.length > 0 ? [`publish ${publish.length} live events`] : []),
    ...(reserve ? [`reserve effect ${reserve.claim.id}`] : []),
  ];
  return parts.length === 0 ? 'write nothing' : parts.join(', ');
}

/** Slots as a set: ascending, those beside each other in one range. */
export function toRanges(slots: Iterable<number>): SlotRange[] {
  return [...[...slots].sort((a, b) => a - b).reduce<readonly SlotRange[]>(withSlot, [])];
}
