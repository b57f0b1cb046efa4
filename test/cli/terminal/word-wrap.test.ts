import * as fc from 'fast-check';
import { wrapWords } from '../../../src/cli/terminal/terminal-text.js';
import { measure } from '../commands/measure.js';

test('a line is cut between words, and what follows begins where its text began', () => {
  expect(wrapWords('  waiting for the approval of run_command until Monday', 30)).toBe(
    '  waiting for the approval of\n  run_command until Monday',
  );
  expect(wrapWords('  /new         clear the session; long-term memory keeps what it was about', 50)).toBe(
    '  /new         clear the session; long-term memory\n               keeps what it was about',
  );
});

test('a word that no line can hold is cut within itself, and a short text stays', () => {
  expect(wrapWords('abcdefghijklmnop', 10)).toBe('abcdefghij\nklmnop');
  expect(wrapWords('short', 40)).toBe('short');
});

test('where the first column would leave too little room, it is indented as the line is', () => {
  expect(wrapWords('  a-rather-long-name    its meaning in some words', 30)).toBe('  a-rather-long-name    its\n  meaning in some words');
});

test('no row is wider than the screen, and no word is lost, at any width from 40', () => {
  const word = fc.stringMatching(/^[a-z日本語]{1,60}$/);
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 60 }), fc.integer({ min: 40, max: 200 }), fc.nat(8), (words, columns, indent) => {
      const wrapped = wrapWords(' '.repeat(indent) + words.join(' '), columns);
      for (const row of wrapped.split('\n')) expect(measure(row)).toBeLessThanOrEqual(columns);
      expect(wrapped.replace(/\s+/g, '')).toBe(words.join(''));
    }),
  );
});
