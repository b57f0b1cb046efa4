/** What every store must do: the ports' contract (store.ts), as facts. */
import { randomUUID } from 'node:crypto';
import type { JsonValue } from '../../src/records/message.js';
import {
  StoreUnavailable,
  type AgentKey,
  type ScopeKey,
  type Store,
  type ToolPin,
  type FactRecord,
  type SignInOwner,
} from '../../src/stores/store.js';
import {
  aConversation,
  anAgent,
  answerEntry,
  aScope,
  episode,
  events,
  eventsOf,
  fact,
  item,
  numbered,
  readCount,
  readUntil,
  turnOf,
  userEntry,
} from './builders.js';
import { livesContract } from './lives-contract.js';
import { budgetsContract } from './budgets-contract.js';
import { rateLimitsContract } from './rate-limits-contract.js';
import { movesContract } from './moves-contract.js';
import { erasureContract } from './erasure-contract.js';
import { spendingOf, spendingsContract } from './spendings-contract.js';
import { scopesContract } from './scopes-contract.js';
import { uploadsContract } from './uploads-contract.js';
import { vectorsContract } from './vectors-contract.js';
import { writesContract } from './writes-contract.js';

/** Opens a store; every store that one test opens lies on the same bytes, as two processes would have it. */
export type OpenStore = (options?: { readonly feedMaxLength?: number; readonly clock?: () => number }) => Store;

export interface Subject {
  readonly open: OpenStore;
  /** Makes the conversation's feed vanish, as a flush of the store would. */
  loseFeed(key: ReturnType<typeof aConversation>): Promise<void>;
  /** All that lies in it. */
  bytes(): Promise<string>;
  end(): Promise<void>;
}

