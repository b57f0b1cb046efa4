/**
 * The store in files, for one machine. Below `<dir>/agents/<scope>/conversations/<conversation>/<life>/` there are
 *
 *   journal.jsonl     the truth: one line per write (journal.ts)
 *   raw_traces.jsonl, raw_traces_archive.jsonl
 *                     derived from it, in the seed's format, for people and grep: the active ones, and the compacted ones
 *   episodic.jsonl    summaries of what was compacted
 *   bodies/           long texts by their SHA-256
 *   lineage.jsonl, cuts.jsonl, forks.jsonl
 *                     how it stands on other lives, and others on it (collections/lives.ts)
 *   turn-ends.jsonl   how turns ended that have no whole answer (collections/turn-ends.ts)
 *   feed.jsonl        live events, bounded, not synced
 *   lock, *.lock      who writes just now (lock.ts)
 *
 * and in `<dir>/agents/<scope>/` what all its conversations share: semantic.jsonl, MEMORY.md and HISTORY (documents.ts), and
 * search-index.*.bin, the index of what was said, which is made again from the rest where it is not there.
 * What is accepted of the MCP servers of an agent is in `<dir>/pins/<agent>.jsonl`; files that wait to be used are in `<dir>/uploads/`
 * (uploads.ts); `<dir>/locks/` has a file for each process that writes (lock.ts), `<dir>/store-id` the name that the store gave itself.
 */
import { constants } from 'node:fs';
import { access, link, mkdir, readFile, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Entry } from '../../records/message.js';
import { countSlots, listSlots } from '../../records/slots.js';
import { createFileBodies } from './bodies.js';
import { openConversation, type ConversationFiles, type OpenConversation } from './conversation.js';
import { createFileDocuments } from './documents.js';
import { toUnavailable } from './errors.js';
import { createFileFeed } from './feed.js';
import { createFileCollections } from './lists.js';
import { createFileLifeStorage } from './lives.js';
import { createFileBudgets } from './budgets.js';
import { createFileScopes } from './scopes.js';
import { createFileSpendings } from './spendings.js';
import { noteChange } from './changes.js';
import { createFileVectors } from './vectors.js';
import { createFileUploads } from './uploads.js';
import { createFileCalls } from './calls.js';
import { createFileHandles } from './handles.js';
import { lineOf, outcomeOf, settlementOf } from './journal.js';
import { createLocks } from './lock.js';
import { conversationDir } from './paths.js';
import { createLives, createTombstones } from '../collections/lives.js';
import { createEpisodes, createFacts } from '../collections/memory.js';
import { createPins } from '../collections/pins.js';
import { createTurnEnds } from '../collections/turn-ends.js';
import { freshStoreId, isStoreId } from '../store-id.js';
import { createDeletedGuard, withDeletedGuarded } from '../deleted-lives.js';
import { withChangesNoted } from '../noted-changes.js';
import { withShared, type OwnItems, describeBatch, toRanges } from '../shared-entries.js';
import { byTime } from '../../records/memory/agent-memory.js';
import type { ConversationKey, Effects, Entries, Feed, LiveEvent, Store, Writes } from '../store.js';
import { errorCode } from '../../platform/errors.js';

export interface FileStoreOptions {
  readonly dir: string;
  /** How an entry reads in `raw_traces.jsonl`; without it there is no such file. */
  readonly traceLines?: (entry: Entry, key: ConversationKey) => readonly string[];
  /** Live events kept per conversation, at least. */
  readonly feedMaxLength?: number;
  readonly log?: (line: string) => void;
}

/** How many conversations are kept open, and the bytes of their journals together, before the longest unused is let go. */
const OPEN_CONVERSATIONS = 256;
const OPEN_BYTES = 64 * 1024 * 1024;
/** Weighing all of them costs more than a read. */
const WEIGHED_EVERY = 32;

type Open = (key: ConversationKey) => OpenConversation;

