/** Entries, long texts, effects and lives of conversations in files, whose journals are open for as long as they are used. */
import { mkdir, readFile, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import type { Entry, JsonValue } from '../../records/message.js';
import { countSlots, listSlots } from '../../records/slots.js';
import type { Spent } from '../../records/spending.js';
import type { AtRest } from '../../platform/at-rest.js';
import { hashInRef, toBodyRef, verified } from '../codecs.js';
import { decideTexts, parseTexts, type OpenCollection } from '../collections/collection.js';
import type { LifeStorage } from '../collections/lives.js';
import { openConversation, type ConversationFiles, type OpenConversation } from './conversation.js';
import { isAbsent, isForeign, toUnavailable, unlessAbsent } from './errors.js';
import type { FileHandles } from './handles.js';
import { findSettlement, recordsIn, spentIn, toLine, toOutcome, type JournalIndex, type JournalLine } from './journal.js';
import { namesIn, readNewLines, UNREAD } from './lines.js';
import { conversationDir, conversationsDir, fromFileName, toFileName } from './paths.js';
import { claimsBy, describeBatch, recordsBy, toRanges } from '../shared-entries.js';
import type { Bodies, ConversationKey, Effects, Entries, Feed, LiveEvent, Spendings, Writes } from '../store.js';
import type { Contents, LedgerRecord, NamedPlace } from '../whole-ports.js';
import { errorCode } from '../../platform/errors.js';

/** How many conversations are open, and the bytes of their journals together, before the longest unused is let go. */
const OPEN_CONVERSATIONS = 256;
const OPEN_BYTES = 64 * 1024 * 1024;
/** Weighing all of them costs more than a read. */
const WEIGHED_EVERY = 32;

/** The journal of a conversation, open for as long as it is used. */
export type OpenJournal = (key: ConversationKey) => OpenConversation;

export interface OpenOptions extends Pick<ConversationFiles, 'handles' | 'withLock' | 'atRest' | 'log'> {
  /** How an entry reads in `raw_traces.jsonl`; without it there is no such file. */
  readonly traceLines?: (entry: Entry, key: ConversationKey) => readonly string[];
}

export function createOpenConversations(dir: string, { traceLines, log, handles, withLock, atRest }: OpenOptions): OpenJournal {
  const byDir = new Map<string, OpenConversation>();
  const synced = new Set<string>();
  let opened = 0;

  const letGo = (newest: string): void => {
    let bytes = [...byDir.values()].reduce((sum, { size }) => sum + size(), 0);
    for (const [oldest, { size }] of byDir) {
      if ((bytes <= OPEN_BYTES && byDir.size <= OPEN_CONVERSATIONS) || oldest === newest) break;
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
        atRest,
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

export function createWrites(dir: string, open: OpenJournal, feed: Feed): Writes {
  return {
    async apply(key, batch) {
      const index = await describeFailures(dir, key, `${describeBatch(batch)} of ${key.conversation}`, () =>
        open(key).write((before) => toLine(before, batch)),
      );
      publishBeside(feed, key, batch.publish);
      return toOutcome(index, batch);
    },
  };
}

/** Not waited for: watchers lose an event when the feed cannot be written, and the conversation nothing. */
function publishBeside(feed: Feed, key: ConversationKey, events: readonly LiveEvent[] = []): void {
  if (events.length > 0) feed.publish(key, events).catch(() => undefined);
}

export function createEntries(dir: string, open: OpenJournal, writes: Writes): Entries {
  return {
    ...recordsBy(writes),

    async read(key, slots) {
      const { entries } = await describeFailures(dir, key, `read ${slots.length} entries of ${key.conversation}`, () => open(key).read());
      return slots.map((slot) => entries.get(slot));
    },

    async page(key, after, limit) {
      const { entries, last, skipped } = await describeFailures(dir, key, `read entries after slot ${after} of ${key.conversation}`, () =>
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
      await describeFailures(dir, key, `archive ${countSlots(slots)} entries of ${key.conversation}`, () =>
        open(key).write((before) => {
          const changesNothing = move === before.move && listSlots(slots).every((slot) => before.archived.has(slot));
          return move < before.move || changesNothing ? undefined : { v: 1, kind: 'archived', slots, move };
        }),
      );
    },

    async restore(key, slots, move) {
      await describeFailures(dir, key, `restore ${countSlots(slots)} entries of ${key.conversation}`, () =>
        open(key).write((before) => {
          const changesNothing = move === before.move && !listSlots(slots).some((slot) => before.archived.has(slot));
          return move < before.move || changesNothing ? undefined : { v: 1, kind: 'restored', slots, move };
        }),
      );
    },

    async archived(key) {
      const { archived } = await describeFailures(dir, key, `read what is archived of ${key.conversation}`, () => open(key).read());
      return toRanges(archived);
    },
  };
}

/** Collections that change with calls of models are lines of the journal; all others have files. */
export function withJournalCollections(dir: string, open: OpenJournal, others: OpenCollection): OpenCollection {
  return (place, codec) => {
    if (place.name !== 'items' && place.name !== 'budget') return others(place, codec);
    const { name, key } = place;
    const select = (index: JournalIndex, ids: readonly string[] | undefined): ReadonlyMap<string, string> => {
      const all = recordsIn(index, name);
      return ids ? new Map([...all].filter(([id]) => ids.includes(id))) : all;
    };
    return {
      async read(attempt, _foreign, ids) {
        const index = await describeFailures(dir, key, attempt, () => open(key).read());
        const { items, taken } = parseTexts(codec, select(index, ids));
        return { items, skipped: taken.length + index.skipped };
      },

      async change(attempt, decide, ids) {
        await describeFailures(dir, key, attempt, () =>
          open(key).write(async (index) => {
            const changes = await decideTexts(codec, select(index, ids), decide);
            return changes.length === 0 ? undefined : { v: 1, kind: 'records', collection: name, changes };
          }),
        );
      },
    };
  };
}

export function createEffects(dir: string, open: OpenJournal, writes: Writes, feed: Feed): Effects {
  return {
    ...claimsBy(writes),

    async commit(key, claim, result, entries, { spent, items = [], publish } = {}) {
      const { id, hash } = claim;
      const index = await describeFailures(dir, key, `commit effect ${id} of ${key.conversation}`, () =>
        open(key).write((before) => {
          if (before.fenced.has(id))
            return spent === undefined || before.paid.has(id) ? undefined : { v: 1, kind: 'paid', id, fenced: true, spent };
          const reserved = before.reserved.get(id);
          if (before.committed.has(id) || (reserved && reserved.hash !== hash)) return undefined;
          return { v: 1, kind: 'committed', id, hash, result, entries, ...(spent && { spent }), ...(items.length > 0 && { items }) };
        }),
      );
      const commitment = findSettlement(index, claim) ?? { status: 'conflict' };
      if (commitment.status === 'committed') publishBeside(feed, key, publish);
      return commitment;
    },

    async spend(key, id, spending) {
      await describeFailures(dir, key, `write what ${id} of ${key.conversation} has cost`, () =>
        open(key).write(({ paid }) => (paid.has(id) ? undefined : { v: 1, kind: 'paid', id, spent: spending })),
      );
    },
  };
}

async function describeFailures<T>(dir: string, key: ConversationKey, attempt: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toUnavailable(attempt, conversationDir(dir, key), error);
  }
}

/** Long texts as files named by their hash: `bodies/<sha256>`, written beside and renamed, so none is ever half there. */
export function createFileBodies(dir: string, atRest: AtRest): Bodies {
  const bodies: Bodies = {
    async put(key, text) {
      const ref = toBodyRef(text);
      if ((await bodies.get(key, ref.ref)) !== undefined) return ref;
      const folder = join(conversationDir(dir, key), 'bodies');
      const path = join(folder, ref.sha256);
      try {
        await mkdir(folder, { recursive: true });
        const stored = atRest.seal(text);
        await writeFileAtomic(path, stored);
        // A write cut short by a full disk is no error to write-file-atomic.
        if ((await stat(path)).size !== Buffer.byteLength(stored)) {
          await unlink(path);
          throw new Error('it was written in part only, the disk may be full');
        }
        return ref;
      } catch (error) {
        throw toUnavailable(`store a body of ${ref.bytes} bytes of ${key.conversation}`, path, error);
      }
    },

    async get(key, ref) {
      const sha256 = hashInRef(ref);
      if (sha256 === undefined) return undefined;
      const path = join(conversationDir(dir, key), 'bodies', sha256);
      try {
        return verified(atRest.openRecord(await readFile(path, 'utf8')), sha256);
      } catch (error) {
        if (isAbsent(error) || isForeign(error)) return undefined;
        throw toUnavailable(`read body ${ref} of ${key.conversation}`, path, error);
      }
    },
  };
  return bodies;
}

/** The costs of all conversations: from their journals, line by line. */
export function createFileSpendings(dir: string, atRest: AtRest): Spendings {
  return {
    async *all() {
      for (const journal of await journals(dir)) yield* await readSpent(journal, atRest);
    },
  };
}

async function journals(dir: string): Promise<string[]> {
  const found: string[] = [];
  const agents = join(dir, 'agents');
  for (const scope of await namesIn(agents)) {
    const conversations = join(agents, scope, 'conversations');
    for (const conversation of await namesIn(conversations)) {
      const lives = join(conversations, conversation);
      for (const life of await namesIn(lives)) found.push(join(lives, life, 'journal.jsonl'));
    }
  }
  return found;
}

/** Once per id, as the journal's index has it (file/first-line-wins). */
async function readSpent(journal: string, atRest: AtRest): Promise<Iterable<Spent>> {
  const found = new Map<string, Spent>();
  const take = (line: string): void => {
    const spent = spentIn(atRest.openRecord(line));
    if (spent && !found.has(spent.id)) found.set(spent.id, spent);
  };
  try {
    await readNewLines(journal, UNREAD, take, () => undefined);
  } catch (error) {
    if (!isForeign(error)) throw toUnavailable('read what was spent', journal, error);
  }
  return found.values();
}

export function createFileLifeStorage(dir: string, handles: Pick<FileHandles, 'forget'>): Omit<LifeStorage, 'archiveShared'> {
  return {
    async list({ namespace, conversation, scope, tree = false }) {
      const scopes = scope === undefined ? await namesIn(join(dir, 'agents')) : [toFileName(scope)];
      const found: ConversationKey[] = [];
      for (const name of scopes) {
        const of = decodeURIComponent(name);
        const folder = conversationsDir(dir, { scope: of });
        const below = tree ? (await namesIn(folder)).flatMap((known) => subAgentIn(known, conversation) ?? []) : [];
        for (const each of [conversation, ...below]) {
          for (const life of await namesIn(join(folder, toFileName(each)))) {
            found.push({ namespace, conversation: each, scope: of, life: decodeURIComponent(life) });
          }
        }
      }
      return found;
    },

    async remove(key, attempt) {
      const folder = conversationDir(dir, key);
      handles.forget(folder);
      try {
        await rm(folder, { recursive: true, force: true, maxRetries: 3 });
        await rmdir(dirname(folder));
      } catch (error) {
        // Other lives are there.
        if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errorCode(error) ?? '')) throw toUnavailable(attempt, folder, error);
      }
    },
  };
}

/** The id of a conversation whose folder it is, where that is one of the sub-agents of another. */
function subAgentIn(name: string, conversation: string): string | undefined {
  // A long name ends in a hash, which no id can be read from: ids of sub-agents as deep as they go are shorter.
  if (!name.startsWith(toFileName(`${conversation}:`)) || name.includes('~')) return undefined;
  return decodeURIComponent(name);
}

// What copies and archives need of the files.

interface FileContents extends Pick<Contents, 'entries' | 'bodies' | 'open'> {
  readonly dir: string;
  readonly journal: OpenJournal;
  readonly atRest: AtRest;
}

export function createFileContents({ dir, journal, atRest, ...ports }: FileContents): Contents {
  return {
    ...ports,

    async *named(namespace) {
      const names = async (folder: string): Promise<string[]> =>
        (await namesIn(join(dir, folder))).flatMap((name) => (name.endsWith('.jsonl') ? (fromFileName(name.slice(0, -6)) ?? []) : []));
      for (const conversation of await names('deleted')) yield { kind: 'deleted', key: { namespace, conversation } } satisfies NamedPlace;
      for (const agent of await names('pins')) yield { kind: 'pins', key: { namespace, agent } } satisfies NamedPlace;
      for (const owner of await names('sign-ins')) yield { kind: 'sign-ins', key: { namespace, owner } } satisfies NamedPlace;
    },

    bodyRefs: async (key) =>
      (await namesIn(join(conversationDir(dir, key), 'bodies'))).flatMap((name) => (/^[0-9a-f]{64}$/.test(name) ? `sha256:${name}` : [])),

    async drop(key, { entries, bodies, results }, standIn) {
      const folder = conversationDir(dir, key);
      const taken = new Map(entries.map((entry) => [entry.slot, JSON.stringify(entry)]));
      const isTaken = (entry: Entry): boolean => taken.get(entry.slot) === JSON.stringify(entry);
      const changed = await journal(key).rewrite(async (index) => {
        // What a newer program wrote would be lost.
        if (index.skipped > 0) return undefined;
        const spent = [...(await readSpent(join(folder, 'journal.jsonl'), atRest))];
        return toWhole(index, spent, { isTaken, results, standIn });
      });
      if (!changed) return false;
      for (const text of bodies) await unlessAbsent(unlink(join(folder, 'bodies', toBodyRef(text).sha256)));
      return true;
    },

    lastMove: async (key) => (await journal(key).read()).move,

    async *ledger(key) {
      const { committed, reserved, fenced } = await journal(key).read();
      // As they are now: others write meanwhile.
      const known: LedgerRecord[] = [
        ...Array.from(committed, ([id, one]): LedgerRecord => ({ kind: 'committed', id, ...one })),
        ...Array.from(fenced, (id): LedgerRecord => ({ kind: 'fenced', id })),
        ...Array.from(reserved, ([id, { hash, attempts }]): LedgerRecord => ({ kind: 'reserved', id, hash, attempts: [...attempts] })),
      ];
      yield* known;
      for (const { id, fenced: _, ...spending } of await readSpent(join(conversationDir(dir, key), 'journal.jsonl'), atRest))
        yield { kind: 'spent', id, spending };
    },

    restoreLedger: (key: ConversationKey, records) =>
      journal(key)
        .write((index) => records.flatMap((record) => toLines(index, record)))
        .then(() => undefined),
  };
}

interface Taken {
  readonly isTaken: (entry: Entry) => boolean;
  readonly results: Readonly<Record<string, JsonValue>>;
  readonly standIn: JsonValue;
}

/** A journal that comes to the same index, without what is taken. */
function toWhole(index: JournalIndex, spent: readonly Spent[], { isTaken, results, standIn }: Taken): JournalLine[] {
  const stay = [...index.entries.values()].filter((entry) => !isTaken(entry));
  const there = new Set(stay.flatMap(({ messageId }) => messageId ?? []));
  const away = [...index.messages].flatMap(([id, { turn, slot }]) => (there.has(id) ? [] : [[id, turn, slot] as const]));
  const archived = toRanges(index.archived);
  return [
    { v: 1, kind: 'away', messages: away, last: index.last },
    ...stay.map((entry): JournalLine => ({ v: 1, kind: 'written', appended: [entry] })),
    ...(index.fenced.size > 0 ? [{ v: 1 as const, kind: 'written' as const, fenced: [...index.fenced] }] : []),
    ...Array.from(index.committed, ([id, { hash, result }]): JournalLine => {
      const isArchived = Object.hasOwn(results, id) && JSON.stringify(results[id]) === JSON.stringify(result);
      return { v: 1, kind: 'committed', id, hash, result: isArchived ? standIn : result, entries: [] };
    }),
    ...Array.from(index.reserved).flatMap(([id, { hash, attempts }]) =>
      attempts.map((attempt): JournalLine => ({ v: 1, kind: 'written', reserved: { id, hash, attempt } })),
    ),
    ...Array.from(index.records).flatMap(([collection, records]): JournalLine[] =>
      records.size === 0
        ? []
        : [{ v: 1, kind: 'records', collection, changes: Array.from(records, ([id, text]) => [id, '', text] as const) }],
    ),
    ...(index.move >= 0 ? [{ v: 1 as const, kind: 'archived' as const, slots: archived, move: index.move }] : []),
    ...spent.map(({ id, fenced, ...spending }): JournalLine => ({ v: 1, kind: 'paid', id, ...(fenced && { fenced }), spent: spending })),
  ];
}

/** None where it is there. */
function toLines(index: JournalIndex, record: LedgerRecord): JournalLine[] {
  const { id } = record;
  const isSettled = index.committed.has(id) || index.fenced.has(id);
  switch (record.kind) {
    case 'committed':
      return isSettled ? [] : [{ v: 1, kind: 'committed', id, hash: record.hash, result: record.result, entries: [] }];
    case 'fenced':
      return isSettled ? [] : [{ v: 1, kind: 'written', fenced: [id] }];
    case 'reserved': {
      const known = index.reserved.get(id)?.attempts ?? [];
      const missing = isSettled ? [] : record.attempts.filter((attempt) => !known.includes(attempt));
      return missing.map((attempt) => ({ v: 1, kind: 'written', reserved: { id, hash: record.hash, attempt } }));
    }
    case 'spent':
      return index.paid.has(id) ? [] : [{ v: 1, kind: 'paid', id, ...(index.fenced.has(id) && { fenced: true }), spent: record.spending }];
    default:
      return record satisfies never;
  }
}
