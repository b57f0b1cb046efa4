import { FORGOTTEN_MARK, isForgotten, redactor, toTombstone, withoutForgotten } from '../../src/memory/documents/forgetting.js';

const salt = 'pepper';
const stone = (text: string) => toTombstone(text, { id: 'forget_0001', ts: 1738100000, salt });

test('a tombstone has salted hashes alone, sorted, each word once', () => {
  const { words, ...rest } = stone('- Ada moved to Berlin, Berlin!');
  expect(rest).toEqual({ id: 'forget_0001', ts: 1738100000 });
  expect(words).toHaveLength(3);
  expect(words).toEqual([...words].sort());
  for (const word of words) expect(word).toMatch(/^[0-9a-f]{16}$/);
  expect(toTombstone('Ada moved to Berlin', { id: 'x', ts: 0, salt: 'other' }).words).not.toEqual(words);
});

test.each([
  ['the line itself', 'Ada moved to Berlin in 2019', true],
  ['in other words of the same', '* In 2019 the user Ada moves to BERLIN.', true],
  ['four of five, with more beside', 'Ada moved to Berlin, 2019, and bought a house', true],
  ['in a link', 'https://x.org/ada/moved/berlin/2019', true],
  ['three of four', 'Ada moved to Berlin', false],
  ['something else', 'Ada likes tea', false],
  ['nothing', '', false],
])('forgotten is %s', (_, line, forgotten) => {
  expect(isForgotten(line, [stone('Coffee at noon'), stone('1. Ada moved to Berlin in 2019')], salt)).toBe(forgotten);
});

test('one word is enough for a tombstone, none forgets nothing, and another salt knows nothing', () => {
  expect(isForgotten('Her name is Ada.', [stone('Ada')], salt)).toBe(true);
  expect(stone('the user is').words).toEqual([]);
  expect(isForgotten('the user is', [stone('the user is')], salt)).toBe(false);
  expect(isForgotten('Her name is Ada.', [stone('Ada')], 'other')).toBe(false);
});

test('forgotten lines are dropped from a document, the others stay byte for byte', () => {
  const text = '# Memory\r\n\r\n- Ada moved to Berlin\r\n- Tea';
  expect(withoutForgotten(text, [stone('coffee')], salt)).toBe(text);
  expect(withoutForgotten(text, [stone('Ada moved to Berlin')], salt)).toBe('# Memory\n\n- Tea');
});

test('and are marked in a message, of which each line stays one', () => {
  const redact = redactor([stone('Ada moved to Berlin')], salt);
  expect(redact('Hello.\nAda moved to Berlin.\nBye.')).toBe(`Hello.\n${FORGOTTEN_MARK}\nBye.`);
  expect(redact('Hello.')).toBe('Hello.');
});

test('is the same in Japanese', () => {
  expect(isForgotten('ユーザーは東京に住んでいます', [stone('東京に住んでいる')], salt)).toBe(true);
  expect(isForgotten('ユーザーは京都で働く', [stone('東京に住んでいる')], salt)).toBe(false);
});
