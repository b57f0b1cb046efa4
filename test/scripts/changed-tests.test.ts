/** Which tests `npm run test:changed` runs (scripts/changed-tests.mjs), tried on a tree of a few files, and once on our own. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

interface Chosen {
  readonly files: readonly string[];
  readonly slow: readonly string[];
  readonly why: readonly string[];
}

const own = resolve(__dirname, '../..');
const script = pathToFileURL(join(own, 'scripts', 'changed-tests.mjs')).href;

const TREE: Readonly<Record<string, string>> = {
  'src/records/slots.ts': 'export const one = 1;',
  'src/memory/fold.ts': "import { one } from '../records/slots.js';",
  'src/memory/recall.ts': "import type { one } from '../records/slots.js';\nimport { type A, type B } from '../gateway/index.js';",
  'src/gateway/serve.ts': "const later = () => import('../memory/recall.js');",
  'src/worker.ts': "import './memory/fold.js';\nimport './gateway/serve.js';",
  'src/config.ts': 'export const config = 1;',
  'test/records/slots.test.ts': "import { one } from '../../src/records/slots.js';",
  'test/memory/builders.ts': 'export const built = 1;',
  'test/memory/fold.test.ts': "import { fold } from '../../src/memory/fold.js';\nimport { built } from './builders.js';",
  'test/memory/storm.slow.test.ts': "import { built } from './builders.js';",
  'test/memory/histories/one.json': '{}',
  'test/gateway/serve.test.ts': "import { world } from '../support/world.js';",
  'test/page/tour.test.ts': '',
  'test/readme/docs.test.ts': '',
  'test/deploy/image.test.ts': '',
  'test/package/start.test.ts': '',
  'test/tools/far.test.ts': "import { far } from '../../src/tools/far.js';",
  'src/tools/far.ts': "import '../agents/farther.js';",
  'src/agents/farther.ts': "import '../records/slots.js';",
  'test/e2e/all.test.ts': "import '../../src/worker.js';",
  'test/config.test.ts': "import { config } from '../src/config.js';",
  'test/support/world.ts': "import '../../src/worker.js';",
};

const FIRST_TIER = Object.keys(TREE).filter((path) => path.endsWith('.test.ts') && !path.endsWith('.slow.test.ts'));

/** The tests that are to run, without `test/` and `.test.ts`. */
const ROWS: readonly (readonly [what: string, changed: readonly string[], files: readonly string[], slow?: readonly string[]])[] = [
  ['nothing', [], []],
  ['a test: that one', ['test/tools/far.test.ts'], ['tools/far']],
  ['a helper of a room: what imports it', ['test/memory/builders.ts'], ['memory/fold'], ['memory/storm']],
  ['data of a room: the room', ['test/memory/histories/one.json'], ['memory/fold'], ['memory/storm']],
  [
    'a module: its room, the rooms that import it, and what reaches it by two files; the worker and a longer way do not count',
    ['src/records/slots.ts'],
    ['memory/fold', 'page/tour', 'records/slots'],
    ['memory/storm'],
  ],
  ['types alone are no import', ['src/gateway/serve.ts'], ['gateway/serve', 'page/tour']],
  ['what is loaded late is one', ['src/memory/recall.ts'], ['gateway/serve', 'memory/fold'], ['memory/storm']],
  ['a test that begins with a module that puts all together', ['src/worker.ts'], ['e2e/all', 'package/start']],
  ['a file beside the rooms', ['src/config.ts'], ['config']],
  ['what is gone', ['src/memory/gone.ts', 'test/tools/gone.test.ts'], ['memory/fold'], ['memory/storm']],
  ['the page', ['web/src/main.tsx'], ['page/tour']],
  ['a page of the docs', ['docs/tutorial.md'], ['readme/docs']],
  ['README', ['README.md'], ['readme/docs']],
  ['a script', ['scripts/lock.mjs'], ['deploy/image', 'package/start']],
  ['the licence and the linter', ['LICENSE', 'eslint.config.mjs', '.ci/run'], []],
  ['two rooms at once', ['web/index.html', 'Dockerfile'], ['deploy/image', 'page/tour']],
  ...['package.json', 'jest.config.cjs', 'test/support/world.ts', 'scripts/test.mjs', 'src/index.ts', 'made-up/file.txt'].map(
    (path) => [`${path}: everything`, [path], FIRST_TIER.map((file) => file.slice(5, -8)), ['memory/storm']] as const,
  ),
];

function chosenFor(root: string, asked: readonly (readonly [paths: readonly string[], options?: { readonly all: boolean }])[]): Chosen[] {
  const code = `import { filesFor } from ${JSON.stringify(script)};
    const asked = ${JSON.stringify(asked)};
    process.stdout.write(JSON.stringify(asked.map(([paths, options]) => filesFor(paths, ${JSON.stringify(root)}, options))));`;
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '--eval', code], { encoding: 'utf8' })) as Chosen[];
}

describe('in a tree of a few files', () => {
  let root: string;
  let chosen: readonly Chosen[];

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'perdura-changed-'));
    for (const [path, text] of Object.entries(TREE)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    chosen = chosenFor(root, [...ROWS.map(([, paths]) => [paths] as const), [['test/memory/builders.ts'], { all: true }]]);
  });
  afterAll(() => rmSync(root, { recursive: true }));

  test.each(ROWS.map((row, at) => [...row.slice(0, 1), at] as [string, number]))('%s', (_what, at) => {
    const [, , files, slow = []] = ROWS[at] ?? ['', [], []];
    expect(chosen[at]?.files).toEqual(files.map((file) => `test/${file}.test.ts`).sort());
    expect(chosen[at]?.slow).toEqual(slow.map((file) => `test/${file}.slow.test.ts`));
  });

  test('it says why in three lines at most, and names the slow ones that it does not run', () => {
    expect(chosen.every(({ why }) => why.length <= 3)).toBe(true);
    const [named, all] = [chosen[ROWS.findIndex(([, [path]]) => path === 'src/records/slots.ts')], chosen.at(-1)];
    expect(named?.why).toEqual([
      '1 changed: src/records/slots.ts',
      `3 of ${FIRST_TIER.length} test files: those of agents, memory, page, records, and what imports the change`,
      'not run, `--all` does: test/memory/storm.slow.test.ts',
    ]);
    expect(all?.files).toEqual(['test/memory/fold.test.ts', 'test/memory/storm.slow.test.ts']);
  });
});

test('of our own tree: a leaf asks for little, the core for much, and a test for a module is found wherever it lies', () => {
  const [leaf, core] = chosenFor(own, [[['src/insight/compactions.ts']], [['src/conversation/apply.ts']]]);
  expect(leaf?.files).toEqual(expect.arrayContaining(['test/insight/compactions.test.ts']));
  expect(leaf?.files.length).toBeLessThan(30);
  const rooms = [...new Set(core?.files.map((file) => file.split('/')[1]))];
  expect(rooms).toEqual(expect.arrayContaining(['conversation', 'insight', 'replay', 'workflows']));
});
