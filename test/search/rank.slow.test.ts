/** Texts without end. rank.test.ts has hostile questions. */
import { search } from '../../src/search/scan.js';
import { SearchIndex } from '../../src/search/search-index.js';
import { NOON } from './corpus.js';
import { ends } from '../support/ends.js';

test('texts of a mebibyte and of a hundred thousand different words', () => {
  const many = Array.from({ length: 100_000 }, (_, i) => `w${i.toString(36)}`).join(' ');
  const index = new SearchIndex();
  const texts = [many, 'x'.repeat(1024 * 1024), '书'.repeat(100_000), `${'a'.repeat(900)}\ud83d`.repeat(300), `A${' '.repeat(100_000)}: b`];
  for (const [i, text] of texts.entries()) index.add({ line: 'talk', at: i + 1, session: 1, ts: NOON + i * 60, kind: 'user', text });
  expect(ends(() => search(index, { question: 'w7', now: NOON }))[0]?.at).toBe(1);
});
