/** Vectors of what was said, in every store: once each, gone with their life, never those of another model. */
import { randomUUID } from 'node:crypto';
import { LifeDeleted, type StoredVector } from '../../src/stores/store.js';
import { aConversation, userEntry } from './builders.js';
import type { OpenStore } from './contract.js';

const aVector = (text: number, values: readonly number[] = [1, -2, 127], model = 'ollama/a'): StoredVector => ({
  model,
  text,
  values: Int8Array.from(values),
});

export function vectorsContract(open: OpenStore): void {
  describe('vectors', () => {
    const byText = (vectors: readonly StoredVector[]) =>
      vectors.map(({ text, values }) => [text, ...values]).sort(([a = 0], [b = 0]) => a - b);

    test('each is there once, as it came first, for every process', async () => {
      const key = aConversation();
      const other = { ...key, life: randomUUID() };
      await open().vectors.add(key, [aVector(1), aVector(2, [5, 6, 7]), aVector(1, [9, 9, 9])]);
      await Promise.all([1, 2, 3].map((i) => open().vectors.add(key, [aVector(1, [i, i, i]), aVector(10 + i)])));
      const there = byText(await open().vectors.read(key, 'ollama/a'));
      expect(there.map(([text]) => text)).toEqual([1, 2, 11, 12, 13]);
      expect(there.slice(0, 2)).toEqual([
        [1, 1, -2, 127],
        [2, 5, 6, 7],
      ]);
      expect(await open().vectors.read(other, 'ollama/a')).toEqual([]);
    });

    test('those of another model are never read for these, and another size stands beside', async () => {
      const key = aConversation();
      await open().vectors.add(key, [aVector(1), aVector(1, [3, 3, 3], 'openai/b'), aVector(1, [1, 2])]);
      expect(byText(await open().vectors.read(key, 'openai/b'))).toEqual([[1, 3, 3, 3]]);
      expect((await open().vectors.read(key, 'ollama/a')).map(({ values }) => values.length).sort()).toEqual([2, 3]);
    });

    test('those of texts that are no longer there are taken away, of all models', async () => {
      const key = aConversation();
      await open().vectors.keep(key, () => Promise.reject(new Error('asked for nothing')));
      await open().vectors.add(key, [aVector(1), aVector(2), aVector(2, [1, 1, 1], 'openai/b')]);
      for (let i = 0; i < 2; i += 1) await open().vectors.keep(key, () => Promise.resolve(new Set([1])));
      expect(byText(await open().vectors.read(key, 'ollama/a'))).toEqual([[1, 1, -2, 127]]);
      expect(await open().vectors.read(key, 'openai/b')).toEqual([]);
      // One that is made again is there again.
      await open().vectors.add(key, [aVector(2)]);
      expect(await open().vectors.read(key, 'ollama/a')).toHaveLength(2);
    });

    test('they change the mark of their life, and go with it; late ones do not stay', async () => {
      const store = open();
      const key = aConversation();
      await store.entries.record(key, [userEntry(1)]);
      const markOf = async () => (await store.scopes.marks(key)).lives.find(({ key: of }) => of.life === key.life)?.mark;
      const before = await markOf();
      await store.vectors.add(key, [aVector(1)]);
      expect(await markOf()).not.toBe(before);
      await store.lives.markDeleted(key, [{ life: key.life, at: 1 }]);
      await store.lives.delete(key);
      expect(await store.vectors.read(key, 'ollama/a')).toEqual([]);
      await expect(store.vectors.add(key, [aVector(1)])).rejects.toThrow(LifeDeleted);
      expect(await open().vectors.read(key, 'ollama/a')).toEqual([]);
    });
  });
}
