/** As much of a store as the activities of context and lineage use, in lists: the same calls, and no disk. */
import { type Beginning, type Claim, type Cut, listSlots, toRanges, type SlotRange } from '../../../src/records/slots.js';
import type { Entry } from '../../../src/records/message.js';
import { byAge } from '../../../src/records/memory/items.js';
import type { HistoryEntry } from '../../../src/records/memory/documents.js';
import type { ConversationKey, Store, EpisodeRecord } from '../../../src/stores/store.js';

interface Life {
  readonly entries: Map<number, Entry>;
  readonly archived: Set<number>;
  readonly cuts: Cut[];
  readonly claims: Claim[];
  episodes: EpisodeRecord[];
  beginning?: Beginning;
}

export interface SmallStore {
  readonly store: Store;
  readonly entry: (key: ConversationKey, slot: number) => Entry | undefined;
  readonly body: (ref: string) => string | undefined;
  readonly put: (key: ConversationKey, entry: Entry) => void;
  readonly episodes: (key: ConversationKey) => readonly EpisodeRecord[];
  readonly cuts: (key: ConversationKey) => readonly Cut[];
  /** Newest first. */
  readonly history: HistoryEntry[];
}

export function createSmallStore(): SmallStore {
  const lives = new Map<string, Life>();
  const bodies = new Map<string, string>();
  const history: HistoryEntry[] = [];

  const lifeOf = ({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>): Life => {
    const name = `${conversation}/${life}`;
    const known = lives.get(name) ?? { entries: new Map(), archived: new Set(), cuts: [], claims: [], episodes: [] };
    lives.set(name, known);
    return known;
  };
  const entryOf = (key: ConversationKey, slot: number): Entry | undefined => {
    const { entries, beginning } = lifeOf(key);
    const source = beginning?.shared.find(({ slots }) => listSlots(slots).includes(slot));
    return entries.get(slot) ?? (source && lifeOf(source).entries.get(slot));
  };
  const slotsIn = (key: ConversationKey): number[] => {
    const { entries, beginning } = lifeOf(key);
    return [...new Set([...(beginning?.shared ?? []).flatMap(({ slots }) => listSlots(slots)), ...entries.keys()])].sort((a, b) => a - b);
  };
  const mark = (key: ConversationKey, ranges: readonly SlotRange[], isArchived: boolean): Promise<void> => {
    for (const slot of listSlots(ranges)) if (isArchived) lifeOf(key).archived.add(slot); else lifeOf(key).archived.delete(slot); // prettier-ignore
    return Promise.resolve();
  };
  const put = (key: ConversationKey, entry: Entry): void => {
    const { entries } = lifeOf(key);
    if (!entries.has(entry.slot)) entries.set(entry.slot, entry);
  };

  const store = {
    entries: {
      append: async (key: ConversationKey, some: readonly Entry[]) => some.forEach((entry) => put(key, entry)),
      read: async (key: ConversationKey, slots: readonly number[]) => slots.map((slot) => entryOf(key, slot)),
      page: async (key: ConversationKey, after: number, limit: number) => {
        const slots = slotsIn(key);
        const entries = slots.filter((slot) => slot > after && slot <= after + limit).flatMap((slot) => entryOf(key, slot) ?? []);
        return { entries, last: slots.at(-1) ?? 0, skipped: 0 };
      },
      archive: (key: ConversationKey, slots: readonly SlotRange[]) => mark(key, slots, true),
      restore: (key: ConversationKey, slots: readonly SlotRange[]) => mark(key, slots, false),
      archived: async (key: ConversationKey) => toRanges([...lifeOf(key).archived].sort((a, b) => a - b)),
    },
    bodies: {
      put: async (_key: ConversationKey, text: string) => {
        const ref = `body-${bodies.size}`;
        bodies.set(ref, text);
        return { ref, sha256: ref, bytes: text.length, preview: text.slice(0, 100) };
      },
      get: async (_key: ConversationKey, ref: string) => bodies.get(ref),
    },
    episodes: {
      add: async (key: ConversationKey, episode: EpisodeRecord) => {
        const life = lifeOf(key);
        if (!life.episodes.some(({ id }) => id === episode.id)) life.episodes = [...life.episodes, episode];
      },
      list: async (key: ConversationKey, { session }: { readonly session?: number } = {}) => ({
        episodes: lifeOf(key)
          .episodes.filter((one) => session === undefined || one.session === session)
          .sort(byAge),
        skipped: 0,
      }),
      remove: async (key: ConversationKey, id: string) => {
        const life = lifeOf(key);
        life.episodes = life.episodes.filter((one) => one.id !== id);
      },
    },
    facts: { list: async () => ({ facts: [], skipped: 0 }) },
    documents: {
      forgotten: async () => [],
      async *history() {
        yield* history;
      },
    },
    lives: {
      begin: async (key: ConversationKey, beginning: Beginning) => void (lifeOf(key).beginning = beginning),
      beginning: async (key: ConversationKey) => lifeOf(key).beginning,
      cut: async (key: ConversationKey, cut: Cut) => void lifeOf(key).cuts.push(cut),
      cuts: async (key: ConversationKey) => lifeOf(key).cuts,
      claim: async (key: ConversationKey, claim: Claim) => {
        const { claims } = lifeOf(key);
        if (!claims.some(({ id }) => id === claim.id)) claims.push(claim);
      },
      claims: async (key: ConversationKey) => lifeOf(key).claims,
      deleted: () => Promise.resolve([]),
    },
  };
  return {
    store: store as unknown as Store,
    ...{ entry: entryOf, body: (ref) => bodies.get(ref), put, history },
    episodes: (key) => lifeOf(key).episodes,
    cuts: (key) => lifeOf(key).cuts,
  };
}
