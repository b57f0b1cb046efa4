/** Tables on a terminal of any width: what fits stands in columns, what does not stands row by row, and no word is split. */
import { createRequire } from 'node:module';
import Table from 'cli-table3';
import fc from 'fast-check';
import { drawTable } from '../../../src/cli/terminal/markdown-render.js';

/** As the table's library measures. */
const widthOf = createRequire(require.resolve('cli-table3'))('string-width') as (text: string) => number;
const COLOURS = /\x1b\[\d+m/g;

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
