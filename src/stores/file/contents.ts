/** What a copy needs of the files (backup/contents.ts). */
import { join } from 'node:path';
import type { AtRest } from '../../platform/at-rest.js';
import type { Contents, LedgerRecord, NamedPlace } from '../backup/contents.js';
import type { ConversationKey } from '../store.js';
import { readSpent, type OpenJournal } from './entries.js';
import type { JournalIndex, JournalLine } from './journal.js';
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
