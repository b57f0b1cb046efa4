/**
 * Words as a terminal shows them; tables on one of any width: what fits stands in columns, what does not stands row by row, and no word is split.
 */
import { createRequire } from 'node:module';
import * as codeColours from 'cli-highlight';
import Table from 'cli-table3';
import fc from 'fast-check';
import { drawTable, inColours } from '../../../src/cli/terminal/markdown-render.js';
import { Marked } from './marked.js';

const COLOURS = /\x1b\[\d+m/g;

test.each([
  ['an entity once, in words alone', 'a &lt;b&gt; &amp;lt; `&amp; x:y` **&quot;c&quot;**', 'a <b> &lt; &amp; x:y "c"'],
  ['a link with where it leads', '[here](https://e.example/) https://e.example/', 'here (https://e.example/) https://e.example/'],
  ['a picture by its name', '![a cat](cat.png)', '[image: a cat, cat.png]'],
  ['no sequence of the writer’s', '`\x1b[2J` <b\x1b[2J> \x1b]8;;x\x07', '`␛[2J` <b␛[2J> ␛]8;;x␇'.replaceAll('`', '')],
  ['code as it is, whatever stands beside its language', '```ts title="a.ts"\nconst a = 1;\n  b();\n```', '  const a = 1;\n    b();'],
  ['code of a language that nobody knows', '```klingon\nqapla &amp;\n```', '  qapla &amp;'],
  ['a quote', '> one\n> two\n>\n> three', '  one\n  two\n  \n  three'],
  ['headings without their marks', '# One\n\n### *Two*', 'One\n\nTwo'],
  ['HTML as its source', '<div>\na\n</div>', '<div>\na\n</div>'],
])('it shows %s', (_, source, wanted) => {
  const written = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const marked = new Marked();
  marked.use(inColours(codeColours));
  expect(marked.parse(source, { async: false }).replace(COLOURS, '').trimEnd()).toBe(wanted);
  expect(written).not.toHaveBeenCalled();
  written.mockRestore();
});

/** As the table's library measures. */
const widthOf = createRequire(require.resolve('cli-table3'))('string-width') as (text: string) => number;

function shown([head = [], ...rows]: readonly (readonly string[])[], columns: number): string[] {
  const drawn = drawTable({ head, rows, align: head.map(() => null) }, columns, { Table, widthOf });
  return drawn.replace(COLOURS, '').split('\n');
}

const PRICES = [
  ['Plan', 'Monthly price', 'What it is for'],
  ['Basic', '€2,000', 'Small teams that begin'],
  ['Everything', '€12,500', 'Whole companies with many conversations'],
];

test.each([46, 60, 80, 120])('at %d columns each row stands in one, and its words are whole', (columns) => {
  const lines = shown(PRICES, columns);
  expect(lines[0]).toMatch(/^┌/);
  expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(columns);
  const words = lines.join('\n').split(/[\s│]+/);
  expect(words).toEqual(expect.arrayContaining(['Monthly', '€2,000', '€12,500', 'Everything', 'conversations', 'companies']));
});

test('where the words have no room in columns, each row is a list under the names of its columns', () => {
  expect(shown(PRICES, 24).slice(0, 5)).toEqual(['Plan: Basic', 'Monthly price: €2,000', 'What it is for: Small', 'teams that begin', '']);
});

test('of any table, at any width, no line is too wide and no word is split that fits', () => {
  const word = fc.oneof(
    fc.constantFrom('€2,000', '\x1b[1mbold\x1b[22m', '漢字の列が長い', '🦔', 'e\u0301a', 'https://example.org/a/long/way/to/somewhere'),
    fc.stringMatching(/^[a-z]{1,14}$/),
  );
  const cell = fc.array(word, { maxLength: 6 }).map((words) => words.join(' '));
  const table = fc
    .integer({ min: 1, max: 6 })
    .chain((width) => fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 5 }));
  fc.assert(
    fc.property(table, fc.integer({ min: 48, max: 130 }), (rows, columns) => {
      const lines = shown(rows, columns);
      expect(lines.filter((line) => widthOf(line) > columns)).toEqual([]);
      const words = new Set(lines.join('\n').split(/[\s│:,]+/));
      const wanted = rows.flat().flatMap((text) => text.replace(COLOURS, '').split(' '));
      expect(wanted.filter((one) => /^([a-z]+|🦔|https.*)$/u.test(one) && !words.has(one.split(/[:,]/)[0] ?? ''))).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
