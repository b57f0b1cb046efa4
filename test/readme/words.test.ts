/** README and docs are read once: README's length, words that do not come back, and pages that name all there is. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listCommands } from '../../src/cli/main.js';
import { fencedBlocks, pagesOfDocs, read, ROOT } from './commands.js';

/** Lists them as examples. */
const STYLE = 'docs/contributing/style.md';
const pages = ['CONTRIBUTING.md', ...pagesOfDocs().filter((page) => page !== STYLE)];

/** Of the sentences that style.md lists, and the private words of the house. */
const NOT_AGAIN: readonly RegExp[] = [
  /its hands may do/i,
  /what is your own is code/i,
  /text is never taken in/i,
  /what nobody allows/i,
  /never a reason for files/i,
  /nobody's are/i,
  /\btold by its words\b/i,
  /\bgo on after its end\b/i,
  /another one with its turns/i,
  /is named on screen/i,
  /\bmay \S+ run\?/i,
  /\b(nobody|whoever)\b/i,
  /\bone's own\b|\bof ours\b/i,
  /\blies? in\b(?! the)|\bis told of\b/i,
  /\bparted by\b|\b(tool|turn) borders?\b|\bsay it again\b|\btakes? turns back\b|\bleave for a call\b/i,
  /\bmends?\b/i,
];

/** What is read: code, titles of tests (in italics) and what the bench writes are left out. */
function wordsOf(markdown: string): string {
  return markdown
    .replace(/^```[^]*?^```$/gm, '')
    .replace(/(?<!\w)_[^_|\n]+_(?!\w)/g, '')
    .replace(/<!-- peers -->[^]*<!-- \/peers -->/, '');
}

test.each(pages)('%s has none of the words that were hard to read', (page) => {
  const lines = wordsOf(read(page)).split('\n');
  expect(lines.filter((line) => NOT_AGAIN.some((words) => words.test(line)))).toEqual([]);
});

test('nor have the commands', () => {
  const said = listCommands().flatMap(({ commands }) => commands.map(({ description }) => description));
  expect(said.length).toBeGreaterThan(50);
  expect(said.filter((line) => NOT_AGAIN.some((words) => words.test(line)))).toEqual([]);
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
