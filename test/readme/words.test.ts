/** README, docs and source are read once: README's length, words that do not come back, and pages that name all there is. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { listCommands } from '../../src/cli/main.js';
import { fencedBlocks, pagesOfDocs, read, ROOT } from './commands.js';
import { countHard, MAX_BY_ROOM, NOT_IN_DOCS } from './hard-words.js';

/** Lists them as examples. */
const STYLE = 'docs/contributing/style.md';
const pages = ['CONTRIBUTING.md', ...pagesOfDocs().filter((page) => page !== STYLE)];

/** What is read: code, titles of tests (in italics) and what the bench writes are left out. */
function wordsOf(markdown: string): string {
  return markdown
    .replace(/^```[^]*?^```$/gm, '')
    .replace(/(?<!\w)_[^_|\n]+_(?!\w)/g, '')
    .replace(/<!-- peers -->[^]*<!-- \/peers -->/, '');
}

test.each(pages)('%s has none of the words that were hard to read', (page) => {
  const lines = wordsOf(read(page)).split('\n');
  expect(lines.filter((line) => NOT_IN_DOCS.some((words) => words.test(line)))).toEqual([]);
});

test('nor have the commands', () => {
  const said = listCommands().flatMap(({ commands }) => commands.map(({ description }) => description));
  expect(said.length).toBeGreaterThan(50);
  expect(said.filter((line) => NOT_IN_DOCS.some((words) => words.test(line)))).toEqual([]);
});

/** By folder of src. */
function countByRoom(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const file of readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))) {
    const [folder = '.', ...below] = file.split(sep);
    const room = below.length === 0 ? '.' : folder;
    counts.set(room, (counts.get(room) ?? 0) + countHard(readFileSync(join(ROOT, 'src', file), 'utf8')));
  }
  return counts;
}

test('and no room of src has more of the hard words and names than it had', () => {
  const more = [...countByRoom()].filter(([room, count]) => count > (MAX_BY_ROOM[room] ?? 0));
  expect(more.map(([room, count]) => `${room}: ${count}, at most ${MAX_BY_ROOM[room] ?? 0}`)).toEqual([]);
  expect(countHard('const nameOf = (own: string) => `nobody said ${own}`;')).toBe(5);
});

test('README has at most 1,200 words: tables counted, code blocks and the measured table left out', () => {
  expect(
    wordsOf(read('README.md'))
      .split(/\s+/)
      .filter((word) => /\w/.test(word)).length,
  ).toBeLessThanOrEqual(1_200);
});

test('the page of errors names every kind that the source has', () => {
  const page = read('docs/reference/errors.md');
  const kindsIn = (file: string, name: string): string[] => {
    const [, body = ''] =
      new RegExp(`export type ${name} =([^;]*);`).exec(readFileSync(join(ROOT, file), 'utf8').replace(/\/\*[^]*?\*\//g, '')) ?? [];
    return [...body.matchAll(/'([\w-]+)'/g)].map(([, kind = '']) => kind);
  };
  const types = [...readFileSync(join(ROOT, 'src/workflows/messages.ts'), 'utf8').matchAll(/^  \w+: '([A-Z]\w+)',$/gm)].map(
    ([, type = '']) => type,
  );
  const kinds = [...kindsIn('src/client/errors.ts', 'ClientErrorKind'), ...kindsIn('src/models/model.ts', 'ModelFailureKind'), ...types];
  expect(kinds.length).toBeGreaterThan(30);
  expect(kinds.filter((kind) => !page.includes(`\`${kind}\``))).toEqual([]);
});

test('every command that a page shows is one that there is', () => {
  const known = new Set(listCommands().flatMap(({ commands }) => commands.flatMap(({ name }) => [name, name.split(' ')[0] ?? ''])));
  const shown = pagesOfDocs().flatMap((page) =>
    [...read(page).matchAll(/(?<=`|^|npx |bin\/)perdura ([a-z]+)(?= |`|$)/gm)].map(([, name = '']) => ({ page, name })),
  );
  expect(shown.length).toBeGreaterThan(100);
  expect(shown.filter(({ name }) => !known.has(name) && name !== 'help')).toEqual([]);
});

test('every page of docs is reached from its index', () => {
  const index = read('docs/README.md');
  // One page is of the repository alone: the index names it without a link, which would lead nowhere in the package.
  const isReached = (page: string): boolean => index.includes(`(${page.slice('docs/'.length)})`) || index.includes(`\`${page}\``);
  const missing = pagesOfDocs().filter((page) => page.startsWith('docs/') && page !== 'docs/README.md' && !isReached(page));
  expect(missing).toEqual([]);
});

test('a heading that a link names is there', () => {
  const slug = (heading: string): string =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-');
  const headings = (page: string): string[] =>
    [
      ...read(page)
        .replace(/^```[^]*?^```$/gm, '')
        .matchAll(/^#+ (.*)$/gm),
    ].map(([, one = '']) => slug(one));
  const broken = pagesOfDocs().flatMap((page) =>
    [...read(page).matchAll(/\]\(([^)#\s]*)#([^)]+)\)/g)]
      .filter(([, target = '']) => !/^[a-z]+:/.test(target))
      .filter(([, target = '', anchor = '']) => !headings(target === '' ? page : join(page, '..', target)).includes(anchor))
      .map(([link]) => `${page}: ${link}`),
  );
  expect(broken).toEqual([]);
  expect(fencedBlocks(read('README.md')).length).toBeGreaterThan(5);
});
