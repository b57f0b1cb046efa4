import { createEntryCache } from '../../src/stores/entry-cache.js';
import { answerEntry } from './builders.js';

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
