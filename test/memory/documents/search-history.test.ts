import type { HistoryEntry } from '../../../src/records/memory/documents.js';
import { searchHistory, queryTerms, type HistoryQuery } from '../../../src/memory/documents/search-history.js';

async function* newestFirst(...texts: string[]): AsyncGenerator<HistoryEntry> {
  for (const [i, text] of texts.entries()) yield { id: `c${i}`, kind: 'summary', ts: 1000 - i, text };
}

const found = async (query: string, texts: readonly string[], over: Partial<HistoryQuery> = {}) => {
  const { matches, more } = await searchHistory(newestFirst(...texts), { query, ...over });
  return { ids: matches.map(({ id }) => id), more };
};

test('all words must be there, as they are, in any case', async () => {
  const texts = ['Deploy to STAGING', 'staging only', 'The deploy: (staging)', 'deploy.*staging', 'nothing'];
  expect(await found('staging deploy', texts)).toEqual({ ids: ['c0', 'c2', 'c3'], more: false });
  expect(await found('.*', texts)).toEqual({ ids: ['c3'], more: false });
  expect(await found('(staging)', texts)).toEqual({ ids: ['c2'], more: false });
});

test('what stands in quotation marks is taken as it stands there', async () => {
  const texts = ['the staging server', 'server, staging', 'a "Staging Server"'];
  expect(await found('"staging server"', texts)).toEqual({ ids: ['c0', 'c2'], more: false });
  expect(queryTerms('deploy "Staging  server" "deploy" "" "open end')).toEqual(['deploy', 'staging  server', 'open end']);
});

test.each([
  ['STRASSE größe', 'Strasse und GRÖSSE, Größe'],
  ['οδός', 'ΟΔΌΣ'],
  ['ИВАН', 'иван'],
  ['🎈', 'a 🎈'],
])('%j is found in %j', async (query, text) => {
  expect(await found(query, [text])).toEqual({ ids: ['c0'], more: false });
});

test('as many as wanted, and whether there are more', async () => {
  const texts = Array.from({ length: 12 }, () => 'word');
  expect((await found('word', texts)).ids).toHaveLength(10);
  expect(await found('word', texts, { limit: 2 })).toEqual({ ids: ['c0', 'c1'], more: true });
  expect((await found('word', texts, { limit: 12 })).more).toBe(false);
});

test('from `after` on, and before `before`', async () => {
  expect(await found('word', ['word', 'word', 'word', 'word'], { before: 1000, after: 998 })).toEqual({ ids: ['c1', 'c2'], more: false });
});

test('a long text is cut around the first match, never through a character', async () => {
  const text = `${'🎈 '.repeat(500)}İİ here it is ${'x🎈'.repeat(500)}`;
  const { matches } = await searchHistory(newestFirst(text, 'short: HERE'), { query: 'it here' });
  expect(matches).toHaveLength(1);
  const excerpt = matches[0]?.excerpt ?? '';
  expect(excerpt.length).toBeLessThanOrEqual(600);
  expect(excerpt).toMatch(/^…/);
  expect(excerpt).toMatch(/…$/);
  expect(excerpt).toContain('İİ here it is x🎈');
  expect(excerpt.isWellFormed()).toBe(true);
  expect((await searchHistory(newestFirst('short: HERE'), { query: 'here' })).matches[0]?.excerpt).toBe('short: HERE');
});

test.each([
  ['an empty query', '" " ', {}, 'no words'],
  ['a long query', 'x'.repeat(201), {}, 'at most 200'],
  ['no limit', 'x', { limit: 0 }, 'from 1 to 50'],
  ['too high a limit', 'x', { limit: 51 }, 'from 1 to 50'],
])('%s is refused in words', async (_, query, over, words) => {
  await expect(found(query, ['x'], over)).rejects.toThrow(words);
});

test('ends when it is told to', async () => {
  await expect(found('x', ['x'], { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
});

test.each([`${'a'.repeat(199)}b`, `b${'a'.repeat(199)}`, `${'a'.repeat(99)}b${'a'.repeat(100)}`, 'a '.repeat(100).trim()])(
  'what is not linear takes hours: comes to an end, whatever HISTORY and query look like',
  async (query) => {
    const text = 'a'.repeat(5 * 1024 * 1024);
    await found(query, [text]);
    const entries = Array.from({ length: 5_000 }, () => text.slice(0, 1024));
    await found(query, entries);
  },
);
