/**
 * Contents of the memory channel, of one life alone: a record for each item, or for one that was removed, and for what a model has made to be
 * shown in the place of one. Those that a call of a tool brings are written with its effect.
 */
import { z } from 'zod';
import { byTime, itemRecordSchema, type ItemRecord } from '../../records/memory/agent-memory.js';
import { decodeJson } from '../codecs.js';
import { addOnce, type OpenCollection, type RecordCodec } from './collection.js';
import type { LifeItems, RemovedItem } from '../shared-entries.js';
import type { ConversationKey } from '../store.js';

type ItemEntry =
  | { readonly kind: 'item'; readonly id: string; readonly item: ItemRecord }
  | RemovedItem
  | { readonly kind: 'citation'; readonly id: string; readonly citation: string };

const besideItems = z.union([
  z.object({
    v: z.literal(1),
    kind: z.literal('removed'),
    id: z.string(),
    at: itemRecordSchema.pick({ slot: true, ts: true }).optional(),
    item: itemRecordSchema.optional(),
  }),
  z.object({ v: z.literal(1), kind: z.literal('citation'), id: z.string(), citation: z.string() }),
]);
const citationId = (id: string): string => `cited:${id}`;

export const ITEMS: RecordCodec<ItemEntry> = {
  identify: ({ kind, id }) => (kind === 'citation' ? citationId(id) : id),
  encode: (entry) => JSON.stringify(entry.kind === 'item' ? entry.item : { ...entry, v: 1 }),
  decode(text) {
    const value = decodeJson(text);
    const item = itemRecordSchema.safeParse(value).data;
    return item ? { kind: 'item', id: item.id, item } : besideItems.safeParse(value).data;
  },
};

export function createItems(open: OpenCollection): LifeItems {
  const openItems = (key: ConversationKey) => open({ name: 'items', key }, ITEMS);
  return {
    async put(key, items) {
      if (items.length === 0) return;
      const entries = items.map((item): ItemEntry => ({ kind: 'item', id: item.id, item }));
      await addOnce(openItems(key), ITEMS.identify, `store ${items.length} items of ${key.conversation}`, ...entries);
    },

    async get(key, id) {
      const { items } = await openItems(key).read(`read item ${id} of ${key.conversation}`, 'skip', [id]);
      const found = items.flatMap((entry) => (entry.kind === 'citation' || entry.id !== id ? [] : [entry]))[0];
      return found?.kind === 'item' ? found.item : found;
    },

    async list(key, { session } = {}) {
      const { items, skipped } = await openItems(key).read(`read the items of ${key.conversation}`);
      const there = items.flatMap((entry) => (entry.kind === 'item' ? [entry.item] : []));
      return {
        items: there.filter((item) => session === undefined || item.session === session).sort(byTime),
        removed: items.flatMap((entry) => (entry.kind === 'removed' ? [entry] : [])),
        skipped,
      };
    },

    async remove(key, given, { slot, ts }) {
      if (given.length === 0) return;
      const ids = [...new Set(given)];
      const at = slot === undefined ? { ts } : { slot, ts };
      const removed = (id: string, known: ItemEntry | undefined): RemovedItem => {
        if (known?.kind === 'removed') return known;
        return { kind: 'removed', id, at, ...(known?.kind === 'item' && { item: known.item }) };
      };
      await openItems(key).change(
        `remove ${ids.length} items of ${key.conversation}`,
        (all) => {
          const known = new Map(all.map((entry) => [entry.id, entry]));
          const after = ids.map((id) => removed(id, known.get(id)));
          return after.every((entry) => known.get(entry.id) === entry) ? undefined : after;
        },
        ids,
      );
    },

    cite: (key, id, citation) =>
      addOnce(openItems(key), ITEMS.identify, `store what is shown for item ${id} of ${key.conversation}`, {
        kind: 'citation',
        id,
        citation,
      }),

    async citations(key, ids) {
      if (ids.length === 0) return [];
      const attempt = `read what is shown for items of ${key.conversation}`;
      const { items } = await openItems(key).read(attempt, 'skip', ids.map(citationId));
      const cited = new Map(items.flatMap((entry) => (entry.kind === 'citation' ? [[entry.id, entry.citation]] : [])));
      return ids.map((id) => cited.get(id));
    },
  };
}
