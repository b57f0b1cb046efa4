import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve, sep } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type BundleOptions } from '@temporalio/worker';
import { bundleOptions } from '../../src/extensions/custom-workflows.js';

const root = resolve(__dirname, '../..');
/** Bytes of code, without its source map, that every worker loads. 0.5 MB are Temporal's own, and 0.2 MB valibot's, with its comments. */
const MAX_CODE = 1_600_000;
/** What Temporal's own packages bring along, and the schemas of what comes in. */
const PACKAGES = ['@temporalio/common', '@temporalio/workflow', 'long', 'ms', 'nexus-rpc', 'valibot'];

type WebpackHook = NonNullable<BundleOptions['webpackConfigHook']>;

/** Bundles and says what webpack put in. */
async function bundle(options: BundleOptions): Promise<{ code: string; modules: string[] }> {
  const modules: string[] = [];
  const { webpackConfigHook: before = (config) => config } = options;
  const listModules: WebpackHook = (config) => ({
    ...before(config),
    plugins: [
      ...(config.plugins ?? []),
      {
        apply: (compiler) =>
          compiler.hooks.done.tap('list-modules', ({ compilation }) => {
            for (const module of compilation.modules) modules.push(module.identifier());
          }),
      },
    ],
  });
  const said: string[] = [];
  const { code } = await bundleWorkflowCode({
    ...options,
    webpackConfigHook: listModules,
    logger: new DefaultLogger('ERROR', ({ message }) => said.push(message)),
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${said.join('\n')}`);
  });
  return { code, modules };
}

/** The packages whose files are in, by name; before a file's path stand its loaders. */
function packagesIn(modules: readonly string[]): string[] {
  const names = modules.flatMap((module) => /[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)[^!]*$/.exec(module)?.[1] ?? []);
  return [...new Set(names)].sort();
}

/** The folders of src whose files are in. */
function foldersIn(modules: readonly string[]): string[] {
  const paths = modules.map((module) => module.replace(/^.*[!|]/, '')).filter((path) => path.startsWith(join(root, 'src')));
  return [...new Set(paths.map((path) => relative(join(root, 'src'), path).split(sep)[0] ?? ''))].sort();
}

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'perdura-bundle-'));
  symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** An entry alone: without what the product loads beside each. */
function entry(text: string): BundleOptions {
  const workflowsPath = join(dir, 'entry.ts');
  writeFileSync(workflowsPath, text);
  return { workflowsPath };
}

const source = (path: string): string => JSON.stringify(join(root, path));

test('the workflows bundle: nothing is in it but ours, Temporal and the schemas, and it stays small', async () => {
  const { code, modules } = await bundle(bundleOptions());
  expect(foldersIn(modules)).toEqual(['conversation', 'platform', 'records', 'workflows']);
  expect(packagesIn(modules)).toEqual(PACKAGES);
  const leftOut = modules.filter((module) => /^(external|ignored)/.test(module));
  expect(leftOut.filter((module) => !module.endsWith('__temporal_custom_failure_converter'))).toEqual([]);
  expect(code.lastIndexOf('//# sourceMappingURL=')).toBeLessThan(MAX_CODE);
});

test('a workflow that reaches a schema brings zod in, which would be seen', async () => {
  const { modules } = await bundle(entry(`export { agentConfigSchema } from ${source('src/agents/agent-config.ts')};`));
  expect(packagesIn(modules)).toContain('zod');
  expect(foldersIn(modules)).toContain('agents');
});

test('a workflow that reaches the host through a store does not bundle', async () => {
  await expect(bundle(entry(`export { createRedisStore } from ${source('src/stores/redis/index.ts')};`))).rejects.toThrow(
    /node:(fs|crypto|timers)/,
  );
});

test('nor does one that names a host module itself', async () => {
  await expect(bundle(entry("export { readFileSync } from 'node:fs';"))).rejects.toThrow(/node:fs/);
});
