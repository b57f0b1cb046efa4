/** How the tables of docs/security.md are made (scripts/security-rows.mjs): a row says nothing that no test does. */
interface Row {
  readonly id: string;
  readonly tried: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
  readonly untested?: string;
}
type Results = Readonly<Record<string, { readonly result: string; readonly on: string }>>;

const { readRows, rowProblems, resultsFrom, rowCells } = jest.requireActual<{
  readRows(): readonly Row[];
  rowProblems(rows: readonly Row[], textOf?: (file: string) => string | undefined): readonly string[];
  resultsFrom(rows: readonly Row[], text: string, on: string, base?: string): Results;
  rowCells(rows: readonly Row[], results?: Results): readonly (readonly string[])[];
}>('../../scripts/security-rows.mjs');

const FILE = 'test/scripts/security-rows.test.ts';
const row = (id: string, file: string, title: string): Row => ({ id, tried: 'it', tests: [{ file, title }] });

test('every row is there once, and each file and title that it names is there', () => {
  const rows = readRows();
  expect(rowProblems(rows)).toEqual([]);
  const all = [...Array.from({ length: 60 }, (_, n) => `S${n + 1}`), ...Array.from({ length: 57 }, (_, n) => `F${n + 1}`)];
  expect(rows.map(({ id }) => id)).toEqual(all);
});

test.each<readonly [string, readonly Row[], string]>([
  ['a file that is gone', [row('S1', 'test/gone.test.ts', 'a')], 'S1: test/gone.test.ts is not there'],
  ['a test that has another name', [row('S1', 'test/a.test.ts', 'b c')], 'S1: test/a.test.ts has no test "b c"'],
  ['no title at all', [row('S1', 'test/a.test.ts', '')], 'S1: test/a.test.ts has no test ""'],
  ['an id twice', [row('S1', 'test/a.test.ts', 'a'), row('S1', 'test/a.test.ts', 'a')], 'S1 is there twice'],
])('refused: %s', (_, rows, problem) => {
  expect(rowProblems(rows, (file) => (file === 'test/a.test.ts' ? "test('a', …)" : undefined))).toEqual([problem]);
});

test('a result is that of the tests which the row names: the worst, and the oldest', () => {
  const titles = ['every row is there once', 'refused: %s'];
  const rows = titles.map((title, n) => row(`S${n + 1}`, FILE, title));
  const one = (fullName: string, status: string) => ({ fullName, status });
  const jestJson = JSON.stringify({
    testResults: [
      {
        name: `/clone/${FILE}`,
        assertionResults: [one('every row is there once, and', 'passed'), one('refused: x', 'passed'), one('refused: y', 'failed')],
      },
    ],
  });
  expect(resultsFrom(rows, jestJson, '2026-11-28', '/clone')).toEqual({
    [`${FILE}: every row is there once`]: { result: 'passed', on: '2026-11-28' },
    [`${FILE}: refused: %s`]: { result: 'failed', on: '2026-11-28' },
  });
  const fromText = resultsFrom(rows, `PASS ${FILE} (3 s)\n`, '2026-11-27');
  const both: Row = { id: 'S1', tried: 'both', tests: rows.flatMap(({ tests }) => tests) };
  expect(rowCells([both], fromText)[0]?.at(-1)).toBe('passed, 2026-11-27');
  expect(rowCells([both], { [`${FILE}: refused: %s`]: { result: 'passed', on: '2026-11-28' } })[0]?.at(-1)).toBe('not recorded');
  expect(rowCells([{ ...both, tests: [], untested: 'why' }], {})[0]?.slice(2)).toEqual(['no test: why', '']);
});
