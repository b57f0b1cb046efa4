/** `perdura.config.*`, loaded as the CLI does: by the compiled product, outside of jest. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PRODUCT } from '../support/worker-process.js';

const TOOL = `{ name: 'pay', description: 'Pays.', inputSchema: {}, policy: {}, run() {} }`;

type Files = Readonly<Record<string, string>>;

const NOTHING: Files = {};
const READ: readonly (readonly [name: string, text: string])[] = [
  ['perdura.config.mjs', `export default { tools: [${TOOL}] };`],
  ['perdura.config.cjs', `module.exports = { tools: [${TOOL}] };`],
  ['perdura.config.js', `module.exports = { tools: [${TOOL}] };`],
  ['perdura.config.js', `Object.defineProperty(exports, '__esModule', { value: true }); exports.default = { tools: [${TOOL}] };`],
  ['perdura.config.ts', `interface Own { tools: unknown[] }\nconst own: Own = { tools: [${TOOL}] };\nexport default own;`],
  ['perdura.config.ts', `enum Kind { Pay = 'pay' }\nexport = { tools: [{ ...${TOOL}, name: Kind.Pay }] };`],
];
const LINKED = {
  'one.ts': `import { description } from './two';\nexport const one = { ...${TOOL}, description } as const;`,
  'two.ts': `export const description: string = 'Pays.';`,
  'perdura.config.ts': `import { one } from './one.js';\nimport type { X } from 'not-installed';\nexport default { tools: [one] as X };`,
};
const REFUSED: readonly (readonly [what: string, files: Files, message: RegExp])[] = [
  [
    'two files',
    { 'perdura.config.js': '', 'perdura.config.ts': '' },
    /there are perdura\.config\.ts and perdura\.config\.js in .*: keep one/,
  ],
  ['no default export', { 'perdura.config.mjs': 'export const tools = [];' }, /perdura\.config\.mjs has no default export: write/],
  ['a mistake in TypeScript', { 'perdura.config.ts': 'export default {{' }, /cannot load .*perdura\.config\.ts: /],
  ['what it throws', { 'perdura.config.mjs': "throw new Error('no ledger')" }, /cannot load .*perdura\.config\.mjs: no ledger/],
  [
    'a function',
    { 'perdura.config.mjs': 'export default () => ({});' },
    /perdura\.config\.mjs: expected an object such as .*, got a function/,
  ],
  [
    'settings',
    { 'perdura.config.mjs': 'export default { config: {} };' },
    /"config" is for createWorker; here settings stand in the environment/,
  ],
  [
    'a slip',
    { 'perdura.config.mjs': 'export default { tool: [] };' },
    /there is no option "tool"; there are: tools, providers, models, silence, observers, processors, hooks, mcpServers, compactionPlugins, agentsDir/,
  ],
  [
    'reducers',
    { 'perdura.config.mjs': 'export default { reducers: {} };' },
    /"reducers" run inside the workflow: .* name it as "workflows"/,
  ],
  [
    'an embedder that nobody knows',
    { 'perdura.config.mjs': "export default { embedder: 'gemini/x' };" },
    /"embedder" must be "ollama\/<model>"/,
  ],
  ['no embedder', { 'perdura.config.mjs': "export default { embedder: { name: 'x' } };" }, /"embedder" must be .* a function embed/],
  ['no list of compactors', { 'perdura.config.mjs': 'export default { compactors: {} };' }, /"compactors" must be an array/],
  [
    'no compactor',
    { 'perdura.config.mjs': "export default { compactors: [{ name: 'x' }] };" },
    /compactors\[0\] is no compactor: it needs/,
  ],
  [
    'a compactor of a name that cannot be written',
    { 'perdura.config.mjs': "export default { compactors: [{ name: 'a b', compact() {} }] };" },
    /compactors\[0\]\.name must match/,
  ],
  [
    'a compactor named as the default',
    { 'perdura.config.mjs': "export default { compactors: [{ name: 'WorkingFlowCompactor', compact() {} }] };" },
    /compactors\[0\] is named WorkingFlowCompactor, as the default is/,
  ],
  [
    'two compactors of one name',
    { 'perdura.config.mjs': "export default { compactors: [{ name: 'a', compact() {} }, { name: 'a', compact() {} }] };" },
    /compactors\[1\] is named a, as another is/,
  ],
  ['no path', { 'perdura.config.mjs': 'export default { workflows: {} };' }, /"workflows" must be the path of a file, and is an object/],
  ['no list', { 'perdura.config.mjs': 'export default { tools: {} };' }, /"tools" must be an array, and is an object/],
  ['no tool', { 'perdura.config.mjs': "export default { tools: [{ name: 'pay' }] };" }, /tools\[0\] is no tool: make it with defineTool/],
  ['twice', { 'perdura.config.mjs': `export default { tools: [${TOOL}, ${TOOL}] };` }, /tools\[0\] and tools\[1\] are both named pay/],
  [
    'a built-in name',
    { 'perdura.config.mjs': `export default { tools: [{ ...${TOOL}, name: 'read_file' }] };` },
    /perdura\.config\.mjs: tools\[0\] is named read_file, as a built-in tool is: give yours another name/,
  ],
  [
    'a built-in provider',
    { 'perdura.config.mjs': 'export default { providers: { anthropic: {} } };' },
    /providers\.anthropic: .* built in/,
  ],
  [
    'no model',
    { 'perdura.config.mjs': 'export default { providers: { mine: {} } };' },
    /providers\.mine is no model: it needs a function "stream"/,
  ],
  [
    'no price',
    { 'perdura.config.mjs': 'export default { models: { "mine/fast": { prices: { input: 1, output: -1 } } } };' },
    /models\["?mine\/fast"?\]\.prices\.output: |models\.mine\/fast\.prices\.output: /,
  ],
  [
    'a price without a provider',
    { 'perdura.config.mjs': 'export default { models: { fast: { contextWindow: 8000 } } };' },
    /models: "fast" must be provider\/model, or provider\/\*/,
  ],
  [
    'no format of calls',
    { 'perdura.config.mjs': 'export default { providers: { mine: { stream() {}, textTools: "yaml" } } };' },
    /providers\.mine\.textTools must be "xml" or "json"/,
  ],
  [
    'an MCP server without a command',
    { 'perdura.config.mjs': 'export default { mcpServers: { files: { args: [] } } };' },
    /mcpServers\.files\.command: /,
  ],
  [
    'no compaction plugin',
    { 'perdura.config.mjs': 'export default { compactionPlugins: { fetch_url: { compact: 1 } } };' },
    /compactionPlugins\.fetch_url is no plugin: it needs a function compact/,
  ],
  ['no observer', { 'perdura.config.mjs': 'export default { observers: [1] };' }, /observers\[0\] must be a function, and is a number/],
];

