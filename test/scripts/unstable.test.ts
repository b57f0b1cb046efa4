/** How the second tier judges a test that was red and then, run once more and alone, green. */
interface FailedTest {
  readonly file: string;
  readonly test: string;
}

/** As jest writes it. */
interface FileResult {
  readonly name: string;
  readonly status: string;
  readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
}

const { failedTests, judge } = jest.requireActual<{
  failedTests(results: { readonly testResults: readonly FileResult[] } | undefined, root: string): FailedTest[];
  judge(runs: Record<'failed' | 'again' | 'known', readonly FailedTest[]>): Record<'red' | 'unstable', FailedTest[]>;
}>('../../scripts/unstable.mjs');

const ROOT = '/clone';
const result = (file: string, failed: readonly string[], status = failed.length > 0 ? 'failed' : 'passed') => ({
  name: `${ROOT}/test/${file}`,
  status,
  assertionResults: [{ fullName: 'goes well', status: 'passed' }, ...failed.map((fullName) => ({ fullName, status: 'failed' }))],
});
const failedOf = (...files: readonly ReturnType<typeof result>[]) => failedTests({ testResults: files }, ROOT);

it('names what failed by its file below the clone, and a file that could not be loaded as one', () => {
  expect(failedOf(result('a.slow.test.ts', ['one', 'two']), result('b.slow.test.ts', []), result('c.slow.test.ts', [], 'failed'))).toEqual([
    { file: 'test/a.slow.test.ts', test: 'one' },
    { file: 'test/a.slow.test.ts', test: 'two' },
    { file: 'test/c.slow.test.ts', test: '(the file itself)' },
  ]);
  expect(failedTests(undefined, ROOT)).toEqual([]);
});

it.each`
  when                                   | again    | known    | red      | unstable
  ${'red twice'}                         | ${['x']} | ${[]}    | ${['x']} | ${[]}
  ${'red once'}                          | ${[]}    | ${[]}    | ${[]}    | ${['x']}
  ${'red once, and known as unstable'}   | ${[]}    | ${['x']} | ${['x']} | ${[]}
  ${'red again by another of its tests'} | ${['y']} | ${[]}    | ${['x']} | ${[]}
  ${'another one known as unstable'}     | ${[]}    | ${['y']} | ${[]}    | ${['x']}
`('$when: red $red, unstable $unstable', ({ again, known, red, unstable }: Record<'again' | 'known' | 'red' | 'unstable', string[]>) => {
  const inFile = (names: readonly string[]) => names.map((test) => ({ file: 'test/a.slow.test.ts', test }));
  expect(judge({ failed: inFile(['x']), again: inFile(again), known: inFile(known) })).toEqual({
    red: inFile(red),
    unstable: inFile(unstable),
  });
});