export function createFileStore(options: FileStoreOptions): Store {
  const dir = resolve(options.dir);
  const calls = createFileCalls();
  const handles = createFileHandles(calls);
  const locks = createLocks(dir, calls);
  const open = createOpenConversations(dir, { ...options, handles, withLock: locks.withLock });
  const collections = createFileCollections(dir);
  const storage = createFileLifeStorage(dir, handles);
  const guard = createDeletedGuard(createTombstones(collections), {
    async remove(key) {
      await storage.remove(key, `delete ${key.conversation}`);
      noteChange(dir, key);
    },
  });
  const feed = createFileFeed(dir, { maxLength: options.feedMaxLength ?? 10_000, handles, withLock: locks.withLock });
  // What is published beside a write is not waited for, so it looks itself.
  const beside: Feed = { ...feed, publish: guard.after((key, events) => feed.publish(key, events)) };
  const writes = createWrites(dir, open, beside);
  const own = { entries: createEntries(dir, open, writes), bodies: createFileBodies(dir), items: createItems(dir, open) };
  const lives = createLives(collections, { ...storage, archiveShared: (key, archived) => own.entries.archive(key, archived, 0) });
  const ofLives = {
    ...withShared(own, lives),
    lives,
    effects: createEffects(dir, open, writes, beside),
    writes,
    feed,
    episodes: createEpisodes(collections),
    turnEnds: createTurnEnds(collections),
    vectors: createFileVectors(dir, locks.withLock),
    budgets: createFileBudgets(async (key, attempt, line) => {
      await inWords(dir, key, `${attempt} of ${key.conversation}`, () => open(key).write(({ budget }) => line(budget)));
    }),
  };
  const noted = withChangesNoted(ofLives, (key) => noteChange(dir, key), { byItself: false });
  return {
    kind: 'file',
    where: dir,
    id: () => storeId(dir),
    ...withDeletedGuarded(noted, guard, { byItself: false }),
    spendings: createFileSpendings(dir),
    facts: createFacts(collections),
    documents: createFileDocuments(dir),
    pins: createPins(collections),
    scopes: createFileScopes(dir),
    uploads: createFileUploads(dir),
    check: () => checkDirectory(dir),
    async close() {
      await feed.close();
      handles.close();
      locks.close();
    },
  };
}

function createOpenConversations(
  dir: string,
  { traceLines, log, handles, withLock }: FileStoreOptions & Pick<ConversationFiles, 'handles' | 'withLock'>,
): Open {
  const byDir = new Map<string, OpenConversation>();
  const synced = new Set<string>();
  let opened = 0;

  const letGo = (kept: string): void => {
    let bytes = [...byDir.values()].reduce((sum, { size }) => sum + size(), 0);
    for (const [oldest, { size }] of byDir) {
      if ((bytes <= OPEN_BYTES && byDir.size <= OPEN_CONVERSATIONS) || oldest === kept) break;
      bytes -= size();
      byDir.delete(oldest);
    }
  };
  return (key) => {
    const path = conversationDir(dir, key);
    const known = byDir.get(path);
    const conversation =
      known ??
      openConversation({
        dir: path,
        handles,
        withLock,
        synced,
        log,
        ...(traceLines && { traceLines: (entry: Entry) => traceLines(entry, key) }),
      });
    // A Map keeps the order of insertion: the first is the longest unused.
    byDir.delete(path);
    byDir.set(path, conversation);
    if (!known || ++opened % WEIGHED_EVERY === 0) letGo(path);
    return conversation;
  };
}

function createWrites(dir: string, open: Open, feed: Feed): Writes {
  return {
    async apply(key, batch) {
      const index = await inWords(dir, key, `${describeBatch(batch)} of ${key.conversation}`, () =>
        open(key).write((before) => lineOf(before, batch)),
      );
      publishBeside(feed, key, batch.publish);
      return outcomeOf(index, batch);
    },
  };
}

/** Not waited for: watchers lose an event when the feed cannot be written, and the conversation nothing. */
function publishBeside(feed: Feed, key: ConversationKey, events: readonly LiveEvent[] = []): void {
  if (events.length > 0) feed.publish(key, events).catch(() => undefined);
}

function createEntries(dir: string, open: Open, writes: Writes): Entries {
  return {
    record: async (key, entries) => (entries.length === 0 ? [] : (await writes.apply(key, { record: entries })).recorded),

    async append(key, entries) {
      if (entries.length > 0) await writes.apply(key, { append: entries });
    },

    async read(key, slots) {
      const { entries } = await inWords(dir, key, `read ${slots.length} entries of ${key.conversation}`, () => open(key).read());
      return slots.map((slot) => entries.get(slot));
    },

    async page(key, after, limit) {
      const { entries, last, skipped } = await inWords(dir, key, `read entries after slot ${after} of ${key.conversation}`, () =>
        open(key).read(),
      );
      const found: Entry[] = [];
      for (let slot = after + 1; slot <= Math.min(after + limit, last); slot += 1) {
        const entry = entries.get(slot);
        if (entry !== undefined) found.push(entry);
      }
      return { entries: found, last, skipped };
    },

    async archive(key, slots, move) {
      await inWords(dir, key, `archive ${countSlots(slots)} entries of ${key.conversation}`, () =>
        open(key).write((before) => {
          const changesNothing = move === before.move && listSlots(slots).every((slot) => before.archived.has(slot));
          return move < before.move || changesNothing ? undefined : { v: 1, kind: 'archived', slots, move };
        }),
      );
    },

    async restore(key, slots, move) {
      await inWords(dir, key, `restore ${countSlots(slots)} entries of ${key.conversation}`, () =>
        open(key).write((before) => {
          const changesNothing = move === before.move && !listSlots(slots).some((slot) => before.archived.has(slot));
          return move < before.move || changesNothing ? undefined : { v: 1, kind: 'restored', slots, move };
        }),
      );
    },

    async archived(key) {
      const { archived } = await inWords(dir, key, `read what is archived of ${key.conversation}`, () => open(key).read());
      return toRanges(archived);
    },
  };
}

