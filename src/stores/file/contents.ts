/** What a copy needs of the files (backup/contents.ts). */
import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { AtRest } from '../../platform/at-rest.js';
import type { Entry, JsonValue } from '../../records/message.js';
import type { Spent } from '../../records/spending.js';
import { toBodyRef } from '../codecs.js';
import { toRanges } from '../shared-entries.js';
import type { Contents, LedgerRecord, NamedPlace } from '../backup/contents.js';
import type { ConversationKey } from '../store.js';
import { readSpent, type OpenJournal } from './entries.js';
import type { JournalIndex, JournalLine } from './journal.js';
import { unlessAbsent } from './errors.js';
import { namesIn } from './lines.js';
import { conversationDir, fromFileName } from './paths.js';

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
