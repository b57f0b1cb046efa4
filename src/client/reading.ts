/** What the store has of a conversation: its live events, its messages, and what it remembers. */
import { randomUUID } from 'node:crypto';
import { openMemory } from '../memory/channel/open-memory.js';
import type { AgentMemory, ItemRecord } from '../records/memory/agent-memory.js';
import type { FeedEvent, TurnResult } from '../conversation/protocol/contract.js';
import { type Entry, answerText } from '../records/message.js';
import { countSlots, type SlotRange } from '../records/slots.js';
import type { TurnEnd } from '../records/turn-end.js';
import { withBodies } from '../memory/bodies.js';
import { readBranch, readBranches, readCurrent, readLatest, readTurnEnds, type Branch } from '../memory/past-life.js';
import { isImportedLife } from '../memory/imported-life.js';
import type { ConversationKey, Store, EpisodeRecord, FactRecord } from '../stores/store.js';
import type { Description } from './describe.js';
import { ClientError } from './errors.js';
import { truncate } from '../records/text.js';

/** A live event, and where it stands in the feed. */
export interface WatchEvent {
  /** Hand it to the next `watch` to go on where this one ended. */
  readonly cursor: string;
  readonly event: FeedEvent;
}

/** What is remembered of a conversation and its scope. */
export interface Remembered {
  /** Of this conversation, newest first. */
  readonly episodes: EpisodeRecord[];
  /** Of its scope, from all conversations in it: most salient first, then newest; with `all` those that were replaced too. */
  readonly facts: FactRecord[];
  /** Records in the store that cannot be read. */
  readonly skipped: number;
}

/** What of a conversation lies where: of what it has recorded itself, without what it shares with another. */
export interface Whereabouts {
  readonly store: { readonly where: string; readonly messages: number; readonly longTexts: number };
  /** Null: nothing of it. */
  readonly archive: {
    /** Null: this process is not told of an archive. */
    readonly where: string | null;
    readonly files: number;
    readonly messages: number;
    readonly longTexts: number;
    readonly results: number;
    /** Of the archive, and of the texts in it. */
    readonly bytes: number;
    readonly plainBytes: number;
    /** Of its latest part. */
    readonly at: Date;
  } | null;
}

/** What the store has of a conversation. */
export interface ReadingClient {
  /** Live events after `after` (default: from now on), until `signal` aborts. A retried attempt begins with `reset`. */
  watch(id: string, options?: { after?: string; signal?: AbortSignal }): AsyncIterable<WatchEvent>;
  /** Where its live events are now: `watch` after it misses nothing that is published from here on. `of`: as just described. */
  newestCursor(id: string, options?: { readonly of?: Description }): Promise<string>;
  /**
   * Everything recorded, oldest first, with long texts at hand, and with what it shares with the conversation that it was forked from;
   * `after` leaves out what lies up to that slot. It leaves out turns that rewinds have cut: `branch` reads those.
   */
  history(id: string, options?: { after?: number; branch?: number }): Promise<Entry[]>;
  /**
   * The last `last` of `history`, or of what lies before the slot `before`, without reading what comes before them. `previous`: for the next
   * `before`; null: these begin with the first.
   */
  latest(
    id: string,
    options: { readonly last: number; readonly before?: number },
  ): Promise<{ readonly entries: Entry[]; readonly previous: number | null }>;
  /** Entries at these slots, in their order; `whole`: with long texts at hand. Missing entries are left out. */
  entries(id: string, slots: readonly number[], options?: { readonly whole?: boolean }): Promise<Entry[]>;
  /** How turns of it ended that have no whole answer, in their order: failed, stopped, over a limit. Those that it shares included. */
  turnEnds(id: string): Promise<TurnEnd[]>;
  /** What rewinds have cut out of it, oldest first. */
  branches(id: string): Promise<Branch[]>;
  /** Which slots of `history` are archived: what compactions have made memory of. */
  archived(id: string): Promise<SlotRange[]>;
  /** What of it is in the store, and what in the archive, from which it is read as if it were in the store. */
  whereabouts(id: string): Promise<Whereabouts>;
  /** What it remembers beside the messages word for word: summaries of its turns, and the facts of its scope. */
  memory(id: string, which?: { readonly all?: boolean }): Promise<Remembered>;
  /** All summaries that came with `perdura admin import`, newest first. It begins with those that stand for turns of its last session. */
  imported(id: string): Promise<EpisodeRecord[]>;
  /** What is in its memory channel (seed 003), of all its sessions, newest first, without the contents. */
  items(id: string): Promise<StoredItems>;
  /** One of them with its content as text, JSON where it is not one. Throws `not-found`. */
  item(id: string, itemId: string): Promise<StoredItem & { readonly text: string }>;
  /**
   * Its memory channel as its tools have it (seed 003, AgentMemory), also of one that has ended: `store`, `retrieve`, `query`, `clear`,
   * `snapshot` and `restore`. Of its latest session, where none is named; without `summary`, which takes a model.
   */
  openMemory(id: string, options?: { readonly session?: number }): Promise<AgentMemory>;
}

/** An item of the memory channel: what a tool found, or an agent or an application stored. */
export type StoredItem = Omit<ItemRecord, 'v'>;

/** The items of a memory channel. */
export interface StoredItems {
  readonly items: readonly StoredItem[];
  /** Records in the store that cannot be read. */
  readonly skipped: number;
}

