/** How lives stand on each other, in every store (`Lives` in store.ts). */
import type { Beginning, Cut } from '../../src/records/slots.js';
import { LifeDeleted, type ConversationKey, type Store } from '../../src/stores/store.js';
import type { TurnEnd } from '../../src/records/turn-end.js';
import { aConversation, answerEntry, episode, item, userEntry } from './builders.js';
import { spendingOf } from './spendings-contract.js';

function beginningWith(of: ConversationKey, slots: Beginning['archived'], more: Partial<Beginning> = {}): Beginning {
  const { conversation, life, scope } = of;
  return { v: 1, kind: 'fork', of: { conversation, life }, turn: 3, shared: [{ conversation, life, scope, slots }], archived: [], ...more };
}

const CUT: Cut = { v: 1, id: 'r1', branch: 1, to: 1, begun: 2, since: 10.5, slot: 6, at: 20.5, session: 1, slots: [[3, 6]] };

function ended(turn: number): TurnEnd {
  const error = { type: 'unknown-agent', message: 'there is no agent nope' };
  return { v: 1, turn: `turn_${String(turn).padStart(4, '0')}`, stopReason: 'failed', error };
}

export function livesContract(open: () => Store, bytes: () => Promise<string>): void {
  describe('lives', () => {
    let store: Store;
    beforeEach(() => {
      store = open();
    });

    /** Slots 1 to 6, each a turn. */
    async function anOrigin(): Promise<ConversationKey> {
      const key = aConversation({ conversation: 'origin' });
      await store.entries.append(key, [userEntry(1), answerEntry(2), userEntry(3), answerEntry(4), answerEntry(5), answerEntry(6)]);
      return key;
    }

    test('a life reads the entries that it shares, and no others, wherever they lie', async () => {
      const origin = await anOrigin();
      const fork = aConversation({ conversation: 'fork' });
      await store.lives.begin(fork, beginningWith(origin, [[1, 2], [4, 4]])); // prettier-ignore
      expect(await store.entries.read(fork, [1, 2, 3, 4, 5])).toEqual([userEntry(1), answerEntry(2), undefined, answerEntry(4), undefined]);
      expect(await store.entries.page(fork, 0, 10)).toEqual({
        entries: [userEntry(1), answerEntry(2), answerEntry(4)],
        last: 4,
        skipped: 0,
      });
      expect((await store.entries.page(fork, 1, 2)).entries).toEqual([answerEntry(2)]);
    });

    test('what a life writes is its own, and its origin goes on without it', async () => {
      const origin = await anOrigin();
      const fork = aConversation({ conversation: 'fork' });
      await store.lives.begin(fork, beginningWith(origin, [[1, 4]]));
      await store.entries.record(fork, [userEntry(5, 'of the fork', 'm5')]);
      await store.entries.append(origin, [answerEntry(7)]);
      expect((await store.entries.page(fork, 0, 10)).entries).toEqual([
        userEntry(1),
        answerEntry(2),
        userEntry(3),
        answerEntry(4),
        userEntry(5, 'of the fork', 'm5'),
      ]);
      expect((await store.entries.page(origin, 0, 10)).entries.map(({ slot }) => slot)).toEqual([1, 2, 3, 4, 5, 6, 7]);
      expect(await store.entries.read(origin, [5])).toEqual([answerEntry(5)]);
      // The same id said to another conversation is another message.
      expect(await store.entries.record(fork, [userEntry(6, 'again', 'm1')])).toEqual([{}]);
    });

    test('items are those of what it shares and its own; what it removes is hidden for it alone', async () => {
      const origin = await anOrigin();
      await store.items.put(origin, [item(1, { slot: 2 }), item(2, { slot: 4 }), item(3, { slot: 6 })]);
      // Stored beside the turns: by the time of the newest turn that is shared.
      const shared = (await store.entries.read(origin, [4]))[0]?.ts ?? 0;
      await store.items.put(origin, [item(4, { ts: shared - 1 }), item(5, { ts: shared + 1 })]);
      await store.items.cite(origin, 'mem_1', 'made of it');
      const [fork, later] = [aConversation({ conversation: 'fork' }), aConversation({ conversation: 'later' })];
      await store.lives.begin(fork, beginningWith(origin, [[1, 4]]));
      await store.items.put(fork, [item(6, { slot: 6 })]);
      const ids = async (key: ConversationKey): Promise<string[]> => (await open().items.list(key)).items.map(({ id }) => id).sort();
      expect(await ids(fork)).toEqual(['mem_1', 'mem_2', 'mem_4', 'mem_6']);
      expect(await ids(origin)).toEqual(['mem_1', 'mem_2', 'mem_3', 'mem_4', 'mem_5']);
      expect(await open().items.get(fork, 'mem_2')).toEqual(item(2, { slot: 4 }));
      for (const id of ['mem_3', 'mem_5']) expect(await open().items.get(fork, id)).toBeUndefined();
      expect(await open().items.citations(fork, ['mem_1', 'mem_6'])).toEqual(['made of it', undefined]);
      await store.items.remove(fork, ['mem_2'], { slot: 6, ts: 0 });
      expect(await ids(fork)).toEqual(['mem_1', 'mem_4', 'mem_6']);
      expect(await open().items.get(fork, 'mem_2')).toBeUndefined();
      expect(await open().items.get(origin, 'mem_2')).toEqual(item(2, { slot: 4 }));
      // A fork of the fork: what the origin has is named in its own beginning.
      const { conversation, life, scope } = fork;
      const both = beginningWith(origin, [[1, 4]]);
      const named = [{ conversation, life, scope, slots: [[5, 6] as const] }, ...both.shared];
      await store.lives.begin(later, { ...both, shared: named });
      expect(await ids(later)).toEqual(['mem_1', 'mem_4', 'mem_6']);
      expect(await open().items.get(later, 'mem_2')).toBeUndefined();
    });

    test('a fork keeps what its origin removes later; what was removed in a turn that it shares is gone, and what was removed at all for who resumes', async () => {
      const origin = await anOrigin();
      await store.items.put(
        origin,
        [1, 2, 3, 4].map((n) => item(n, { slot: 2 })),
      );
      const shared = (await store.entries.read(origin, [4]))[0]?.ts ?? 0;
      await store.items.remove(origin, ['mem_1'], { slot: 4, ts: shared + 9 });
      await store.items.remove(origin, ['mem_2'], { ts: shared });
      const [fork, resumed] = [aConversation({ conversation: 'fork' }), aConversation({ conversation: 'resumed' })];
      await store.lives.begin(fork, beginningWith(origin, [[1, 4]]));
      await store.items.remove(origin, ['mem_1', 'mem_2', 'mem_3'], { slot: 6, ts: 0 });
      await store.items.remove(origin, ['mem_4'], { ts: shared + 1 });
      await store.lives.begin(resumed, beginningWith(origin, [[1, 4]], { kind: 'resume' }));
      const ids = async (key: ConversationKey): Promise<string[]> => (await open().items.list(key)).items.map(({ id }) => id).sort();
      expect(await ids(fork)).toEqual(['mem_3', 'mem_4']);
      expect((await open().items.list(fork, { session: 2 })).items).toEqual([]);
      for (const n of [1, 2]) expect(await open().items.get(fork, `mem_${n}`)).toBeUndefined();
      for (const n of [3, 4]) expect(await open().items.get(fork, `mem_${n}`)).toEqual(item(n, { slot: 2 }));
      for (const key of [origin, resumed]) expect([await ids(key), await open().items.get(key, 'mem_3')]).toEqual([[], undefined]);
    });

    test('long texts are read where they lie, and a life’s own first', async () => {
      const origin = await anOrigin();
      const fork = aConversation({ conversation: 'fork' });
      const { ref } = await store.bodies.put(origin, 'a long text');
      expect(await store.bodies.get(fork, ref)).toBeUndefined();
      await store.lives.begin(fork, beginningWith(origin, [[1, 4]]));
      expect(await store.bodies.get(fork, ref)).toBe('a long text');
      const own = await store.bodies.put(fork, 'another');
      expect(await store.bodies.get(origin, own.ref)).toBeUndefined();
    });

    test('the first beginning counts, and a store opened beside reads it', async () => {
      const origin = await anOrigin();
      const fork = aConversation({ conversation: 'fork' });
      const first = beginningWith(origin, [[1, 4]], { archived: [[1, 2]] });
      await store.lives.begin(fork, first);
      await store.lives.begin(fork, beginningWith(origin, [[1, 6]]));
      expect(await open().lives.beginning(fork)).toEqual(first);
      expect(await open().entries.archived(fork)).toEqual([[1, 2]]);
      expect(await store.lives.beginning(origin)).toBeUndefined();
    });

    test('thousands of slots that are archived from the beginning are reported, and can be joined by others', async () => {
      const origin = await anOrigin();
      const fork = aConversation({ conversation: 'fork' });
      await store.lives.begin(fork, beginningWith(origin, [[1, 4_000]], { archived: [[1, 3_000], [3_500, 3_500]] })); // prettier-ignore
      await store.entries.archive(fork, [[4_001, 4_002]], 1);
      expect(await store.entries.archived(fork)).toEqual([[1, 3_000], [3_500, 3_500], [4_001, 4_002]]); // prettier-ignore
    });

    test('an origin knows its forks, each once, and forgets one that is deleted', async () => {
      const origin = await anOrigin();
      const [one, two] = [aConversation({ conversation: 'one' }), aConversation({ conversation: 'two' })];
      for (const fork of [one, two, one]) await store.lives.begin(fork, beginningWith(origin, [[1, 4]]));
      const names = [one, two].map(({ conversation, life }) => ({ conversation, life }));
      expect((await store.lives.forks(origin)).sort((a, b) => a.conversation.localeCompare(b.conversation))).toEqual(names);
      await store.lives.delete(one);
      await store.lives.delete(one);
      expect(await store.lives.forks(origin)).toEqual([names[1]]);
      expect(await store.lives.forks(two)).toEqual([]);
    });

    test('what is consolidated is noted once per request', async () => {
      const key = aConversation();
      await store.lives.claim(key, { v: 1, id: 'c/l/s1/1-4', slots: [[1, 4]] });
      await store.lives.claim(key, { v: 1, id: 'c/l/s1/1-4', slots: [[1, 9]] });
      expect(await open().lives.claims(key)).toEqual([{ v: 1, id: 'c/l/s1/1-4', slots: [[1, 4]] }]);
      expect(await store.lives.claims(aConversation())).toEqual([]);
    });

    test('cuts are kept once, in the order of their branches, and what is cut is read as before', async () => {
      const key = await anOrigin();
      await store.lives.cut(key, { ...CUT, id: 'r2', branch: 2 });
      await store.lives.cut(key, CUT);
      await store.lives.cut(key, { ...CUT, slots: [] });
      expect(await open().lives.cuts(key)).toEqual([CUT, { ...CUT, id: 'r2', branch: 2 }]);
      expect((await store.entries.page(key, 0, 10)).entries).toHaveLength(6);
      expect(await store.lives.cuts(aConversation())).toEqual([]);
    });

    test('all lives of a conversation are found, and none of one whose id begins the same', async () => {
      const conversation = `of-many-${aConversation().life}`;
      const scope = 'its-own';
      const lives = ['life-1', 'life-2'].map((life) => aConversation({ conversation, life, scope }));
      for (const key of lives) await store.entries.append(key, [answerEntry(1)]);
      await store.entries.append(aConversation({ conversation: `${conversation}-more`, scope }), [answerEntry(1)]);
      const found = await store.lives.list({ namespace: 'default', conversation, scope });
      expect(found).toEqual(lives);
      expect((await store.lives.list({ namespace: 'default', conversation })).map(({ life }) => life)).toEqual(['life-1', 'life-2']);
      expect(await store.lives.list({ namespace: 'default', conversation: `${conversation}-none` })).toEqual([]);
    });

    test('a deleted life has nothing left, its other lives and its scope have all, and the same key can begin anew', async () => {
      const key = await anOrigin();
      const other = { ...key, life: `${key.life}-2` };
      await store.entries.append(other, [answerEntry(1)]);
      const { ref } = await store.bodies.put(key, 'a long text');
      await store.episodes.add(key, episode(1));
      await store.entries.archive(key, [[1, 2]], 1);
      await store.effects.commit(key, { id: 'turn_0001/m1', hash: 'h' }, 'done', []);
      await store.feed.publish(key, [{ event: { kind: 'x' } }]);
      await store.lives.cut(key, CUT);
      await store.turnEnds.add(key, [ended(1)]);
      for (const each of [store, open()]) {
        await each.lives.delete(key);
        expect(await each.entries.page(key, 0, 10)).toEqual({ entries: [], last: 0, skipped: 0 });
        expect(await each.bodies.get(key, ref)).toBeUndefined();
        expect((await each.episodes.list(key)).episodes).toEqual([]);
        expect(await each.entries.archived(key)).toEqual([]);
        expect(await each.lives.cuts(key)).toEqual([]);
        expect(await each.turnEnds.list(key)).toEqual([]);
        expect(await each.lives.list({ namespace: 'default', conversation: 'origin', scope: key.scope })).not.toContainEqual(key);
      }
      expect(await store.effects.reserve(key, { id: 'turn_0001/m1', hash: 'other' }, 'a')).toEqual({ status: 'reserved', earlier: 0 });
      expect((await store.entries.page(other, 0, 10)).entries).toHaveLength(1);
      await store.entries.append(key, [answerEntry(1, 'anew')]);
      expect(await open().entries.read(key, [1])).toEqual([answerEntry(1, 'anew')]);
    });

    /** Every way in which something can be written to a life. */
    const WRITES: readonly (readonly [name: string, write: (of: Store, key: ConversationKey) => Promise<unknown>])[] = [
      ['record', (of, key) => of.entries.record(key, [userEntry(8, 'canary')])],
      ['append', (of, key) => of.entries.append(key, [answerEntry(8, 'canary')])],
      ['apply', (of, key) => of.writes.apply(key, { append: [answerEntry(8, 'canary')], publish: [{ event: 'canary' }] })],
      ['commit', (of, key) => of.effects.commit(key, { id: 'turn_0009/m1', hash: 'h' }, 'canary', [], { publish: [{ event: 'canary' }] })],
      ['fence', (of, key) => of.effects.fence(key, ['turn_0009/m2'])],
      ['put a body', (of, key) => of.bodies.put(key, 'canary')],
      ['put an item', (of, key) => of.items.put(key, [item(1, { source: 'canary' })])],
      ['cite', (of, key) => of.items.cite(key, 'mem_1', 'canary')],
      ['publish', (of, key) => of.feed.publish(key, [{ event: 'canary' }])],
      ['summarize', (of, key) => of.episodes.add(key, episode(1, { summary: 'canary' }))],
      ['cut', (of, key) => of.lives.cut(key, { ...CUT, id: 'canary' })],
      ['claim', (of, key) => of.lives.claim(key, { v: 1, id: 'canary', slots: [[1, 2]] })],
      ['archive', (of, key) => of.entries.archive(key, [[1, 2]], 1)],
      ['say how a turn ended', (of, key) => of.turnEnds.add(key, [{ ...ended(1), error: { type: 'other', message: 'canary' } }])],
      ['say what was spent', (of, key) => of.effects.spend(key, 'canary', spendingOf(key))],
    ];

    test.each(WRITES)('what is written late to a deleted life does not stay: %s', async (_, write) => {
      const key = aConversation({ conversation: 'deleted' });
      const other = { ...key, life: `${key.life}-2` };
      // Opened before, as by a worker that is still at work.
      await store.entries.append(key, [answerEntry(1, 'canary')]);
      await store.lives.markDeleted(key, [{ life: key.life, at: 1 }]);
      await store.lives.delete(key);
      for (const late of [store, open()]) {
        await expect(write(late, key)).rejects.toThrow(/deleted was deleted on 1970-01-01T00:00:01.000Z/);
        await expect(write(late, key)).rejects.toBeInstanceOf(LifeDeleted);
      }
      expect(await bytes()).not.toContain('canary');
      expect((await store.entries.page(key, 0, 10)).entries).toEqual([]);
      // Another life of the same conversation is another conversation's business.
      await write(open(), other);
      expect(await bytes()).toContain(other.life);
      await store.lives.delete(other);
    });

    test('a tombstone is kept once, outlasts the life, and can be taken away', async () => {
      const key = aConversation({ conversation: `buried-${aConversation().life}` });
      await store.lives.markDeleted(key, [{ life: key.life, at: 10 }]);
      await store.lives.markDeleted(key, [
        { life: key.life, at: 20 },
        { life: 'another', at: 20 },
      ]);
      await store.lives.delete(key);
      const marked = [
        { life: key.life, at: 10 },
        { life: 'another', at: 20 },
      ];
      expect([...(await open().lives.deleted(key))].sort((a, b) => a.at - b.at)).toEqual(marked);
      await store.lives.unmarkDeleted(key, [key.life]);
      expect(await open().lives.deleted(key)).toEqual([marked[1]]);
      await store.entries.append(key, [answerEntry(1)]);
      expect(await store.lives.deleted(aConversation({ conversation: 'never' }))).toEqual([]);
    });

    test('nothing begins with what a deleted life had, whichever of the two came first', async () => {
      const origin = await anOrigin();
      const fork = aConversation({ conversation: 'fork' });
      await store.lives.markDeleted(origin, [{ life: origin.life, at: 1 }]);
      await expect(store.lives.begin(fork, beginningWith(origin, [[1, 4]]))).rejects.toBeInstanceOf(LifeDeleted);
      expect(await open().lives.beginning(fork)).toBeUndefined();
      expect(await open().lives.forks(origin)).toEqual([]);
    });

    test('a conversation’s tree is all its lives and those of its sub-agents, at any depth, and no others', async () => {
      const conversation = `tree-${aConversation().life}`;
      const scope = 'its-own';
      const below = [`${conversation}:turn_0001:1`, `${conversation}:turn_0001:1:turn_0001:2`, `${conversation}:turn_0002:1`];
      for (const id of [conversation, ...below, `${conversation}-more`, `${conversation}-more:turn_0001:1`]) {
        await store.entries.append(aConversation({ conversation: id, scope, life: `life of ${id}` }), [answerEntry(1)]);
      }
      for (const named of [{ scope }, {}]) {
        const found = await store.lives.list({ namespace: 'default', conversation, tree: true, ...named });
        expect(found.map((key) => key.conversation).sort()).toEqual([conversation, ...below].sort());
        expect(found.every((key) => key.life === `life of ${key.conversation}`)).toBe(true);
      }
      expect(await store.lives.list({ namespace: 'default', conversation, scope })).toHaveLength(1);
    });

    test('how turns ended is written once each, and read in their order by every store', async () => {
      const key = await anOrigin();
      await store.turnEnds.add(key, [ended(10_000), ended(2)]);
      await store.turnEnds.add(key, [ended(9_999), { ...ended(2), error: { type: 'other', message: 'a second word on it' } }]);
      await store.turnEnds.add(key, []);
      for (const each of [store, open()]) expect(await each.turnEnds.list(key)).toEqual([ended(2), ended(9_999), ended(10_000)]);
      expect(await store.turnEnds.list(aConversation({ conversation: 'other' }))).toEqual([]);
    });

    test('of very many turns that failed the newest are kept, and an older one does not come back', async () => {
      const key = await anOrigin();
      const all = Array.from({ length: 510 }, (_, at) => ended(at + 1));
      await store.turnEnds.add(key, all);
      await store.turnEnds.add(key, [ended(1)]);
      expect(await open().turnEnds.list(key)).toEqual(all.slice(-500));
    });
  });
}
