import type { JsonValue } from '../../../src/records/message.js';
import { TransformRefused, type MemoryTransform } from '../../../src/records/memory/agent-memory.js';
import { PART_CHARACTERS, transformed } from '../../../src/memory/channel/transforms.js';
import { ends } from '../../support/ends.js';

const TEXT = Array.from({ length: 100 }, (_, i) => `line ${i} of the ledger`).join('\n');
const ROWS = [
  { name: 'plum', tags: ['a', 'b'], weight: { grams: 40 } },
  { name: 'pear', tags: [], weight: { grams: 90 } },
  { name: 'fig', tags: ['c'], weight: { grams: 20 } },
];
const TABLE = { rows: ROWS, 'a name': { __proto__: null } };

const via = (content: JsonValue, type: MemoryTransform['type'], params?: MemoryTransform['params']): Promise<string> =>
  transformed(content, { type, ...(params && { params }) }, undefined);

describe('the six transforms', () => {
  test.each<[string, JsonValue, MemoryTransform['type'], MemoryTransform['params'], string]>([
    ['full is the text itself', TEXT, 'full', undefined, TEXT],
    ['full of what is no text is its JSON', [1, { a: 2 }], 'full', undefined, JSON.stringify([1, { a: 2 }], null, 2)],
    ['full of an empty text', '', 'full', undefined, ''],
    ['an excerpt is 500 characters and says that there is more', TEXT, 'excerpt', undefined, `${TEXT.slice(0, 500)}...`],
    ['an excerpt from the middle', 'abcdefghij', 'excerpt', { n: 3, offset: 4 }, '...efg...'],
    ['an excerpt of what is short', 'abc', 'excerpt', undefined, 'abc'],
    ['first_n characters', 'abcdefghij', 'first_n', { n: 3 }, 'abc\n[characters 0 to 3 of 10; go on with offset 3]'],
    ['first_n at the end', 'abcdefghij', 'first_n', { n: 5, offset: 8 }, 'ij\n[characters 8 to 10 of 10; this is the end]'],
    ['last_n characters', 'abcdefghij', 'last_n', { n: 3 }, 'hij\n[characters 7 to 10 of 10; this is the end]'],
    ['last_n passes over the end', 'abcdefghij', 'last_n', { n: 3, offset: 3 }, 'efg\n[characters 4 to 7 of 10; go on with offset 7]'],
    ['first_n lines', TEXT, 'first_n', { n: 2, unit: 'lines' }, 'line 0 of the ledger\nline 1 of the ledger\n[lines 0 to 2 of 100]'],
    ['last_n lines', TEXT, 'last_n', { n: 1, unit: 'lines', offset: 1 }, 'line 98 of the ledger\n[lines 98 to 99 of 100]'],
    ['first_n of a list counts its items', [1, 2, 3], 'first_n', { n: 2 }, '[\n  1,\n  2\n]\n[items 0 to 2 of 3]'],
    ['last_n of a list', [1, 2, 3], 'last_n', { n: 2 }, '[\n  2,\n  3\n]\n[items 1 to 3 of 3]'],
    ['filtered by words, whatever their case', 'Plum\npear\nPLUMS', 'filtered', { match: 'plum' }, '1: Plum\n3: PLUMS'],
    ['a match is no pattern', 'a.c\nabc', 'filtered', { match: 'a.c' }, '1: a.c'],
    ['filtered without a find', TEXT, 'filtered', { match: 'harbour' }, '[no line of 100 has "harbour"]'],
    ['filtered in parts', 'x1\nx2\nx3', 'filtered', { match: 'x', n: 1, offset: 1 }, '2: x2\n[lines 1 to 2 of 3 found]'],
    ['filtered by a path', TABLE, 'filtered', { path: '$.rows[*].name' }, JSON.stringify(['plum', 'pear', 'fig'], null, 2)],
    ['one value at a path', TABLE, 'filtered', { path: 'rows[-1].weight.grams' }, '20'],
    ['a path in text that is JSON', JSON.stringify(TABLE), 'filtered', { path: "$['rows'][0]['name']" }, 'plum'],
    ['a path and a match', TABLE, 'filtered', { path: '$.rows[*].name', match: 'p' }, '2:   "plum",\n3:   "pear",'],
    ['a name that the language alone knows', TABLE, 'filtered', { path: '$.toString' }, '[nothing lies at $.toString]'],
    ['a path to nothing', TABLE, 'filtered', { path: '$.columns' }, '[nothing lies at $.columns]'],
    [
      'no path leads beyond what is the content’s own',
      TABLE,
      'filtered',
      { path: '$.constructor.name' },
      '[nothing lies at $.constructor.name]',
    ],
  ])('%s', async (_, content, type, params, expected) => {
    expect(await via(content, type, params)).toBe(expected);
  });

  test('parts of a long text, one after the other, are all of it, to the last byte', async () => {
    const text = `${'größer 🎈 '.repeat(20_000)}end`;
    let offset = 0;
    let all = '';
    for (let parts = 0; parts < 20; parts += 1) {
      const answer = await via(text, 'full', { offset });
      const [, note = ''] = /\n(\[characters [^\n]*\])$/.exec(answer) ?? [];
      expect(answer.length).toBeLessThan(PART_CHARACTERS + 100);
      all += answer.slice(0, -note.length - 1);
      const next = /go on with offset (\d+)/.exec(note)?.[1];
      if (next === undefined) break;
      offset = Number(next);
    }
    expect(all).toBe(text);
  });

  test('no part ends in half a character', async () => {
    const text = '🎈'.repeat(10);
    for (const n of [1, 2, 3, 5]) {
      for (const offset of [0, 1, 2, 3]) {
        for (const type of ['first_n', 'last_n', 'excerpt'] as const)
          expect((await via(text, type, { n, offset })).isWellFormed()).toBe(true);
      }
    }
  });

  test.each<[string, JsonValue, MemoryTransform['type'], MemoryTransform['params'], RegExp]>([
    ['filtered by nothing', TEXT, 'filtered', {}, /needs match/],
    ['a path into prose', TEXT, 'filtered', { path: '$.a' }, /no JSON/],
    ['items of a text', TEXT, 'first_n', { unit: 'items' }, /no list/],
    ['a pattern for a path', TABLE, 'filtered', { path: '$..name' }, /no path/],
    ['an expression for a path', TABLE, 'filtered', { path: '$.rows[?(@.name)]' }, /no path/],
    ['a path without end', TABLE, 'filtered', { path: `$${'[0]'.repeat(100)}` }, /no path/],
    ['a summary without a model', TEXT, 'summary', undefined, /no model/],
  ])('%s is refused in words', async (_, content, type, params, words) => {
    await expect(via(content, type, params)).rejects.toThrow(words);
    await expect(via(content, type, params)).rejects.toBeInstanceOf(TransformRefused);
  });

  test('a summary is the model’s, which is given the beginning and the end of what is long, and what it is for', async () => {
    const asked: string[] = [];
    const ask = async (system: string, text: string): Promise<string> => {
      asked.push(system, text);
      return 'A ledger.';
    };
    const text = `START${'x'.repeat(500_000)}END`;
    expect(await transformed(text, { type: 'summary', params: { goal: 'find the plum' } }, ask)).toBe('A ledger.');
    expect(asked[1]?.length).toBeLessThan(61_000);
    expect(asked[1]).toMatch(/^It is wanted for this: find the plum\n\nSTARTx+\n\[440008 characters are left out here\]\nx+END$/);
    await expect(transformed('a', { type: 'summary' }, async () => ' ')).rejects.toThrow(/an empty answer/);
    expect(await transformed('a', { type: 'summary' }, async () => 'y'.repeat(50_000))).toHaveLength(6_003);
  });

  test('hostile contents and paths come to an end', async () => {
    const lists = Array.from({ length: 200_000 }, () => [1]);
    await ends(() => via('a'.repeat(3_000_000), 'filtered', { match: `${'a'.repeat(400)}b` }));
    await ends(() => via(lists, 'filtered', { path: '$[*][*]' }));
    await ends(() => via({ a: '['.repeat(100_000) }, 'filtered', { path: '$.a' }));
  });
});

test.each<[MemoryTransform, string]>([
  [{ type: 'frist_n' as never }, 'transform.type must be full, excerpt'],
  [{ type: 'first_n', params: { n: -1 } }, 'params.n must be a whole number from 1'],
  [{ type: 'last_n', params: { n: 0 } }, 'params.n must be'],
  [{ type: 'first_n', params: { n: 1.5 } }, 'params.n must be'],
  [{ type: 'full', params: { offset: -3 } }, 'params.offset must be a whole number from 0'],
])('%j is refused in words', async (transform, words) => {
  await expect(transformed(TEXT, transform, undefined)).rejects.toThrow(words);
});