export interface Reading {
  readonly store: () => Promise<Store>;
  readonly keyOf: (id: string, description?: Description) => Promise<ConversationKey>;
}

export function createReading({ store, keyOf }: Reading): ReadingClient {
  return {
    async *watch(id, { after = '$', signal = new AbortController().signal } = {}) {
      const key = await keyOf(id);
      for await (const { cursor, event } of (await store()).feed.read(key, after, signal)) {
        yield { cursor, event: event as unknown as FeedEvent };
      }
    },

    newestCursor: async (id, { of } = {}) => (await store()).feed.newest(await keyOf(id, of)),

    async history(id, { after: first = 0, branch } = {}) {
      const [opened, key] = [await store(), await keyOf(id)];
      if (branch === undefined) return readCurrent(opened, key, first);
      const entries = await readBranch(opened, key, branch);
      if (!entries) throw new ClientError('not-found', `${id} has no branch ${branch}`);
      return entries.filter(({ slot }) => slot > first);
    },

    async latest(id, options) {
      return readLatest(await store(), await keyOf(id), options);
    },

    async entries(id, slots, { whole = false } = {}) {
      const [opened, key] = [await store(), await keyOf(id)];
      const found = (await opened.entries.read(key, slots)).filter((entry) => entry !== undefined);
      if (!whole) return found;
      return Promise.all(found.map(async (entry) => ({ ...entry, message: await withBodies(opened, key, entry) })));
    },
    turnEnds: async (id) => readTurnEnds(await store(), await keyOf(id)),

    branches: async (id) => readBranches(await store(), await keyOf(id)),

    archived: async (id) => (await store()).entries.archived(await keyOf(id)),
    whereabouts: async (id) => findWhereabouts(await store(), await keyOf(id)),

    async memory(id, { all = false } = {}) {
      const key = await keyOf(id);
      const opened = await store();
      const [{ episodes, skipped }, { facts, skipped: skippedFacts }] = await Promise.all([
        opened.episodes.list(key),
        opened.facts.list(key, { all }),
      ]);
      return { episodes, facts, skipped: skipped + skippedFacts };
    },

    async imported(id) {
      const [opened, key] = [await store(), await keyOf(id)];
      const beginning = await opened.lives.beginning(key);
      const source = beginning?.shared.find(({ conversation, life }) => conversation === id && isImportedLife(life));
      if (!source) return [];
      const { life, scope } = source;
      return (await opened.episodes.list({ ...key, life, scope })).episodes;
    },

    async items(id) {
      const [opened, key] = [await store(), await keyOf(id)];
      const { items, skipped } = await opened.items.list(key);
      return { items: items.map(withoutVersion), skipped };
    },

    async item(id, itemId) {
      const [opened, key] = [await store(), await keyOf(id)];
      const record = await opened.items.get(key, itemId);
      if (!record)
        throw new ClientError(
          'not-found',
          `${id} has no item ${truncate(itemId, 80)}: \`perdura memory --of ${id} --items\` lists what there is`,
        );
      const text = await opened.bodies.get(key, record.content.ref);
      if (text === undefined)
        throw new ClientError('not-found', `the ${record.content.bytes} bytes of ${itemId} of ${id} are no longer in the store`);
      return { ...withoutVersion(record), text };
    },

    async openMemory(id, { session } = {}) {
      const [opened, key] = [await store(), await keyOf(id)];
      const latest = session ?? (await readCurrent(opened, key, 0)).at(-1)?.session ?? 1;
      const nextId = (): string => `mem_${randomUUID().replaceAll('-', '')}`;
      return openMemory({ store: opened, place: { ...key, session: latest }, nextId, now: () => new Date() });
    },
  };
}

function withoutVersion({ v: _, ...item }: ItemRecord): StoredItem {
  return item;
}

// The answer in full: of a long one only the beginning travels through Temporal, and the store has the whole.

export async function wholeAnswer(client: Pick<ReadingClient, 'history'>, id: string, result: TurnResult): Promise<string> {
  if (result.textRef === undefined) return result.text;
  const entries = await client.history(id);
  const answer = entries.findLast(({ turn, message }) => turn === result.turnId && message.role === 'assistant');
  return answer === undefined ? result.text : answerText(answer.message);
}

const MESSAGES_AT_ONCE = 500;

async function findWhereabouts(store: Store, key: ConversationKey): Promise<Whereabouts> {
  let messages = 0;
  for (let after = 0, last = 1; after < last; after += MESSAGES_AT_ONCE) {
    const page = await store.contents.entries.page(key, after, MESSAGES_AT_ONCE);
    last = page.last;
    messages += page.entries.length;
  }
  const longTexts = (await store.contents.bodyRefs(key)).length;
  const files = await store.archived.index(key);
  const sum = (count: (file: (typeof files)[number]) => number): number => files.reduce((all, file) => all + count(file), 0);
  return {
    store: { where: store.where, messages, longTexts },
    archive:
      files.length === 0
        ? null
        : {
            where: store.archived.place?.where ?? null,
            files: files.length,
            messages: sum(({ slots }) => countSlots(slots)),
            longTexts: sum(({ bodies }) => bodies.length),
            results: sum(({ results }) => results),
            bytes: sum(({ bytes }) => bytes),
            plainBytes: sum(({ plain }) => plain),
            at: new Date(Math.max(...files.map(({ at }) => at))),
          },
  };
}
