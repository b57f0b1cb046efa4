/**
 * The store that a played conversation has: what it writes goes to a folder of its own, and what it did not write itself it reads where it was
 * recorded: other conversations, long texts by their hash, and MEMORY.md as it was at that moment. Nothing is written there.
 */
import { NO_MEMORY_VERSION } from '../records/memory/documents.js';
import type { Entry } from '../records/message.js';
import type { ConversationKey, Store } from '../stores/store.js';

export interface Sandbox {
  /** Whether this life is played here. */
  isPlayed(key: Pick<ConversationKey, 'life'>): boolean;
  /** Slots up to this one were there before it is played: of a fork, and of runs that are no longer retained. */
  before(key: ConversationKey): number;
  /** Version of MEMORY.md, as the present step found it then; undefined: the sandbox has a memory of its own. */
  memoryVersion(): string | undefined;
  /** Epoch milliseconds. */
  now(): number;
}

export function createSandboxStore(own: Store, recorded: Store, sandbox: Sandbox): Store {
  const { isPlayed, before, memoryVersion } = sandbox;
  const where = (key: ConversationKey): Store => (isPlayed(key) ? own : recorded);
  const textOf = async (key: Parameters<Store['documents']['memoryText']>[0], version: string): Promise<string | undefined> => {
    if (version === NO_MEMORY_VERSION) return '';
    const made = await own.documents.memoryText(key, version);
    if (made !== undefined) return made;
    const there = await recorded.documents.memoryText(key, version);
    if (there !== undefined) return there;
    const now = await recorded.documents.memory(key);
    return now.version === version ? now.text : undefined;
  };

  return {
    ...own,
    entries: {
      ...own.entries,
      async read(key, slots) {
        if (!isPlayed(key)) return recorded.entries.read(key, slots);
        const found = await own.entries.read(key, slots);
        const last = before(key);
        const wanted = slots.filter((slot, at) => !found[at] && slot <= last);
        if (wanted.length === 0) return found;
        const there = new Map((await recorded.entries.read(key, wanted)).map((entry, at) => [wanted[at], entry]));
        return found.map((entry, at) => entry ?? there.get(slots[at] ?? 0));
      },
      async page(key, after, limit) {
        if (!isPlayed(key)) return recorded.entries.page(key, after, limit);
        const mine = await own.entries.page(key, after, limit);
        const until = before(key);
        if (after >= until) return mine;
        const theirs = await recorded.entries.page(key, after, Math.min(limit, until - after));
        const known = new Set(mine.entries.map(({ slot }) => slot));
        const entries = [...theirs.entries.filter(({ slot }) => !known.has(slot)), ...mine.entries].sort(bySlot);
        return { entries, last: Math.max(mine.last, until), skipped: mine.skipped + theirs.skipped };
      },
      archived: (key) => where(key).entries.archived(key),
    },
    bodies: {
      ...own.bodies,
      get: async (key, ref) => (isPlayed(key) ? await own.bodies.get(key, ref) : undefined) ?? recorded.bodies.get(key, ref),
    },
    items: {
      ...own.items,
      get: async (key, id) => (isPlayed(key) ? await own.items.get(key, id) : undefined) ?? recorded.items.get(key, id),
      list: (key, which) => where(key).items.list(key, which),
      async citations(key, ids) {
        const mine = await own.items.citations(key, ids);
        if (mine.every((citation) => citation !== undefined)) return mine;
        const theirs = await recorded.items.citations(key, ids);
        return mine.map((citation, at) => citation ?? theirs[at]);
      },
    },
    lives: {
      ...own.lives,
      beginning: (key) => where(key).lives.beginning(key),
      cuts: (key) => where(key).lives.cuts(key),
      claims: (key) => where(key).lives.claims(key),
      deleted: (of) => recorded.lives.deleted(of),
    },
    episodes: { ...own.episodes, list: (key, which) => where(key).episodes.list(key, which) },
    facts: {
      ...own.facts,
      async list(key, which) {
        const { facts, skipped } = await recorded.facts.list(key, which);
        const then = facts.filter(({ ts }) => ts * 1000 <= sandbox.now());
        if (memoryVersion() !== undefined) return { facts: then, skipped };
        const mine = await own.facts.list(key, which);
        const known = new Set(mine.facts.map(({ fact }) => fact));
        return { facts: [...mine.facts, ...then.filter(({ fact }) => !known.has(fact))], skipped: skipped + mine.skipped };
      },
    },
    documents: {
      ...own.documents,
      async memory(key) {
        const version = memoryVersion();
        if (version === undefined) return own.documents.memory(key);
        return { version, text: (await textOf(key, version)) ?? '' };
      },
      memoryText: textOf,
      async changes(key) {
        const version = memoryVersion();
        if (version === undefined) return own.documents.changes(key);
        const { changes, skipped } = await recorded.documents.changes(key);
        // What came later was not known then.
        return { changes: changes.slice(0, changes.findLastIndex((one) => one.version === version) + 1), skipped };
      },
      history: (key) => recorded.documents.history(key),
      forgotten: (key) => recorded.documents.forgotten(key),
    },
    close: () => own.close(),
  };
}

/** Reads what was recorded, and takes nothing. */
export function onlyRead(store: Store): Store {
  const nothing = (): Promise<void> => Promise.resolve();
  return {
    ...store,
    bodies: { ...store.bodies, put: () => Promise.reject(new Error('a recording is only read')) },
    items: { ...store.items, put: nothing, cite: nothing, remove: nothing },
    effects: { ...store.effects, spend: nothing },
  };
}

function bySlot(a: Entry, b: Entry): number {
  return a.slot - b.slot;
}
