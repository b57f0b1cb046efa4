/** What an index of a scope stands on: which lives have entries, and whether anything in them is new. */
import type { ConversationKey, Store } from '../../src/stores/store.js';
import { aConversation, aScope, episode, userEntry } from './builders.js';
import type { OpenStore } from './contract.js';

const ofFreshScope = (): ConversationKey => aConversation(aScope());

export function scopesContract(open: OpenStore): void {
  describe('scopes', () => {
    const marksOf = async (store: Store, key: ConversationKey) => {
      const { lives } = await store.scopes.marks(key);
      return new Map(lives.map(({ key: { conversation, life }, mark }) => [`${conversation}/${life}`, mark]));
    };

    test('a life is there from its first entry on, in its scope alone, for every process', async () => {
      const store = open();
      const key = ofFreshScope();
      const other = { ...ofFreshScope(), scope: `${key.scope}-other` };
      expect((await marksOf(store, key)).size).toBe(0);
      await store.entries.record(key, [userEntry(1)]);
      await store.entries.append(other, [userEntry(1)]);
      expect([...(await marksOf(open(), key)).keys()]).toEqual([`${key.conversation}/${key.life}`]);
      expect([...(await marksOf(open(), other)).keys()]).toEqual([`${other.conversation}/${other.life}`]);
    });

    test('those are listed in which something was said or is remembered', async () => {
      const store = open();
      const [said, remembered] = [ofFreshScope(), { ...ofFreshScope(), scope: `acme.${aScope().scope}` }];
      await store.entries.record(said, [userEntry(1)]);
      const { version: from } = await store.documents.memory(remembered);
      await store.documents.writeMemory(remembered, { id: 'w1', ts: 1, cause: 'hand', from, text: '- Tea.\n', lines: [] });
      const listed = await open().scopes.list(said.namespace);
      expect(listed).toEqual(expect.arrayContaining([said.scope, ...(said.namespace === remembered.namespace ? [remembered.scope] : [])]));
      expect(new Set(listed).size).toBe(listed.length);
      expect(listed).not.toContain(ofFreshScope().scope);
    });

    test('its mark stays while nothing is written, and changes with an entry, a commit and a cut', async () => {
      const store = open();
      const key = ofFreshScope();
      const name = `${key.conversation}/${key.life}`;
      const marks = new Set<string | undefined>();
      const look = async (): Promise<void> => {
        const mark = (await marksOf(store, key)).get(name);
        expect((await marksOf(store, key)).get(name)).toBe(mark);
        marks.add(mark);
      };
      await store.entries.record(key, [userEntry(1)]);
      await look();
      await store.entries.append(key, [userEntry(2)]);
      await look();
      await store.effects.reserve(key, { id: 'e', hash: 'h' }, 'a');
      await store.effects.commit(key, { id: 'e', hash: 'h' }, 'done', [userEntry(3)]);
      await look();
      await store.lives.cut(key, { v: 1, id: 'c', branch: 1, to: 1, begun: 1, since: 1, slot: 3, at: 2, session: 1, slots: [[3, 3]] });
      await look();
      expect(marks.size).toBe(4);
    });

    test('a deleted life is none', async () => {
      const store = open();
      const key = ofFreshScope();
      await store.entries.record(key, [userEntry(1)]);
      await store.lives.delete(key);
      expect((await marksOf(store, key)).size).toBe(0);
    });

    test('what was written since an earlier look is told, by whichever process, and nothing else', async () => {
      const [store, other] = [open(), open()];
      const key = ofFreshScope();
      const lives = [1, 2, 3].map((n) => ({ ...key, conversation: `conv_${n}`, life: `life_${n}` }));
      const [first = key, second = key, third = key] = lives;
      const look = async (since?: string) => {
        const { changed, cursor, lives: there } = await store.scopes.marks(key, since);
        return {
          changed: changed && [...new Set(changed.map(({ life }) => life))].sort(),
          there: there.map(({ key: of }) => of.life).sort(),
          cursor,
        };
      };
      for (const of of lives) await other.entries.record(of, [userEntry(1)]);
      const all = await look();
      expect(all).toMatchObject({ changed: undefined, there: ['life_1', 'life_2', 'life_3'] });
      expect(await look(all.cursor)).toMatchObject({ changed: [], there: [], cursor: all.cursor });
      const writes: [ConversationKey, () => Promise<unknown>][] = [
        [first, () => other.entries.append(first, [userEntry(2)])],
        [second, () => store.writes.apply(second, { append: [userEntry(2)] })],
        [first, () => other.effects.commit(first, { id: 'e', hash: 'h' }, 'done', [userEntry(3)])],
        [
          third,
          () =>
            other.lives.cut(third, { v: 1, id: 'c', branch: 1, to: 1, begun: 1, since: 1, slot: 3, at: 2, session: 1, slots: [[3, 3]] }),
        ],
        [second, () => store.episodes.add(second, episode(1))],
        [second, () => other.vectors.add(second, [{ model: 'm/m', text: 1, values: Int8Array.of(1) }])],
      ];
      let { cursor } = all;
      for (const [{ life }, write] of writes) {
        await write();
        const now = await look(cursor);
        expect(now).toMatchObject({ changed: [life], there: [life] });
        cursor = now.cursor;
      }
      await other.lives.delete(third);
      expect(await look(cursor)).toMatchObject({ changed: ['life_3'], there: [] });
      // What no note is left of is looked at whole.
      for (const bad of ['', 'x', '99999999999', '1.2@3']) expect(await look(bad)).toMatchObject({ there: ['life_1', 'life_2'] });
    });

    test('documents change the other mark', async () => {
      const store = open();
      const key = ofFreshScope();
      const marks = new Set([(await store.scopes.marks(key)).documents]);
      await store.documents.appendHistory(key, { id: 'h1', kind: 'summary', ts: 1, text: 'once' });
      marks.add((await store.scopes.marks(key)).documents);
      await store.documents.forget(key, { id: 't1', ts: 1, words: ['a'] });
      marks.add((await store.scopes.marks(key)).documents);
      const { version } = await store.documents.memory(key);
      await store.documents.writeMemory(key, { id: 'w', ts: 1, cause: 'consolidation', from: version, text: '- a line\n', lines: [] });
      marks.add((await store.scopes.marks(key)).documents);
      expect(marks.size).toBe(4);
    });

    test('each part of the index is read as it was written last, by its scope alone, until it is removed', async () => {
      const store = open();
      const key = ofFreshScope();
      const read = async (part: string, of = key) => [...((await open().scopes.readIndex(of, part)) ?? [])];
      expect(await store.scopes.readIndex(key, 'head')).toBeUndefined();
      expect(await store.scopes.indexParts(key)).toEqual([]);
      const bytes = Uint8Array.from({ length: 2_500_000 }, (_, i) => i % 251);
      await store.scopes.writeIndex(key, 'head', bytes);
      expect(Buffer.compare(Buffer.from((await open().scopes.readIndex(key, 'head')) ?? []), Buffer.from(bytes))).toBe(0);
      await store.scopes.writeIndex(key, 'part-1', bytes.subarray(3, 10));
      await store.scopes.writeIndex(key, 'head', bytes.subarray(0, 10));
      expect([await read('head'), await read('part-1')]).toEqual([[...bytes.subarray(0, 10)], [...bytes.subarray(3, 10)]]);
      expect([...(await open().scopes.indexParts(key))].sort()).toEqual(['head', 'part-1']);
      expect(await read('head', { ...key, scope: `${key.scope}-other` })).toEqual([]);
      await store.scopes.removeIndex(key, ['part-1', 'part-2']);
      expect([await read('part-1'), await store.scopes.indexParts(key)]).toEqual([[], ['head']]);
      await store.scopes.removeIndex(key, ['head']);
      expect([await read('head'), await store.scopes.indexParts(key)]).toEqual([[], []]);
      await store.scopes.removeIndex(key, []);
    });
  });
}
