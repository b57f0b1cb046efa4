/** What every store must do with MEMORY.md, HISTORY and what lies beside them: the promises of the port `Documents`, as facts. */
import fc from 'fast-check';
import type { HistoryEntry, MemoryWrite, Proposal, SourcedLine } from '../../src/records/memory/documents.js';
import { historyText, toKeptEntry } from '../../src/records/memory/history-text.js';
import { memoryVersion } from '../../src/stores/codecs.js';
import { DocumentRefused, MAX_MEMORY, type ScopeKey, type Store } from '../../src/stores/store.js';
import { aScope, numbered } from './builders.js';

export interface DocumentsSubject {
  /** Every store that one test opens lies on the same bytes, as two processes would have it. */
  open(): Store;
  /** Changes MEMORY.md as a person would, past the store. */
  editMemory(key: ScopeKey, text: string): Promise<void>;
  /** All of HISTORY, as a person would read it. */
  historyText(key: ScopeKey, store: Store): Promise<string>;
  end(): Promise<void>;
}

export function documentsContract(name: string, make: () => Promise<DocumentsSubject>): void {
  describe(`the documents of ${name}`, () => {
    let subject: DocumentsSubject;
    let opened: Store[];
    let store: Store;
    let key: ScopeKey;
    const open = (): Store => {
      const another = subject.open();
      opened.push(another);
      return another;
    };

    beforeAll(async () => {
      subject = await make();
    });
    beforeEach(() => {
      opened = [];
      store = open();
      key = aScope();
    });
    afterEach(async () => {
      await Promise.all(opened.map((each) => each.close()));
    });
    afterAll(() => subject.end());

    describe('MEMORY.md', () => {
      test('is empty before anybody has written it', async () => {
        expect(await store.documents.memory(key)).toEqual({ version: 'empty', text: '' });
        expect(await store.documents.memoryText(key, 'empty')).toBe('');
        expect(await store.documents.memoryText(key, memoryVersion('never written'))).toBeUndefined();
        expect(await store.documents.memoryText(key, '../MEMORY')).toBeUndefined();
        expect(await store.documents.changes(key)).toEqual({ changes: [], skipped: 0 });
      });

      test.each(['- größer 🎈\n', '\ufeff- with a mark\r\n- of order\r\n', 'no newline', '\n\n', 'a\u0000b\t'])(
        'comes back byte for byte: %j',
        async (text) => {
          const version = memoryVersion(text);
          expect(await store.documents.writeMemory(key, aWrite('w1', 'empty', text))).toEqual({ status: 'written', version });
          for (const each of [store, open()]) {
            expect(await each.documents.memory(key)).toEqual({ version, text });
            expect(await each.documents.memoryText(key, version)).toBe(text);
          }
        },
      );

      test('changes are reported in their order, with where each line comes from, and every version stays readable', async () => {
        const lines: SourcedLine[] = [
          { line: '- two', source: { trust: 'tool:read_file', conversation: 'conv_8', turn_ids: ['turn_0001'] } },
        ];
        const [one, two] = [memoryVersion('- one\n'), memoryVersion('- one\n- two\n')];
        await store.documents.writeMemory(key, aWrite('w1', 'empty', '- one\n'));
        await store.documents.writeMemory(key, aWrite('w2', one, '- one\n- two\n', { cause: 'accepted', lines, ts: 8.25 }));
        expect(await open().documents.changes(key)).toEqual({
          changes: [
            { id: 'w1', ts: 7, cause: 'consolidation', from: 'empty', version: one, lines: [] },
            { id: 'w2', ts: 8.25, cause: 'accepted', from: one, version: two, lines },
          ],
          skipped: 0,
        });
        expect(await open().documents.memoryText(key, one)).toBe('- one\n');
      });

      test('is not written from another version than the one in place; the id is free for the next attempt', async () => {
        await store.documents.writeMemory(key, aWrite('w1', 'empty', 'one'));
        const current = { version: memoryVersion('one'), text: 'one' };
        expect(await open().documents.writeMemory(key, aWrite('w2', 'empty', 'two'))).toEqual({ status: 'conflict', current });
        expect(await store.documents.memory(key)).toEqual(current);
        expect(await store.documents.memoryText(key, memoryVersion('two'))).toBeUndefined();
        const version = memoryVersion('one two');
        expect(await store.documents.writeMemory(key, aWrite('w2', current.version, 'one two'))).toEqual({ status: 'written', version });
        expect((await store.documents.changes(key)).changes.map(({ id }) => id)).toEqual(['w1', 'w2']);
      });

      test('written again with the same id answers as the first time and changes nothing, whatever came after', async () => {
        const [one, two] = [memoryVersion('one'), memoryVersion('two')];
        await store.documents.writeMemory(key, aWrite('w1', 'empty', 'one'));
        await store.documents.writeMemory(key, aWrite('w2', one, 'two'));
        for (const each of [store, open()]) {
          expect(await each.documents.writeMemory(key, aWrite('w1', 'empty', 'one'))).toEqual({ status: 'written', version: one });
          expect(await each.documents.writeMemory(key, aWrite('w1', two, 'something else'))).toEqual({ status: 'written', version: one });
        }
        expect(await store.documents.memory(key)).toEqual({ version: two, text: 'two' });
        expect((await store.documents.changes(key)).changes).toHaveLength(2);
      });

      test('may become empty, stay the same and come back', async () => {
        const one = memoryVersion('one');
        await store.documents.writeMemory(key, aWrite('w1', 'empty', 'one'));
        await store.documents.writeMemory(key, aWrite('w2', one, 'one'));
        await store.documents.writeMemory(key, aWrite('w3', one, ''));
        expect(await open().documents.memory(key)).toEqual({ version: 'empty', text: '' });
        await store.documents.writeMemory(key, aWrite('w4', 'empty', 'one'));
        expect(await open().documents.memory(key)).toEqual({ version: one, text: 'one' });
        expect((await store.documents.changes(key)).changes.map(({ version }) => version)).toEqual([one, one, 'empty', one]);
      });

      test('of more than a MiB is refused in words', async () => {
        const write = store.documents.writeMemory(key, aWrite('w1', 'empty', 'x'.repeat(MAX_MEMORY + 1)));
        await expect(write).rejects.toBeInstanceOf(DocumentRefused);
        await expect(write).rejects.toThrow(/it would have 1048577 bytes, at most 1048576 are written; shorten it$/);
        await subject.editMemory(key, 'x'.repeat(MAX_MEMORY + 1));
        await expect(store.documents.memory(key)).rejects.toThrow(/it has 1048577 bytes, at most 1048576 are read; shorten it$/);
      });

      test('of 20 who write at once from what they read, none is lost', async () => {
        const stores = [store, open()];
        await Promise.all(numbered(1, 20).map(({ n }) => addLine(stores[n % 2] as Store, key, `w${n}`, `- line ${n}`)));
        const { text, version } = await store.documents.memory(key);
        expect(text.trim().split('\n').sort()).toEqual(
          numbered(1, 20)
            .map(({ n }) => `- line ${n}`)
            .sort(),
        );
        const { changes } = await open().documents.changes(key);
        expect(changes.map(({ from }) => from)).toEqual(['empty', ...changes.slice(0, -1).map((change) => change.version)]);
        expect(changes.at(-1)?.version).toBe(version);
      });

      test('of another scope is another', async () => {
        await store.documents.writeMemory(key, aWrite('w1', 'empty', 'mine'));
        expect(await store.documents.memory(aScope())).toEqual({ version: 'empty', text: '' });
      });
    });

    describe('an edit by hand', () => {
      test('is a change of its own when it is first seen, once, of the lines that are new', async () => {
        await store.documents.writeMemory(key, aWrite('w1', 'empty', '- one\n- two\n', { ts: 9e9 }));
        await subject.editMemory(key, '# Mine\n\n- two\n-  one\n- three\n');
        const version = memoryVersion('# Mine\n\n- two\n-  one\n- three\n');
        const seen = await Promise.all([store, open(), open()].map((each) => each.documents.memory(key)));
        expect(new Set(seen.map((memory) => memory.version))).toEqual(new Set([version]));
        const { changes } = await store.documents.changes(key);
        expect(changes.slice(1)).toEqual([
          {
            id: expect.stringContaining(`hand/${version}`) as string,
            // Never before the change that it follows.
            ts: 9e9,
            cause: 'hand',
            from: memoryVersion('- one\n- two\n'),
            version,
            lines: ['# Mine', '- three'].map((line) => ({ line, source: { trust: 'person' } })),
          },
        ]);
        expect(await open().documents.memoryText(key, version)).toBe('# Mine\n\n- two\n-  one\n- three\n');
      });

      test('of a text that nobody has read is not written over: who writes from the one before gets it as conflict', async () => {
        await store.documents.writeMemory(key, aWrite('w1', 'empty', 'one'));
        await subject.editMemory(key, 'by hand');
        const current = { version: memoryVersion('by hand'), text: 'by hand' };
        expect(await store.documents.writeMemory(key, aWrite('w2', memoryVersion('one'), 'two'))).toEqual({ status: 'conflict', current });
        expect(await open().documents.memory(key)).toEqual(current);
        expect((await store.documents.changes(key)).changes.map(({ cause }) => cause)).toEqual(['consolidation', 'hand']);
      });

      test('that brings an earlier text back is another change, and so is a file that a person wrote first', async () => {
        for (const text of ['mine', 'other', 'mine', '', 'mine']) {
          await subject.editMemory(key, text);
          expect((await store.documents.memory(key)).text).toBe(text);
        }
        const { changes } = await open().documents.changes(key);
        expect(changes.map(({ from, version }) => [from, version])).toEqual(
          [
            ['', 'mine'],
            ['mine', 'other'],
            ['other', 'mine'],
            ['mine', ''],
            ['', 'mine'],
          ].map((texts) => texts.map(memoryVersion)),
        );
        expect(new Set(changes.map(({ id }) => id)).size).toBe(5);
      });
    });

    describe('HISTORY', () => {
      const read = async (from: Store = store): Promise<HistoryEntry[]> => collect(from.documents.history(key));

      test('is empty at first', async () => {
        expect(await read()).toEqual([]);
      });

      test('has each entry once, newest first', async () => {
        const [first, second] = [entry('c1', 100.125, 'first'), entry('c2', 200, 'second\n\nparagraph')];
        expect(await store.documents.appendHistory(key, first)).toBe('appended');
        expect(await open().documents.appendHistory(key, second)).toBe('appended');
        for (const each of [store, open()]) expect(await each.documents.appendHistory(key, { ...first, text: 'other' })).toBe('known');
        expect(await read(open())).toEqual([second, first]);
        expect(await subject.historyText(key, store)).toBe(
          '## 1970-01-01T00:01:40.125Z\nfirst\n\n## 1970-01-01T00:03:20.000Z\nsecond\n\nparagraph\n',
        );
      });

      test('a summary after the raw fallback of the same id says which one it supersedes; afterwards that fallback is no more written', async () => {
        const fallback = entry('c1', 1772202600, '[raw-fallback] user: hello', 'raw-fallback');
        const summary = entry('c1', 1772202700, 'They said hello.');
        expect(await store.documents.appendHistory(key, fallback)).toBe('appended');
        for (const answer of ['appended', 'known']) expect(await open().documents.appendHistory(key, summary)).toBe(answer);
        expect(await read()).toEqual([
          { ...summary, text: '[supersedes the raw fallback of 2026-02-27T14:30:00.000Z]\nThey said hello.' },
          fallback,
        ]);
        expect(await store.documents.appendHistory(key, fallback)).toBe('known');
        expect(await store.documents.appendHistory(key, entry('c2', 1, 'early'))).toBe('appended');
        expect(await store.documents.appendHistory(key, entry('c2', 2, '[raw-fallback] late', 'raw-fallback'))).toBe('superseded');
        expect(await read()).toHaveLength(3);
      });

      test('entries of the same time lie in the order of writing, however many; nobody is left out or told twice', async () => {
        for (const { n } of numbered(1, 250)) await store.documents.appendHistory(key, entry(`c${n}`, n < 25 ? n : 500, `entry ${n}`));
        const ids = (await read()).map(({ id }) => id);
        expect(ids).toEqual(
          numbered(1, 250)
            .map(({ n }) => `c${n}`)
            .reverse(),
        );
      });

      test('a month ends at midnight UTC', async () => {
        const [last, first] = [Date.UTC(2026, 0, 31, 23, 59, 59, 999) / 1000, Date.UTC(2026, 1, 1) / 1000];
        await store.documents.appendHistory(key, entry('c1', last, 'the last of January'));
        await store.documents.appendHistory(key, entry('c2', first, 'the first of February'));
        expect(await read()).toEqual([entry('c2', first, 'the first of February'), entry('c1', last, 'the last of January')]);
        expect(await subject.historyText(key, store)).toMatch(/^## 2026-01-31T23:59:59\.999Z\n[^#]*## 2026-02-01T00:00:00\.000Z\n/);
      });

      test.each([
        ['its own header', '## 2026-02-27T14:30:00.000Z\nforged', '\\## 2026-02-27T14:30:00.000Z\nforged'],
        ['a header in the middle', 'true\n## 2026-02-27\nforged', 'true\n\\## 2026-02-27\nforged'],
        ['a header after another line end', 'true\r## 2026-02-27\u2028## 2026-02-28', 'true\n\\## 2026-02-27\n\\## 2026-02-28'],
        ['a header that Markdown takes for one', 'true\n   ##\t2026-02-27T14:30:00.000Z', 'true\n   \\##\t2026-02-27T14:30:00.000Z'],
        ['control characters', '\u001b[31mred\u0007\u0000 and \ud800 half', '[31mred and \ufffd half'],
        ['empty lines around', '\n\n  text \n\n', 'text'],
        ['nothing', ' \n ', ''],
      ])('no text can pass for an entry of its own: %s', async (_, text, kept) => {
        await store.documents.appendHistory(key, entry('c1', 100, text));
        await store.documents.appendHistory(key, entry('c2', 200, 'after it'));
        expect(await read()).toEqual([entry('c2', 200, 'after it'), entry('c1', 100, kept)]);
      });

      test('of 50 that are appended at once, some with the same id, each is there once', async () => {
        const stores = [store, open()];
        const answers = await Promise.all(
          numbered(0, 49).map(({ n }) =>
            (stores[n % 2] as Store).documents.appendHistory(key, entry(`c${n % 40}`, 1000 + (n % 40), `entry ${n % 40}`)),
          ),
        );
        expect(answers.filter((answer) => answer === 'appended')).toHaveLength(40);
        expect(answers.filter((answer) => answer === 'known')).toHaveLength(10);
        expect(await read(open())).toEqual(
          numbered(0, 39)
            .map(({ n }) => entry(`c${n}`, 1000 + n, `entry ${n}`))
            .reverse(),
        );
        expect((await subject.historyText(key, store)).match(/^## /gm)).toHaveLength(40);
      });

      test('is the same text from every store', async () => {
        const texts = fc.oneof(
          fc.string({ unit: 'binary', maxLength: 60 }),
          fc.constantFrom('## 2026-01-01T00:00:00.000Z', '# title\n\n- a list\n', '[raw-fallback] user: x'),
        );
        await fc.assert(
          fc.asyncProperty(fc.array(texts, { minLength: 1, maxLength: 6 }), async (all) => {
            const scope = aScope();
            const entries = all.map((text, i) => entry(`c${i}`, 1769900000 + i * 86_400.001, text));
            for (const each of entries) await store.documents.appendHistory(scope, each);
            expect(await subject.historyText(scope, store)).toBe(historyText(entries));
            expect(await collect(store.documents.history(scope))).toEqual(entries.map(toKeptEntry).reverse());
          }),
          { numRuns: 40 },
        );
      });
    });

    describe('proposals', () => {
      const line = (text: string): Pick<Proposal, 'ts' | 'line' | 'source'> => ({
        ts: 5.5,
        line: text,
        source: { trust: 'tool:search_files', conversation: 'conv_8', turn_ids: ['turn_0002'] },
      });
      const proposal = (n: number, text: string, state: Proposal['state'] = 'open'): Proposal => ({
        ...line(text),
        id: `prop_000${n}`,
        state,
      });

      test('get numbers, a batch only once', async () => {
        expect(await store.documents.propose(key, 'b1', [line('one'), line('two')])).toEqual([proposal(1, 'one'), proposal(2, 'two')]);
        expect(await open().documents.propose(key, 'b1', [line('never')])).toEqual([proposal(1, 'one'), proposal(2, 'two')]);
        expect(await store.documents.propose(key, 'b2', [line('three')])).toEqual([proposal(3, 'three')]);
        expect(await store.documents.propose(key, 'b3', [])).toEqual([]);
        const proposals = [proposal(1, 'one'), proposal(2, 'two'), proposal(3, 'three')];
        expect(await open().documents.proposals(key)).toEqual({ proposals, skipped: 0 });
      });

      test('are settled once: the first decision stays', async () => {
        await store.documents.propose(key, 'b1', [line('one'), line('two')]);
        expect(await store.documents.settleProposal(key, 'prop_0001', 'accepted')).toEqual(proposal(1, 'one', 'accepted'));
        expect(await open().documents.settleProposal(key, 'prop_0001', 'rejected')).toEqual(proposal(1, 'one', 'accepted'));
        for (const id of ['prop_0009', 'last', 'batch:b1', ''])
          expect(await store.documents.settleProposal(key, id, 'accepted')).toBeUndefined();
        expect((await open().documents.proposals(key)).proposals).toEqual([proposal(1, 'one', 'accepted'), proposal(2, 'two')]);
        expect(await store.documents.propose(key, 'b1', [])).toEqual([]);
        expect(await store.documents.propose(key, 'b1', [line('one')])).toEqual([proposal(1, 'one', 'accepted'), proposal(2, 'two')]);
      });

      test('that come at once have a number each', async () => {
        const stores = [store, open()];
        await Promise.all(numbered(1, 9).map(({ n }) => (stores[n % 2] as Store).documents.propose(key, `b${n % 6}`, [line(`l${n % 6}`)])));
        const { proposals } = await store.documents.proposals(key);
        expect(proposals.map(({ id }) => id)).toEqual(numbered(1, 6).map(({ n }) => `prop_000${n}`));
      });
    });

    test('what is forgotten is kept once per id, oldest first', async () => {
      expect(await store.documents.forgotten(key)).toEqual([]);
      const [a, b] = [
        { id: 'f2', ts: 5, words: ['hash1', 'hash2'] },
        { id: 'f1', ts: 4, words: [] },
      ] as const;
      for (const each of [a, b, { ...a, words: ['other'] }]) await open().documents.forget(key, each);
      expect(await store.documents.forgotten(key)).toEqual([b, a]);
    });

    describe('redact', () => {
      const redact = (text: string): string => text.replaceAll('secret', '[forgotten]');

      test('takes words out of everything but the present MEMORY.md, and a second time changes nothing', async () => {
        const source = { trust: 'user', conversation: 'conv_8' } as const;
        const before = '- a secret\r\n- kept\n';
        const versions = [memoryVersion(before), memoryVersion('- kept\n- a new secret\n')] as const;
        await store.documents.writeMemory(key, aWrite('w1', 'empty', before, { lines: [{ line: '- a secret', source }] }));
        await store.documents.writeMemory(key, aWrite('w2', versions[0], '- kept\n- a new secret\n'));
        await store.documents.appendHistory(key, entry('c1', 100, 'nothing'));
        await store.documents.appendHistory(key, entry('c2', 200, 'one secret\n\nand another secret', 'raw-fallback'));
        await store.documents.propose(key, 'b1', [
          { ts: 1, line: 'the secret', source },
          { ts: 1, line: 'fine', source },
        ]);
        for (const each of [store, open(), store]) {
          await each.documents.redact(key, redact);
          expect(await store.documents.memory(key)).toEqual({ version: versions[1], text: '- kept\n- a new secret\n' });
          expect(await store.documents.memoryText(key, versions[0])).toBe('- a [forgotten]\r\n- kept\n');
          expect(await store.documents.memoryText(key, versions[1])).toBe('- kept\n- a new secret\n');
          expect((await store.documents.changes(key)).changes).toMatchObject([
            { id: 'w1', version: versions[0], lines: [{ line: '- a [forgotten]', source }] },
            { id: 'w2' },
          ]);
          expect(await collect(store.documents.history(key))).toEqual([
            entry('c2', 200, 'one [forgotten]\n\nand another [forgotten]', 'raw-fallback'),
            entry('c1', 100, 'nothing'),
          ]);
          expect((await store.documents.proposals(key)).proposals.map((each) => each.line)).toEqual(['the [forgotten]', 'fine']);
        }
      });

      test('leaves ids known: nothing that was written before comes again', async () => {
        await store.documents.writeMemory(key, aWrite('w1', 'empty', 'a secret'));
        await store.documents.writeMemory(key, aWrite('w2', memoryVersion('a secret'), 'nothing'));
        await store.documents.appendHistory(key, entry('c1', 100, 'a secret'));
        await store.documents.redact(key, redact);
        const again = open().documents;
        expect(await again.writeMemory(key, aWrite('w1', 'empty', 'a secret'))).toMatchObject({ status: 'written' });
        expect(await again.appendHistory(key, entry('c1', 100, 'a secret'))).toBe('known');
        expect((await again.memory(key)).text).toBe('nothing');
        expect(await collect(again.history(key))).toEqual([entry('c1', 100, 'a [forgotten]')]);
      });

      test('of a scope that has nothing does nothing', async () => {
        await store.documents.redact(key, redact);
        expect(await store.documents.memory(key)).toEqual({ version: 'empty', text: '' });
      });

      test('of different words at once: all are gone', async () => {
        await store.documents.appendHistory(key, entry('c1', 100, 'a b c d e f'));
        const stores = [store, open()];
        await Promise.all(
          ['a', 'b', 'c', 'd'].map((word, i) => (stores[i % 2] as Store).documents.redact(key, (text) => text.replaceAll(word, '-'))),
        );
        expect((await collect(store.documents.history(key))).map(({ text }) => text)).toEqual(['- - - - e f']);
      });
    });
  });
}

export function aWrite(id: string, from: string, text: string, over: Partial<MemoryWrite> = {}): MemoryWrite {
  return { id, ts: 7, cause: 'consolidation', from, text, lines: [], ...over };
}

export function entry(id: string, ts: number, text: string, kind: HistoryEntry['kind'] = 'summary'): HistoryEntry {
  return { id, kind, ts, text };
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** As whoever writes MEMORY.md does: reads, adds, and begins again when somebody else was quicker. */
async function addLine(store: Store, key: ScopeKey, id: string, line: string): Promise<void> {
  for (;;) {
    const { version, text } = await store.documents.memory(key);
    if ((await store.documents.writeMemory(key, aWrite(id, version, `${text}${line}\n`))).status === 'written') return;
  }
}
