import fc from 'fast-check';
import { search } from '../../src/search/scan.js';
import { SearchIndex } from '../../src/search/search-index.js';
import { fromSnapshot, toSnapshot } from '../../src/search/snapshot.js';
import { corpus, NOON, question } from './corpus.js';

const scope = 'perdura/default';

test('what is read back ranks the same, and goes on like the first', () => {
  fc.assert(
    fc.property(corpus, question, fc.nat(60), (texts, asked, cut) => {
      const index = new SearchIndex();
      for (const text of texts.slice(0, cut)) index.add(text);
      const read = fromSnapshot(toSnapshot(index, scope, { marks: { a: 'é' } }), scope);
      expect(read?.extra).toEqual({ marks: { a: 'é' } });
      for (const text of texts) for (const one of [index, read!.index]) one.add(text);
      const asIn = (one: SearchIndex) => search(one, { question: asked, now: NOON, limit: 200 });
      expect(asIn(read!.index)).toEqual(asIn(index));
      read!.index.remove('a', () => true);
      index.remove('a', () => true);
      expect(asIn(read!.index)).toEqual(asIn(index));
    }),
    { numRuns: 50 },
  );
});

describe('a snapshot that cannot be trusted is refused', () => {
  const index = new SearchIndex();
  for (let at = 0; at < 50; at += 1) index.add({ line: 'a', at, session: 1, ts: NOON + at, kind: 'user', text: `Anna: boat number ${at}` });
  const good = toSnapshot(index, scope, {});

  test('of another scope', () => expect(fromSnapshot(good, 'perdura/other')).toBeUndefined());
  test('cut off anywhere', () => {
    fc.assert(fc.property(fc.nat(good.length - 1), (length) => expect(fromSnapshot(good.slice(0, length), scope)).toBeUndefined()));
  });
  test('with one bit changed anywhere', () => {
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.nat(7), (at, bit) => {
        const bad = good.slice();
        bad[at] = (bad[at] ?? 0) ^ (1 << bit);
        expect(fromSnapshot(bad, scope)).toBeUndefined();
      }),
    );
  });
  test('random bytes', () =>
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => expect(fromSnapshot(bytes, scope)).toBeUndefined())));
  test('but not one that lies at an odd place of a larger buffer', () => {
    const shifted = new Uint8Array(good.length + 3);
    shifted.set(good, 3);
    expect(fromSnapshot(shifted.subarray(3), scope)?.index.size).toBe(50);
  });
});