export function storeContract(name: string, make: () => Promise<Subject>): void {
  describe(name, () => {
    let subject: Subject;
    let opened: Store[];
    let store: Store;
    const open: OpenStore = (options) => {
      const another = subject.open(options);
      opened.push(another);
      return another;
    };

    beforeAll(async () => {
      subject = await make();
    });
    beforeEach(() => {
      opened = [];
      store = open();
    });
    afterEach(async () => {
      await Promise.all(opened.map((each) => each.close()));
    });
    afterAll(() => subject.end());

    test('a store has a name of its own, and whoever opens it reads the same', async () => {
      const names = await Promise.all([store.id(), open().id(), open().id()]);
      expect(names[0]).toMatch(/^[0-9a-z]{6}$/);
      expect(new Set(names).size).toBe(1);
      expect(await open().id()).toBe(names[0]);
    });

    livesContract(
      () => open(),
      () => subject.bytes(),
    );
    movesContract(() => open());
    writesContract(() => open());
    spendingsContract(() => open());
    budgetsContract(() => open());
    rateLimitsContract((clock) => open({ clock }).rateLimits);
    uploadsContract(() => open());
    scopesContract(() => open());
    vectorsContract(() => open());
    erasureContract(
      () => open(),
      () => subject.bytes(),
    );

    describe('entries', () => {
      test('a message recorded twice is there once', async () => {
        const key = aConversation();
        expect(await store.entries.record(key, [userEntry(1)])).toEqual([{}]);
        expect(await store.entries.record(key, [userEntry(1)])).toEqual([{}]);
        expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [userEntry(1)], last: 1, skipped: 0 });
      });

      test('a second message with the same id writes nothing and answers with the first one’s turn', async () => {
        const key = aConversation();
        await store.entries.record(key, [userEntry(3, 'hello', 'm-hello')]);
        const second = await store.entries.record(key, [userEntry(7, 'hello', 'm-hello')]);
        expect(second).toEqual([{ duplicate: { turn: turnOf(3), slot: 3 } }]);
        expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [userEntry(3, 'hello', 'm-hello')], last: 3, skipped: 0 });
      });

      test('a message that was appended (by heal) is known by its id', async () => {
        const key = aConversation();
        await store.entries.append(key, [userEntry(1, 'hello', 'm-hello'), answerEntry(2)]);
        expect(await store.entries.record(key, [userEntry(1, 'hello', 'm-hello')])).toEqual([{}]);
        expect(await store.entries.record(key, [userEntry(5, 'hello', 'm-hello')])).toEqual([{ duplicate: { turn: turnOf(1), slot: 1 } }]);
      });

      test('a message without an id is recorded once by its slot', async () => {
        const key = aConversation();
        const entry = { ...userEntry(1), messageId: undefined };
        await store.entries.record(key, [entry]);
        await store.entries.record(key, [entry]);
        expect((await store.entries.page(key, 0, 10)).entries).toEqual([JSON.parse(JSON.stringify(entry))]);
      });

      test('several messages are recorded at once, and each says what became of it', async () => {
        const key = aConversation();
        expect(await store.entries.record(key, [])).toEqual([]);
        await store.entries.record(key, [userEntry(1, 'one', 'm-one')]);
        const messages = [
          userEntry(1, 'one', 'm-one'),
          userEntry(2, 'one', 'm-one'),
          userEntry(3, 'two', 'm-two'),
          userEntry(4, 'two', 'm-two'),
        ];
        for (const each of [store, store, open()]) {
          expect(await each.entries.record(key, messages)).toEqual([
            {},
            { duplicate: { turn: turnOf(1), slot: 1 } },
            {},
            { duplicate: { turn: turnOf(3), slot: 3 } },
          ]);
        }
        expect(await store.entries.page(key, 0, 10)).toEqual({
          entries: [userEntry(1, 'one', 'm-one'), userEntry(3, 'two', 'm-two')],
          last: 3,
          skipped: 0,
        });
      });

      test('the same id in the same slot and another turn is a duplicate', async () => {
        const key = aConversation();
        await store.entries.record(key, [userEntry(1)]);
        expect(await store.entries.record(key, [{ ...userEntry(1), turn: 'turn_0009' }])).toEqual([
          { duplicate: { turn: turnOf(1), slot: 1 } },
        ]);
      });

      test('a slot keeps what it has, whatever comes for it; a message that found no place can be recorded in another', async () => {
        const key = aConversation();
        await store.entries.record(key, [userEntry(1, 'first', 'm-first')]);
        await store.entries.append(key, [answerEntry(2)]);
        for (const slot of [1, 2]) expect(await store.entries.record(key, [userEntry(slot, 'second', 'm-second')])).toEqual([{}]);
        await store.entries.append(key, [answerEntry(1), userEntry(2, 'third', 'm-third')]);
        await store.effects.commit(key, { id: 'turn_0001/m1', hash: 'h' }, 'done', [answerEntry(1), answerEntry(2, 'other')]);
        expect(await store.entries.record(key, [userEntry(3, 'second', 'm-second')])).toEqual([{}]);
        for (const each of [store, open()]) {
          expect(await each.entries.page(key, 0, 10)).toEqual({
            entries: [userEntry(1, 'first', 'm-first'), answerEntry(2), userEntry(3, 'second', 'm-second')],
            last: 3,
            skipped: 0,
          });
        }
      });

      test('what lies in a slot stays, and the rest of the append is written', async () => {
        const key = aConversation();
        await store.entries.append(key, [answerEntry(1, 'first')]);
        await store.entries.append(key, [answerEntry(1, 'other'), answerEntry(2)]);
        await store.entries.append(key, [answerEntry(1, 'other'), answerEntry(2)]);
        expect((await store.entries.page(key, 0, 10)).entries).toEqual([answerEntry(1, 'first'), answerEntry(2)]);
      });

      test('slots written out of order are read in order', async () => {
        const key = aConversation();
        for (const slot of [4, 1, 12, 3, 2]) await store.entries.append(key, [answerEntry(slot)]);
        const { entries, last } = await store.entries.page(key, 0, 100);
        expect(entries.map(({ slot }) => slot)).toEqual([1, 2, 3, 4, 12]);
        expect(last).toBe(12);
      });

      test('a page begins after its slot, ends at its limit, and shows the highest slot of all', async () => {
        const key = aConversation();
        await store.entries.append(
          key,
          [1, 2, 3, 4, 6].map((slot) => answerEntry(slot)),
        );
        expect(await store.entries.page(key, 1, 3)).toEqual({ entries: [2, 3, 4].map((slot) => answerEntry(slot)), last: 6, skipped: 0 });
        expect(await store.entries.page(key, 6, 3)).toEqual({ entries: [], last: 6, skipped: 0 });
        expect(await store.entries.page(key, -1, 2)).toEqual({ entries: [answerEntry(1)], last: 6, skipped: 0 });
      });

      test('entries are read in the order of the slots asked for; undefined stands for nothing', async () => {
        const key = aConversation();
        await store.entries.append(key, [answerEntry(1), answerEntry(2)]);
        expect(await store.entries.read(key, [2, 9, 1])).toEqual([answerEntry(2), undefined, answerEntry(1)]);
        expect(await store.entries.read(key, [])).toEqual([]);
      });

      test('a conversation that nobody wrote is empty', async () => {
        const key = aConversation();
        expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [], last: 0, skipped: 0 });
        expect(await store.entries.read(key, [1])).toEqual([undefined]);
      });

      test('another life of the same conversation sees nothing of it', async () => {
        const key = aConversation();
        const later = { ...key, life: 'another-life' };
        await store.entries.record(key, [userEntry(1)]);
        await store.effects.commit(key, { id: 'turn_0001/m1', hash: 'h' }, 'done', []);
        expect(await store.entries.record(later, [userEntry(2, 'hello', 'm1')])).toEqual([{}]);
        expect(await store.effects.reserve(later, { id: 'turn_0001/m1', hash: 'h' }, 'a')).toEqual({ status: 'reserved', earlier: 0 });
      });

      test('a store opened beside sees at once what is written, and neither undoes the other', async () => {
        const key = aConversation({ conversation: 'conv_8:turn_0002:1' });
        const beside = open();
        for (let slot = 1; slot <= 20; slot += 2) {
          await Promise.all([store.entries.append(key, [answerEntry(slot)]), beside.entries.append(key, [answerEntry(slot + 1)])]);
          expect(await beside.entries.read(key, [slot])).toEqual([answerEntry(slot)]);
          expect(await store.entries.read(key, [slot + 1])).toEqual([answerEntry(slot + 1)]);
        }
        expect(await open().entries.page(key, 0, 100)).toMatchObject({ last: 20, skipped: 0 });
      });

      test('10,000 entries are all there, in pages', async () => {
        const key = aConversation();
        for (let from = 1; from <= 10_000; from += 250) {
          await store.entries.append(
            key,
            Array.from({ length: 250 }, (_, i) => answerEntry(from + i)),
          );
        }
        const slots: number[] = [];
        const fresh = open();
        for (let after = 0; ;) {
          const { entries, last, skipped } = await fresh.entries.page(key, after, 1700);
          slots.push(...entries.map(({ slot }) => slot));
          expect(skipped).toBe(0);
          after += 1700;
          if (after >= last) break;
        }
        expect(slots).toEqual(numbered(1, 10_000).map(({ n }) => n));
        expect((await fresh.entries.page(key, 0, 1_000_000)).entries).toHaveLength(10_000);
      });

      test('archived entries are read as before, and reported as ranges, ascending; the same again changes nothing', async () => {
        const key = aConversation();
        await store.entries.append(
          key,
          numbered(1, 9).map(({ n }) => answerEntry(n)),
        );
        expect(await store.entries.archived(key)).toEqual([]);
        for (const each of [store, open()]) {
          await each.entries.archive(
            key,
            [
              [5, 6],
              [1, 2],
            ],
            1,
          );
          await each.entries.archive(key, [[3, 3]], 1);
        }
        await store.entries.archive(key, [], 1);
        expect(await open().entries.archived(key)).toEqual([
          [1, 3],
          [5, 6],
        ]);
        expect(await store.entries.read(key, [2, 7])).toEqual([answerEntry(2), answerEntry(7)]);
        expect(await store.entries.page(key, 0, 10)).toMatchObject({ entries: numbered(1, 9).map(({ n }) => answerEntry(n)), last: 9 });
      });

      test('what is restored is active again, and can be archived again', async () => {
        const key = aConversation();
        await store.entries.append(
          key,
          numbered(1, 6).map(({ n }) => answerEntry(n)),
        );
        await store.entries.archive(key, [[1, 5]], 1);
        for (const each of [store, open()])
          await each.entries.restore(
            key,
            [
              [2, 3],
              [9, 9],
            ],
            1,
          );
        await store.entries.restore(key, [], 1);
        expect(await open().entries.archived(key)).toEqual([
          [1, 1],
          [4, 5],
        ]);
        await store.entries.archive(key, [[2, 2]], 1);
        expect(await open().entries.archived(key)).toEqual([
          [1, 2],
          [4, 5],
        ]);
      });

      test('another life has an archive of its own', async () => {
        const key = aConversation();
        await store.entries.archive(key, [[1, 2]], 1);
        expect(await store.entries.archived({ ...key, life: 'another-life' })).toEqual([]);
      });
    });

    describe('episodes', () => {
      test('are listed newest first, of one session where it is given, as many as wanted', async () => {
        const key = aConversation();
        for (const n of [2, 1, 3, 4]) await store.episodes.add(key, episode(n, { session: n < 4 ? 1 : 2 }));
        const ids = async (which?: Parameters<Store['episodes']['list']>[1]) =>
          (await open().episodes.list(key, which)).episodes.map(({ id }) => id);
        expect(await ids()).toEqual(['ep_0004', 'ep_0003', 'ep_0002', 'ep_0001']);
        expect(await ids({ session: 1 })).toEqual(['ep_0003', 'ep_0002', 'ep_0001']);
        expect(await ids({ session: 1, limit: 2 })).toEqual(['ep_0003', 'ep_0002']);
        expect(await store.episodes.list(aConversation())).toEqual({ episodes: [], skipped: 0 });
      });

      test('come back as they were, and the first with an id counts', async () => {
        const key = aConversation();
        const first = episode(1, { summary: 'größer 🎈\nlines', tags: [], turn_ids: ['turn_0001'] });
        for (const each of [store, store, open()]) await each.episodes.add(key, first);
        await store.episodes.add(key, episode(1, { summary: 'another' }));
        expect(await open().episodes.list(key)).toEqual({ episodes: [first], skipped: 0 });
      });

      test('can be removed, twice too, and written again', async () => {
        const key = aConversation();
        await store.episodes.add(key, episode(1));
        await store.episodes.add(key, episode(2));
        for (const each of [store, open()]) await each.episodes.remove(key, 'ep_0001');
        await store.episodes.remove(aConversation(), 'ep_0001');
        expect((await open().episodes.list(key)).episodes).toEqual([episode(2)]);
        await store.episodes.add(key, episode(1, { summary: 'again' }));
        expect((await store.episodes.list(key)).episodes).toEqual([episode(2), episode(1, { summary: 'again' })]);
      });

      test('of another life, and of those that write at once, are all there and apart', async () => {
        const key = aConversation();
        const stores = [store, open(), open()];
        await Promise.all(numbered(1, 12).map(({ n }) => (stores[n % 3] as Store).episodes.add(key, episode(n))));
        expect((await store.episodes.list(key)).episodes.map(({ id }) => id)).toEqual(
          numbered(1, 12)
            .map(({ n }) => episode(n).id)
            .reverse(),
        );
        expect(await store.episodes.list({ ...key, life: 'another-life' })).toEqual({ episodes: [], skipped: 0 });
      });
    });

    describe('facts', () => {
      const source = { conversation: 'conv_8', turn_ids: ['turn_0001', 'turn_0002'] };
      const record = (n: number, text: string, batch: string, over: Partial<FactRecord> = {}): FactRecord => ({
        ...fact(text),
        id: `sem_${String(n).padStart(4, '0')}`,
        batch,
        source,
        ...over,
      });

      test('get numbers, and come back as they were', async () => {
        const key = aScope();
        const told = [fact('größer 🎈', { tags: [], salience: 0.1, confidence: 1 }), fact('Use pnpm.')];
        const expected = [record(1, 'größer 🎈', 'b1', told[0]), record(2, 'Use pnpm.', 'b1')];
        expect(await store.facts.add(key, 'b1', told, source)).toEqual(expected);
        expect(await open().facts.list(key)).toEqual({ facts: [expected[1], expected[0]], skipped: 0 });
        expect(await store.facts.add(key, 'b2', [fact('third')], source)).toEqual([record(3, 'third', 'b2')]);
        expect(await store.facts.add(key, 'b3', [], source)).toEqual([]);
      });

      test('the same batch again adds nothing and answers with the same items', async () => {
        const key = aScope();
        const told = [fact('one'), fact('two')];
        const first = await store.facts.add(key, 'b1', told, source);
        for (const each of [store, open()]) expect(await each.facts.add(key, 'b1', told, source)).toEqual(first);
        expect(await store.facts.add(key, 'b1', [fact('never added')], source)).toEqual(first);
        expect((await open().facts.list(key)).facts).toHaveLength(2);
      });

      test('a fact whose words are known keeps its number, its batch and its text; salience and confidence only rise', async () => {
        const key = aScope();
        await store.facts.add(key, 'b1', [fact('Use pnpm.', { salience: 0.5, confidence: 0.5 })], source);
        const again = [fact(' Use \n pnpm. ', { salience: 0.9, confidence: 0.1 }), fact('new'), fact('new', { confidence: 1 })];
        const expected = [record(1, 'Use pnpm.', 'b1', { salience: 0.9, confidence: 0.5 }), record(2, 'new', 'b2', { confidence: 1 })];
        expect(await store.facts.add(key, 'b2', again, source)).toEqual(expected);
        expect(await open().facts.add(key, 'b2', again, source)).toEqual(expected);
        await store.facts.add(key, 'b3', [fact('Use pnpm.', { salience: 0.05, confidence: 1e-7 })], source);
        expect((await open().facts.list(key)).facts).toEqual([expected[0], expected[1]]);
        expect((await store.facts.add(key, 'b4', [fact('use pnpm.')], source))[0]?.id).toBe('sem_0003');
      });

      test('are listed by salience, then newest, as many as wanted', async () => {
        const key = aScope();
        await store.facts.add(
          key,
          'b1',
          [
            fact('a', { salience: 0.2 }),
            fact('b', { salience: 0.9, ts: 1 }),
            fact('c', { salience: 0.9, ts: 2 }),
            fact('d', { salience: 0.9, ts: 2 }),
          ],
          source,
        );
        const listed = async (limit?: number) => (await open().facts.list(key, { limit })).facts.map((item) => item.fact);
        expect(await listed()).toEqual(['d', 'c', 'b', 'a']);
        expect(await listed(2)).toEqual(['d', 'c']);
      });

      test('that are removed stay away: their numbers are not given again, and their batch does not bring them back', async () => {
        const key = aScope();
        const told = [fact('one'), fact('two')];
        await store.facts.add(key, 'b1', told, source);
        for (const each of [store, open()]) await each.facts.remove(key, ['sem_0002', 'sem_0099']);
        await store.facts.remove(key, []);
        expect(await open().facts.add(key, 'b1', told, source)).toEqual([record(1, 'one', 'b1')]);
        await store.facts.remove(key, ['sem_0001']);
        expect(await open().facts.add(key, 'b1', told, source)).toEqual([]);
        expect(await store.facts.list(key)).toEqual({ facts: [], skipped: 0 });
        expect(await store.facts.add(key, 'b2', [fact('two')], source)).toEqual([record(3, 'two', 'b2')]);
      });

      test('of batches that come at once each has a number of its own, and the same words are one fact', async () => {
        const key = aScope();
        const stores = [store, open(), open()];
        const added = await Promise.all(
          numbered(1, 9).map(({ n }) => (stores[n % 3] as Store).facts.add(key, `b${n}`, [fact(`fact ${n}`), fact('shared')], source)),
        );
        const { facts } = await store.facts.list(key);
        expect(facts.map(({ id }) => id).sort()).toEqual(numbered(1, 10).map(({ n }) => `sem_${String(n).padStart(4, '0')}`));
        expect(
          new Set(
            added
              .flat()
              .filter((item) => item.fact === 'shared')
              .map(({ id }) => id),
          ).size,
        ).toBe(1);
        expect(added.map((items) => items.length)).toEqual(added.map(() => 2));
      });

      test('go beyond four digits in their order', async () => {
        const key = aScope();
        await store.facts.add(
          key,
          'b1',
          Array.from({ length: 120 }, (_, i) => fact(`fact ${i}`)),
          source,
        );
        const { facts } = await open().facts.list(key);
        expect(facts[0]).toEqual(record(120, 'fact 119', 'b1'));
        expect(facts).toHaveLength(120);
      });

      const npm = fact('The project uses npm.');
      const pnpm = fact('The project uses pnpm.');
      const switched = [{ fact: ' The project\nuses npm. ', by: pnpm.fact, ts: 9 }];
      const listedOf = async (key: ScopeKey, all = false) =>
        (await open().facts.list(key, { all })).facts.map(({ id, replaced }) => [id, ...(replaced ? [replaced.by] : [])]).sort();

      test('that were replaced count no longer, and are listed with what stands in their place when all are wanted', async () => {
        const key = aScope();
        await store.facts.add(key, 'b1', [npm, fact('other'), fact('over')], source);
        const replaced = [...switched, { fact: 'over', by: null, ts: 9 }, { fact: 'never known', by: null, ts: 9 }];
        for (const each of [store, open()]) {
          expect(await each.facts.add(key, 'b2', [pnpm], source, replaced)).toEqual([record(4, pnpm.fact, 'b2')]);
        }
        expect(await listedOf(key)).toEqual([['sem_0002'], ['sem_0004']]);
        expect(await listedOf(key, true)).toEqual([['sem_0001', 'sem_0004'], ['sem_0002'], ['sem_0003', null], ['sem_0004']]);
        const [first] = (await store.facts.list(key, { all: true })).facts.filter(({ id }) => id === 'sem_0001');
        expect(first).toEqual(record(1, npm.fact, 'b1', { replaced: { by: 'sem_0004', ts: 9 } }));
      });

      test('that were replaced and are learned again are new facts, which replace in their turn', async () => {
        const key = aScope();
        await store.facts.add(key, 'b1', [npm], source);
        await store.facts.add(key, 'b2', [pnpm], source, switched);
        await store.facts.add(key, 'b3', [npm], source, [{ fact: pnpm.fact, by: npm.fact, ts: 10 }]);
        expect(await listedOf(key, true)).toEqual([['sem_0001', 'sem_0002'], ['sem_0002', 'sem_0003'], ['sem_0003']]);
      });

      test('of a batch that is undone are gone, what they replaced counts again, and the batch brings nothing any more', async () => {
        const key = aScope();
        await store.facts.add(key, 'b1', [npm, fact('over'), fact('same')], source);
        const replaced = [...switched, { fact: 'over', by: 'same', ts: 9 }];
        await store.facts.add(key, 'b2', [pnpm, fact('same')], source, replaced);
        for (const each of [store, open()]) await each.facts.undo(key, 'b2');
        expect(await listedOf(key, true)).toEqual([['sem_0001'], ['sem_0002'], ['sem_0003']]);
        expect(await store.facts.add(key, 'b2', [pnpm], source, replaced)).toEqual([]);
        expect(await listedOf(key, true)).toEqual([['sem_0001'], ['sem_0002'], ['sem_0003']]);
        // One that has only replaced.
        await store.facts.add(key, 'b3', [], source, [{ fact: 'over', by: null, ts: 9 }]);
        expect(await listedOf(key)).toEqual([['sem_0001'], ['sem_0003']]);
        await store.facts.undo(key, 'b3');
        await store.facts.add(key, 'b3', [], source, [{ fact: 'over', by: null, ts: 9 }]);
        expect(await listedOf(key)).toEqual([['sem_0001'], ['sem_0002'], ['sem_0003']]);
      });

      test('that are removed leave replaced what they have replaced', async () => {
        const key = aScope();
        await store.facts.add(key, 'b1', [npm], source);
        await store.facts.add(key, 'b2', [pnpm], source, switched);
        await store.facts.remove(key, ['sem_0002']);
        expect(await listedOf(key)).toEqual([]);
        expect(await listedOf(key, true)).toEqual([['sem_0001', 'sem_0002']]);
      });

      test('of another scope or namespace replace nothing', async () => {
        const key = aScope();
        await store.facts.add(key, 'b1', [npm], source);
        await store.facts.add({ ...key, namespace: 'other' }, 'b2', [pnpm], source, switched);
        await store.facts.undo({ ...key, namespace: 'other' }, 'b1');
        expect(await listedOf(key)).toEqual([['sem_0001']]);
      });

      test('of another scope or namespace are not seen', async () => {
        const key = aScope();
        await store.facts.add(key, 'b1', [fact('mine')], source);
        for (const other of [{ ...key, namespace: 'other' }, aScope()]) {
          expect(await store.facts.list(other)).toEqual({ facts: [], skipped: 0 });
          expect(await store.facts.add(other, 'b1', [fact('mine')], source)).toMatchObject([{ fact: 'mine', batch: 'b1' }]);
        }
        expect((await store.facts.list(key)).facts).toEqual([record(1, 'mine', 'b1')]);
      });
    });

    describe('bodies', () => {
      test('a text comes back as it was, and twice the same is one body', async () => {
        const key = aConversation();
        const text = `größer 🎈 ${'x'.repeat(1 << 20)}`;
        const ref = await store.bodies.put(key, text);
        expect(await store.bodies.put(key, text)).toEqual(ref);
        expect(await open().bodies.get(key, ref.ref)).toBe(text);
        expect(ref.bytes).toBe(Buffer.byteLength(text));
        expect(text.startsWith(ref.preview)).toBe(true);
      });

      test('an unknown reference is undefined, also one that looks like a path', async () => {
        const key = aConversation();
        await store.bodies.put(key, 'something');
        for (const ref of [`sha256:${'0'.repeat(64)}`, '../journal.jsonl', 'sha256:../../x', '']) {
          expect(await store.bodies.get(key, ref)).toBeUndefined();
        }
      });
    });

    describe('items', () => {
      test('are read by id and listed newest first, of one session where it is asked for', async () => {
        const key = aConversation();
        await store.items.put(key, [item(1), item(3), item(2, { session: 2 })]);
        expect(await open().items.get(key, 'mem_1')).toEqual(item(1));
        expect(await store.items.list(key)).toEqual({ items: [item(3), item(2, { session: 2 }), item(1)], skipped: 0 });
        expect(await store.items.list(key, { session: 1 })).toEqual({ items: [item(3), item(1)], skipped: 0 });
      });

      test('are written once per id: the first one counts', async () => {
        const key = aConversation();
        await store.items.put(key, [item(1)]);
        await open().items.put(key, [item(1, { source: 'another' }), item(2)]);
        await store.items.put(key, []);
        expect((await store.items.list(key)).items).toEqual([item(2), item(1)]);
      });

      test('that were removed are not there, and do not come back', async () => {
        const key = aConversation();
        await store.items.put(key, [item(1), item(2)]);
        await store.items.remove(key, ['mem_1', 'mem_3'], { ts: 1 });
        await store.items.remove(key, [], { ts: 1 });
        await open().items.put(key, [item(1), item(3)]);
        expect(await open().items.list(key)).toEqual({ items: [item(2)], skipped: 0 });
        expect(await store.items.get(key, 'mem_1')).toBeUndefined();
      });

      test('are of one life, and what is no id finds none', async () => {
        const key = aConversation();
        await store.items.put(key, [item(1)]);
        await store.items.cite(key, 'turn_0001/c1', 'a citation');
        expect(await store.items.list(aConversation())).toEqual({ items: [], skipped: 0 });
        for (const id of ['mem_2', '', '__proto__', 'cited:turn_0001/c1']) expect(await store.items.get(key, id)).toBeUndefined();
      });

      test('come with a commit, whole, and none with one that is fenced or in conflict', async () => {
        const [key, fenced, late] = [aConversation(), aConversation(), aConversation()];
        const claim = { id: 'turn_0001/c1', hash: 'h1' };
        for (const each of [store, open()]) await each.effects.commit(key, claim, 'done', [answerEntry(2)], { items: [item(1), item(2)] });
        expect((await store.items.list(key)).items).toEqual([item(2), item(1)]);
        expect((await store.entries.page(key, 0, 10)).entries).toEqual([answerEntry(2)]);
        await store.effects.fence(fenced, [claim.id]);
        await store.effects.commit(fenced, claim, 'late', [answerEntry(2)], { spent: spendingOf(fenced), items: [item(1)] });
        expect((await store.items.list(fenced)).items).toEqual([]);
        await store.effects.commit(late, claim, 'first', []);
        await store.effects.commit(late, claim, 'second', [], { items: [item(1)] });
        expect((await store.items.list(late)).items).toEqual([]);
      });

      test('of commits that come at once are all there', async () => {
        const key = aConversation();
        const stores = [store, open(), open()];
        await Promise.all(
          numbered(1, 30).map(({ n }) =>
            (stores[n % 3] as Store).effects.commit(key, { id: `c${n}`, hash: 'h' }, n, [answerEntry(n)], { items: [item(n)] }),
          ),
        );
        expect((await store.items.list(key)).items.map(({ id }) => id)).toEqual(numbered(1, 30).map(({ n }) => `mem_${31 - n}`));
        expect((await store.entries.page(key, 0, 100)).entries).toHaveLength(30);
      });

      test('what is shown for an item is kept once', async () => {
        const key = aConversation();
        await store.items.cite(key, 'turn_0001/c1', 'first');
        await open().items.cite(key, 'turn_0001/c1', 'second');
        await store.items.cite(key, 'turn_0001/c2', '');
        expect(await open().items.citations(key, ['turn_0001/c2', 'turn_0001/c1', 'turn_0001/c3'])).toEqual(['', 'first', undefined]);
        expect(await store.items.citations(key, [])).toEqual([]);
        expect(await store.items.list(key)).toEqual({ items: [], skipped: 0 });
      });
    });

    describe('effects', () => {
      const claim = { id: 'turn_0001/c1', hash: 'h1' };

      test('a reservation shows how many attempts came before, the same attempt always the same', async () => {
        const key = aConversation();
        expect(await store.effects.reserve(key, claim, 'attempt a')).toEqual({ status: 'reserved', earlier: 0 });
        expect(await store.effects.reserve(key, claim, 'attempt a')).toEqual({ status: 'reserved', earlier: 0 });
        expect(await store.effects.reserve(key, claim, 'b')).toEqual({ status: 'reserved', earlier: 1 });
        expect(await open().effects.reserve(key, claim, 'c')).toEqual({ status: 'reserved', earlier: 2 });
        expect(await store.effects.reserve(key, claim, 'attempt a')).toEqual({ status: 'reserved', earlier: 0 });
      });

      test('of attempts that reserve at once each has a number of its own', async () => {
        const key = aConversation();
        const stores = [store, open(), open()];
        const reservations = await Promise.all(
          stores.flatMap((each, s) => [1, 2, 3, 4].map((n) => each.effects.reserve(key, claim, `attempt-${s}-${n}`))),
        );
        const numbers = reservations.map((reservation) => (reservation.status === 'reserved' ? reservation.earlier : -1));
        expect(numbers.sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
      });

      test('a commit writes result and entries; again it changes nothing', async () => {
        const key = aConversation();
        await store.effects.reserve(key, claim, 'a');
        const result = { text: 'four', empty: [], nothing: null, deep: { list: [1, 2.5, {}] } };
        for (const each of [store, store, open()]) {
          expect(await each.effects.commit(key, claim, result, [answerEntry(2)])).toEqual({ status: 'committed', result });
        }
        expect(await store.effects.reserve(key, claim, 'b')).toEqual({ status: 'committed', result });
        expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [answerEntry(2)], last: 2, skipped: 0 });
      });

      test.each<[string, JsonValue]>([
        ['null', null],
        ['false', false],
        ['an empty text', ''],
        ['an empty list', []],
      ])('%s is a result', async (_, result) => {
        const key = aConversation();
        await store.effects.commit(key, claim, result, []);
        expect(await open().effects.reserve(key, claim, 'a')).toEqual({ status: 'committed', result });
      });

      test('of two attempts that commit, the first one’s result and entries count, whole', async () => {
        const key = aConversation();
        const beside = open();
        const [one, two] = await Promise.all([
          store.effects.commit(key, claim, 'of one', [answerEntry(2, 'of one'), answerEntry(3, 'of one')]),
          beside.effects.commit(key, claim, 'of two', [answerEntry(2, 'of two'), answerEntry(4, 'of two')]),
        ]);
        expect(one).toEqual(two);
        const { entries } = await store.entries.page(key, 0, 10);
        const winner = one.status === 'committed' ? String(one.result) : '';
        expect(entries).toEqual([answerEntry(2, winner), answerEntry(winner === 'of one' ? 3 : 4, winner)]);
      });

      test('the same id with another hash is a conflict, before the commit and after it', async () => {
        const key = aConversation();
        const other = { ...claim, hash: 'h2' };
        await store.effects.reserve(key, claim, 'a');
        expect(await store.effects.reserve(key, other, 'b')).toEqual({ status: 'conflict' });
        expect(await store.effects.commit(key, other, 'x', [answerEntry(2)])).toEqual({ status: 'conflict' });
        await store.effects.commit(key, claim, 'done', []);
        expect(await store.effects.reserve(key, other, 'b')).toEqual({ status: 'conflict' });
        expect(await store.effects.commit(key, other, 'x', [answerEntry(2)])).toEqual({ status: 'conflict' });
        expect((await store.entries.page(key, 0, 10)).entries).toEqual([]);
      });

      test('a fenced effect cannot commit, and never gains entries', async () => {
        const key = aConversation();
        await store.effects.reserve(key, claim, 'a');
        expect(await store.effects.fence(key, [claim.id])).toEqual([{ id: claim.id, status: 'fenced' }]);
        expect(await open().effects.commit(key, claim, 'late', [answerEntry(2)], { spent: spendingOf(key) })).toEqual({ status: 'fenced' });
        expect(await store.effects.commit(key, claim, 'late', [answerEntry(2)], { spent: spendingOf(key) })).toEqual({ status: 'fenced' });
        expect(await store.effects.reserve(key, claim, 'b')).toEqual({ status: 'fenced' });
        expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [], last: 0, skipped: 0 });
      });

      test('a fence leaves what has committed and returns its result; the same fence again says the same', async () => {
        const key = aConversation();
        const result = { text: 'x'.repeat(20_000), empty: [], nothing: null, deep: { list: [1, 2.5, {}] } };
        await store.effects.commit(key, claim, result, [answerEntry(2)]);
        for (const each of [store, open()]) {
          expect(await each.effects.fence(key, ['never-begun', claim.id])).toEqual([
            { id: 'never-begun', status: 'fenced' },
            { id: claim.id, status: 'committed', result },
          ]);
        }
        expect(await store.effects.fence(key, [])).toEqual([]);
        expect(await store.entries.read(key, [2])).toEqual([answerEntry(2)]);
      });

      test('a commit publishes its events, once, and none when it is fenced or in conflict', async () => {
        const key = aConversation();
        const publish = [{ id: 'm1/0', event: { kind: 'finished' } }];
        for (const each of [store, store, open()]) await each.effects.commit(key, claim, 'done', [answerEntry(2)], { publish });
        await store.effects.commit(key, { ...claim, hash: 'other' }, 'done', [], { publish: [{ event: 'of a conflict' }] });
        await store.effects.fence(key, ['c9']);
        await store.effects.commit(key, { id: 'c9', hash: 'h' }, 'late', [], { publish: [{ event: 'of a fenced one' }] });
        await readCount(open().feed, key, '0', 1);
        await store.feed.publish(key, [{ event: 'end' }]);
        expect(eventsOf(await readCount(open().feed, key, '0', 2))).toEqual([{ kind: 'finished' }, 'end']);
      });

      test('ids that look alike are different effects', async () => {
        const key = aConversation();
        const ids = [
          'a/b',
          'a%2Fb',
          'a_b',
          'a:b',
          'a b',
          '..',
          '.',
          '.hidden',
          'ä',
          'x'.repeat(300),
          `${'x'.repeat(300)}y`,
          'a/b.0',
          'a\nb',
        ];
        for (const id of ids) {
          expect(await store.effects.reserve(key, { id, hash: id }, 'a')).toEqual({ status: 'reserved', earlier: 0 });
        }
        for (const id of ids) await store.effects.commit(key, { id, hash: id }, id, []);
        for (const id of ids) {
          expect(await open().effects.reserve(key, { id, hash: id }, 'b')).toEqual({ status: 'committed', result: id });
        }
      });
    });

    describe('feed', () => {
      test("its newest cursor is the latest event's, for each reader, and the oldest where there is none", async () => {
        const [key, other] = [aConversation(), open()];
        expect(await store.feed.newest(key)).toBe('0');
        await other.feed.publish(key, events(numbered(1, 3)));
        const all = await readCount(store.feed, key, '0', 3);
        expect([await store.feed.newest(key), await other.feed.newest(key)]).toEqual([all[2]?.cursor, all[2]?.cursor]);
        const reading = readCount(store.feed, key, await store.feed.newest(key), 1);
        await other.feed.publish(key, events(numbered(4, 4)));
        expect(eventsOf(await reading)).toEqual(numbered(4, 4));
        await store.feed.publish(key, events(numbered(5, 5)));
        expect(await other.feed.newest(key)).toBe(await store.feed.newest(key));
      });

      test('events are read in order, from the oldest and from a cursor', async () => {
        const key = aConversation();
        await store.feed.publish(key, events(numbered(1, 3)));
        await store.feed.publish(key, []);
        await store.feed.publish(key, events(numbered(4, 5)));
        const all = await readCount(open().feed, key, '0', 5);
        expect(eventsOf(all)).toEqual(numbered(1, 5));
        expect(eventsOf(await readCount(store.feed, key, all[1]?.cursor ?? '', 3))).toEqual(numbered(3, 5));
      });

      test('a reader gets what is published while it reads, also from a store beside', async () => {
        const key = aConversation();
        const reading = readCount(open().feed, key, '0', 30);
        for (let n = 1; n <= 30; n += 1) await (n % 2 === 0 ? store : open()).feed.publish(key, [{ event: { n } }]);
        expect(eventsOf(await reading)).toEqual(numbered(1, 30));
      });

      test('a reader from now on sees nothing older, and then misses nothing', async () => {
        const key = aConversation();
        await store.feed.publish(key, [{ event: { n: 0 } }]);
        let begun = false;
        const reading = readUntil(open().feed, key, '$', (read) => (begun = true) && read.length === 5);
        let n = 0;
        while (!begun) await store.feed.publish(key, [{ event: { n: (n += 1) } }]);
        await store.feed.publish(key, events(numbered(n + 1, n + 5)));
        const seen = eventsOf(await reading) as { n: number }[];
        const first = seen[0]?.n ?? 0;
        expect(first).toBeGreaterThan(0);
        expect(seen).toEqual(numbered(first, first + 4));
      });

      test('a cursor whose successors were trimmed gets a resync first, then what is kept', async () => {
        const key = aConversation();
        const small = open({ feedMaxLength: 100 });
        await small.feed.publish(key, [{ event: { n: 1 } }]);
        const [first] = await readCount(small.feed, key, '0', 1);
        for (let n = 2; n <= 700; n += 20) await small.feed.publish(key, events(numbered(n, n + 19)));
        const read = await readUntil(small.feed, key, first?.cursor ?? '', (soFar) => (soFar.at(-1)?.event as { n?: number }).n === 701);
        const [resync, ...kept] = eventsOf(read);
        expect(resync).toEqual({ kind: 'resync' });
        expect(kept.length).toBeGreaterThanOrEqual(100);
        expect(kept.length).toBeLessThan(400);
        expect(kept).toEqual(numbered(702 - kept.length, 701));
        // From the resync's own cursor the rest follows without another one.
        expect(eventsOf(await readCount(small.feed, key, read[0]?.cursor ?? '', kept.length))).toEqual(kept);
      });

      test('a reader that falls behind the trimming learns it by a resync between the events', async () => {
        const key = aConversation();
        const small = open({ feedMaxLength: 100 });
        const stop = new AbortController();
        const reader = small.feed.read(key, '0', stop.signal)[Symbol.asyncIterator]();
        await small.feed.publish(key, [{ event: { n: 1 } }]);
        expect((await reader.next()).value).toMatchObject({ event: { n: 1 } });
        for (let n = 2; n <= 700; n += 20) await small.feed.publish(key, events(numbered(n, n + 19)));
        const seen: JsonValue[] = [];
        while ((seen.at(-1) as { n?: number } | undefined)?.n !== 701) {
          seen.push(((await reader.next()).value as { event: JsonValue }).event);
        }
        stop.abort();
        expect(seen[0]).toEqual({ kind: 'resync' });
        expect(seen.slice(1)).toEqual(numbered(703 - seen.length, 701));
      });

      test('a cursor of a feed that is lost, or of none, gets a resync at once', async () => {
        const key = aConversation();
        await store.feed.publish(key, events(numbered(1, 3)));
        const cursor = (await readCount(store.feed, key, '0', 3))[2]?.cursor ?? '';
        await subject.loseFeed(key);
        expect(eventsOf(await readCount(open().feed, key, cursor, 1))).toEqual([{ kind: 'resync' }]);
        await store.feed.publish(key, events(numbered(4, 5)));
        for (const unknown of [cursor, 'no cursor of ours']) {
          expect(eventsOf(await readCount(open().feed, key, unknown, 3))).toEqual([{ kind: 'resync' }, ...numbered(4, 5)]);
        }
      });

      test('an event with an id is read once, whichever attempt publishes it again and beside whatever', async () => {
        const key = aConversation();
        const step = [{ id: 's1/0', event: { n: 1 } }, { event: { n: 2 } }, { id: 's1/1', event: { n: 3 } }];
        await store.feed.publish(key, step);
        for (const each of [store, open()]) await each.feed.publish(key, [...step, { id: 's1/1', event: { n: 9 } }]);
        await open().feed.publish(key, [{ id: 's1/2', event: { n: 4 } }, { id: 's1/2', event: { n: 9 } }]); // prettier-ignore
        await store.feed.publish(key, [{ id: 's1/2', event: { n: 9 } }]);
        const read = await readCount(open().feed, key, '0', 6);
        expect(eventsOf(read)).toEqual([1, 2, 3, 2, 2, 4].map((n) => ({ n })));
        expect(read.map((each) => Object.keys(each))).toEqual(read.map(() => ['cursor', 'event']));
      });

      test('the last 256 ids are remembered, whatever was published without one', async () => {
        const key = aConversation();
        const withIds = numbered(1, 300).map(({ n }) => ({ id: `e${n}`, event: { n } }));
        await store.feed.publish(key, withIds.slice(0, 150));
        await store.feed.publish(key, events(numbered(1_000, 1_299)));
        await store.feed.publish(key, withIds.slice(150));
        for (const each of [store, open()]) await each.feed.publish(key, withIds.slice(44));
        await store.feed.publish(key, [{ event: 'end' }]);
        expect(eventsOf(await readCount(open().feed, key, '0', 601)).at(-1)).toBe('end');
      });

      test('another life knows nothing of an id', async () => {
        const key = aConversation();
        const other = aConversation();
        for (const each of [key, other]) await store.feed.publish(each, [{ id: 'e1', event: 'one' }]);
        expect(eventsOf(await readCount(store.feed, other, '0', 1))).toEqual(['one']);
      });

      test('aborting ends a waiting reader without an error', async () => {
        const key = aConversation();
        await store.feed.publish(key, [{ event: { n: 1 } }]);
        const stop = new AbortController();
        const seen: JsonValue[] = [];
        for await (const { event } of store.feed.read(key, '0', stop.signal)) {
          seen.push(event);
          setImmediate(() => stop.abort());
        }
        expect(seen).toEqual([{ n: 1 }]);
        for await (const { event } of store.feed.read(key, '0', stop.signal)) seen.push(event);
        expect(seen).toEqual([{ n: 1 }]);
      });

      test('closing the store ends its readers', async () => {
        const key = aConversation();
        const closing = open();
        await closing.feed.publish(key, [{ event: { n: 1 } }]);
        const reader = closing.feed.read(key, '0', new AbortController().signal)[Symbol.asyncIterator]();
        await reader.next();
        const waiting = reader.next();
        await closing.close();
        expect(await waiting).toEqual({ done: true, value: undefined });
      });
    });

    describe('pins', () => {
      const pin = (tool: string, text: string, server = 'acme'): ToolPin => ({ server, tool, hash: `hash of ${text}`, text });
      const shown = (pins: readonly ToolPin[]): string[] => pins.map(({ tool, text }) => `${tool}: ${text}`).sort();
      const accepted = async (from: Store, key: AgentKey) => shown((await from.pins.list(key)).accepted);
      const waiting = async (from: Store, key: AgentKey) => shown((await from.pins.list(key)).waiting);

      test('a server is accepted with the tools that it has at first, whoever sees others later', async () => {
        const key = anAgent();
        expect(await store.pins.list(key)).toEqual({ accepted: [], waiting: [], servers: [] });
        await store.pins.acceptServer(key, 'acme', [pin('a', 'first'), pin('b', 'first'), pin('a', 'again')]);
        await open().pins.acceptServer(key, 'acme', [pin('a', 'second'), pin('c', 'first')]);
        expect(await accepted(open(), key)).toEqual(['a: first', 'b: first']);
        await store.pins.acceptServer(key, 'other', [pin('c', 'first', 'other')]);
        expect(await accepted(open(), key)).toEqual(['a: first', 'b: first', 'c: first']);
        expect((await store.pins.list(key)).servers.toSorted()).toEqual(['acme', 'other']);
      });

      test('also one that has no tools at first', async () => {
        const key = anAgent();
        await store.pins.acceptServer(key, 'acme', []);
        await open().pins.acceptServer(key, 'acme', [pin('a', 'later')]);
        expect(await open().pins.list(key)).toEqual({ accepted: [], waiting: [], servers: ['acme'] });
      });

      test('what a person accepts stands in its place, and stays there', async () => {
        const key = anAgent();
        await store.pins.acceptServer(key, 'acme', [pin('a', 'first'), pin('b', 'first')]);
        await store.pins.wait(key, 'acme', [pin('a', 'second'), pin('new', 'first'), pin('more', 'first')]);
        expect(await accepted(open(), key)).toEqual(['a: first', 'b: first']);
        await store.pins.accept(key, [pin('a', 'second'), pin('new', 'first')]);
        await store.pins.accept(key, []);
        await open().pins.acceptServer(key, 'acme', [pin('a', 'first')]);
        expect(await accepted(store, key)).toEqual(['a: second', 'b: first', 'new: first']);
        expect(await waiting(store, key)).toEqual(['more: first']);
      });

      test('what waits of a server is what it had last, and accepts no server', async () => {
        const key = anAgent();
        await store.pins.wait(key, 'acme', [pin('a', 'first'), pin('b', 'first')]);
        await store.pins.wait(key, 'other', [pin('c', 'first', 'other')]);
        await open().pins.wait(key, 'acme', [pin('b', 'second')]);
        expect(await waiting(open(), key)).toEqual(['b: second', 'c: first']);
        expect(await store.pins.list(key)).toMatchObject({ accepted: [], servers: [] });
        await store.pins.wait(key, 'acme', []);
        await store.pins.acceptServer(key, 'other', []);
        expect(await store.pins.list(key)).toEqual({ accepted: [], waiting: [], servers: ['other'] });
      });

      test('names of any characters are kept apart, and agents too', async () => {
        const key = anAgent();
        const strange = [pin('b', '1', 'a/'), pin('/b', '2', 'a'), pin('__proto__', '3'), pin('🦑 \n"', '4'), pin('', '5', '')];
        for (const one of strange) await store.pins.acceptServer(key, one.server, [one]);
        await store.pins.accept(key, strange);
        const { accepted: known, servers } = await store.pins.list(key);
        expect([new Set(known), new Set(servers)]).toEqual([new Set(strange), new Set(strange.map(({ server }) => server))]);
        expect((await store.pins.list(anAgent())).accepted).toEqual([]);
      });

      test('of two that accept a server at once one does, with all that it has seen', async () => {
        const key = anAgent();
        const other = open();
        await Promise.all([
          store.pins.acceptServer(key, 'acme', [pin('a', 'one'), pin('b', 'one')]),
          other.pins.acceptServer(key, 'acme', [pin('a', 'other'), pin('c', 'other')]),
        ]);
        expect(await store.pins.list(key)).toEqual(await other.pins.list(key));
        expect([
          ['a: one', 'b: one'],
          ['a: other', 'c: other'],
        ]).toContainEqual(await accepted(store, key));
      });
    });

    describe('sign-ins', () => {
      const changed = (from: Store, of: SignInOwner, id: string, decide: (sealed: string | undefined) => string | undefined) =>
        from.signIns.change(of, id, decide);
      const anOwner = (owner = 'ada'): SignInOwner => ({ namespace: anAgent().namespace, owner: `${owner}-${randomUUID()}` });

      test('what is kept for one server of one owner is there for every process, until it is taken away', async () => {
        const of = anOwner();
        expect(await store.signIns.read(of, 'a')).toBeUndefined();
        await changed(store, of, 'a', (before) => `${before} one`);
        await changed(store, of, 'b', () => 'other');
        await changed(open(), of, 'a', () => undefined);
        expect([await open().signIns.read(of, 'a'), await open().signIns.read(of, 'b')]).toEqual(['undefined one', 'other']);
        expect(await store.signIns.read(anOwner(), 'a')).toBeUndefined();
        await changed(open(), of, 'a', () => '');
        expect([await store.signIns.read(of, 'a'), await store.signIns.read(of, 'b')]).toEqual([undefined, 'other']);
      });

      test('each of many that change one at once sees what the one before has written', async () => {
        const of = anOwner('acme.🦑 \n"/');
        const stores = [store, open()];
        const names = Array.from({ length: 12 }, (_, at) => `n${at}`);
        await Promise.all(names.map((name, at) => changed(stores[at % 2] ?? store, of, '__proto__', (before = '') => `${before}${name},`)));
        const kept = (await open().signIns.read(of, '__proto__')) ?? '';
        expect(kept.split(',').slice(0, -1).toSorted()).toEqual(names.toSorted());
      });
    });

    test('a refused write is StoreUnavailable by its name too', () => {
      expect(new StoreUnavailable('x').name).toBe('StoreUnavailable');
    });
  });
}
