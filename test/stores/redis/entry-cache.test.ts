import { createEntryCache } from '../../../src/stores/redis/entry-cache.js';
import { answerEntry } from '../builders.js';

test('it keeps so many bytes and no more: the conversation read longest ago goes first', () => {
  const cache = createEntryCache(100);
  cache.add('a', 1, answerEntry(1), 40);
  cache.add('b', 1, answerEntry(1), 40);
  cache.of('a');
  cache.add('c', 1, answerEntry(1), 40);
  expect(['a', 'b', 'c'].map((name) => cache.of(name).size)).toEqual([1, 0, 1]);
  cache.add('d', 1, answerEntry(1), 1_000);
  expect(['a', 'c', 'd'].map((name) => cache.of(name).size)).toEqual([0, 0, 0]);
});

test('what is forgotten or added twice is not counted', () => {
  const cache = createEntryCache(100);
  for (let time = 0; time < 10; time++) cache.add('a', 1, answerEntry(1), 60);
  expect(cache.of('a').size).toBe(1);
  cache.forget('a');
  cache.forget('a');
  cache.add('b', 1, answerEntry(1), 90);
  expect(cache.of('b').size).toBe(1);
});

describe('what the store says is there', () => {
  const cacheAt = () => {
    const clock = { now: 0 };
    return { clock, cache: createEntryCache(1_000, () => clock.now) };
  };

  test('with a write, vouches for one read, within a second', () => {
    const { clock, cache } = cacheAt();
    expect(cache.isVouchedFor('a')).toBe(false);
    cache.counted('a', { added: 1, all: 2 });
    cache.add('a', 1, answerEntry(1), 10);
    expect([cache.isVouchedFor('a'), cache.isVouchedFor('a')]).toEqual([true, false]);
    cache.counted('a', { added: 1, all: 3 });
    clock.now = 1_001;
    expect(cache.isVouchedFor('a')).toBe(false);
  });

  test('vouches for nothing that was known before it was first counted, over this connection', () => {
    const { cache } = cacheAt();
    cache.add('a', 1, answerEntry(1), 10);
    cache.counted('a', { added: 1, all: 9 });
    expect(cache.of('a').size).toBe(0);
    cache.add('a', 2, answerEntry(2), 10);
    cache.disconnected();
    expect(cache.isVouchedFor('a')).toBe(false);
    cache.counted('a', { added: 1, all: 10 });
    expect(cache.of('a').size).toBe(0);
  });

  test('takes the trust away from all when it is less than there must be', () => {
    const { cache } = cacheAt();
    cache.counted('a', { added: 1, all: 5 });
    cache.add('a', 1, answerEntry(1), 10);
    cache.counted('a', { added: 2, all: 7 });
    expect(cache.of('a').size).toBe(1);
    cache.counted('a', { added: 1, all: 7 });
    expect(cache.of('a').size).toBe(0);
  });
});