function createItems(dir: string, open: Open): OwnItems {
  return {
    async put(key, items) {
      if (items.length === 0) return;
      await inWords(dir, key, `store ${items.length} items of ${key.conversation}`, () =>
        open(key).write((before) => {
          const missing = items.filter(({ id }) => !before.items.has(id));
          return missing.length === 0 ? undefined : { v: 1, kind: 'items', items: missing };
        }),
      );
    },

    async get(key, id) {
      const { items } = await inWords(dir, key, `read item ${id} of ${key.conversation}`, () => open(key).read());
      return items.has(id) ? (items.get(id) ?? null) : undefined;
    },

    async list(key, { session } = {}) {
      const { items, skipped } = await inWords(dir, key, `read the items of ${key.conversation}`, () => open(key).read());
      const there = [...items.values()].flatMap((item) => item ?? []);
      const removed = [...items].flatMap(([id, item]) => (item === undefined ? [id] : []));
      return { items: there.filter((item) => session === undefined || item.session === session).sort(byTime), removed, skipped };
    },

    async remove(key, ids) {
      if (ids.length === 0) return;
      await inWords(dir, key, `remove ${ids.length} items of ${key.conversation}`, () =>
        open(key).write(({ items }) =>
          ids.every((id) => items.has(id) && items.get(id) === undefined) ? undefined : { v: 1, kind: 'items-removed', ids },
        ),
      );
    },

    async cite(key, id, citation) {
      await inWords(dir, key, `store what is shown for item ${id} of ${key.conversation}`, () =>
        open(key).write(({ cited }) => (cited.has(id) ? undefined : { v: 1, kind: 'cited', id, citation })),
      );
    },

    async citations(key, ids) {
      if (ids.length === 0) return [];
      const { cited } = await inWords(dir, key, `read what is shown for items of ${key.conversation}`, () => open(key).read());
      return ids.map((id) => cited.get(id));
    },
  };
}

function createEffects(dir: string, open: Open, writes: Writes, feed: Feed): Effects {
  return {
    async reserve(key, claim, attempt) {
      const { reservation } = await writes.apply(key, { reserve: { claim, attempt } });
      return reservation ?? { status: 'conflict' };
    },

    async commit(key, claim, result, entries, { spent, items = [], publish } = {}) {
      const { id, hash } = claim;
      const index = await inWords(dir, key, `commit effect ${id} of ${key.conversation}`, () =>
        open(key).write((before) => {
          if (before.fenced.has(id))
            return spent === undefined || before.paid.has(id) ? undefined : { v: 1, kind: 'paid', id, fenced: true, spent };
          const reserved = before.reserved.get(id);
          if (before.committed.has(id) || (reserved && reserved.hash !== hash)) return undefined;
          return { v: 1, kind: 'committed', id, hash, result, entries, ...(spent && { spent }), ...(items.length > 0 && { items }) };
        }),
      );
      const commitment = settlementOf(index, claim) ?? { status: 'conflict' };
      if (commitment.status === 'committed') publishBeside(feed, key, publish);
      return commitment;
    },

    fence: async (key, ids) => (ids.length === 0 ? [] : (await writes.apply(key, { fence: ids })).fenced),

    async spend(key, id, spending) {
      await inWords(dir, key, `write what ${id} of ${key.conversation} has cost`, () =>
        open(key).write(({ paid }) => (paid.has(id) ? undefined : { v: 1, kind: 'paid', id, spent: spending })),
      );
    },
  };
}

async function inWords<T>(dir: string, key: ConversationKey, attempt: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toUnavailable(attempt, conversationDir(dir, key), error);
  }
}

/** Linked into its place whole: of two processes that make it, both get the first one's. */
async function storeId(dir: string): Promise<string> {
  const file = join(dir, 'store-id');
  try {
    await mkdir(dir, { recursive: true });
    const fresh = `${file}.${process.pid}.${freshStoreId()}`;
    const before = await readFile(file, 'utf8').catch(() => '');
    if (isStoreId(before.trim())) return before.trim();
    await writeFile(fresh, `${freshStoreId()}\n`);
    try {
      await (before === '' ? link(fresh, file) : rename(fresh, file));
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
    } finally {
      await rm(fresh, { force: true });
    }
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw toUnavailable('read the name of the store', file, error);
  }
}

/** By the magic numbers of Linux' statfs. */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
]);

async function checkDirectory(dir: string): Promise<string[]> {
  try {
    await mkdir(join(dir, 'agents'), { recursive: true });
    await access(join(dir, 'agents'), constants.R_OK | constants.W_OK);
    const network = NETWORK_FILE_SYSTEMS.get((await statfs(dir)).type);
    if (network === undefined) return [];
    return [`${dir} lies on a network file system (${network}): the file store is for one machine and a local disk; use Redis (REDIS_URL)`];
  } catch (error) {
    throw toUnavailable('use the memory directory', dir, error);
  }
}