/** What was loaded from such files, with the names of its tools, or the error. */
let load: (files: Files) => string;

/** All of them by one process: to start one takes longer than to load fifty files. */
beforeAll(() => {
  const all = [NOTHING, LINKED, ...READ.map(([name, text]) => ({ [name]: text })), ...REFUSED.map(([, files]) => files)];
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'perdura-config-')));
  try {
    symlinkSync(join(PRODUCT, 'node_modules'), join(root, 'node_modules'));
    for (const [at, files] of all.entries()) {
      mkdirSync(join(root, String(at)));
      for (const [name, text] of Object.entries(files)) writeFileSync(join(root, String(at), name), text);
    }
    const script = `const { loadUserConfig } = require(${JSON.stringify(join(PRODUCT, 'dist', 'extensions', 'user-config.js'))});
      const say = (dir) => loadUserConfig(dir).then(
        (own) => JSON.stringify({ ...own, tools: own.tools?.map(({ name }) => name) }),
        (error) => error.name + ': ' + error.message,
      );
      (async () => {
        const said = [];
        for (let at = 0; at < ${all.length}; at += 1) said.push(await say(process.cwd() + '/' + at));
        console.log(JSON.stringify(said));
      })();`;
    const said = JSON.parse(execFileSync(process.execPath, ['-e', script], { cwd: root, encoding: 'utf8' })) as string[];
    load = (files) => said[all.findIndex((one) => JSON.stringify(one) === JSON.stringify(files))] ?? 'not loaded';
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test('no file, no code of one’s own', () => {
  expect(load(NOTHING)).toBe('{}');
});

test.each(READ)('%s is read: %s', (name, text) => {
  expect(load({ [name]: text })).toBe('{"tools":["pay"]}');
});

test('a .ts file may import other .ts files, by their own name and as .js', () => {
  expect(load(LINKED)).toBe('{"tools":["pay"]}');
});

test.each(REFUSED)('%s is refused by file and field', (_what, files, message) => {
  const said = load(files);
  expect(said).toMatch(/^ConfigError: /);
  expect(said).toMatch(message);
});
