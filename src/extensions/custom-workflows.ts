/**
 * Custom workflows (seed 004, reducers of the application): an entry that exports what `createConversation` makes, bundled when the
 * worker starts. Every fault is reported before anything runs by it: a conversation must not find out half-way.
 */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { createContext, Script, type Context } from 'node:vm';
import { bundleWorkflowCode, type BundleOptions } from '@temporalio/worker';
import { ConfigError } from '../config.js';
import { MAX_STEPS, REDUCERS, STEPS, type Reducers, type Steps } from '../conversation/context/reducers.js';
import { errorMessage } from '../platform/errors.js';

/** What an entry has to export; all but the first come from `perdura/workflows`. */
const EXPORTS = ['conversation', 'memory', 'webhook'] as const;
const EVALUATION_MS = 10_000;
const REASON_CHARACTERS = 2_000;

export interface CustomWorkflows {
  readonly code: string;
  /** Of the code: two workers with different reducers differ in every history. */
  readonly hash: string;
  /** Whether it exports `gc`. */
  readonly collects: boolean;
}

export interface BundleLog {
  readonly warn: (message: string) => void;
}

/** `entry` as the setting says it, from `cwd`; `needs`: what it must export besides. Throws `ConfigError`, which says what to change. */
export async function bundleCustomWorkflows(
  entry: string,
  { cwd, log, needs = [] }: { cwd: string; log: BundleLog; needs?: readonly (keyof typeof NEEDED_BY)[] },
): Promise<CustomWorkflows> {
  const file = resolve(cwd, entry);
  const refuse = (what: string, cause?: unknown): ConfigError => new ConfigError(`workflows: ${file} ${what}`, { cause });
  if (!isFile(file)) throw refuse('is not there, or is no file: name the entry that exports your conversation, with its extension');
  const warnings: string[] = [];
  const { code } = await bundleWorkflowCode({
    ...bundleOptions(),
    workflowsPath: file,
    logger: listener(warnings),
    webpackConfigHook: (given) => {
      const config = forThisNode(given);
      const counted = { test: /\.[cm]?[jt]s$/, enforce: 'post' as const, exclude: isOurs, loader: require.resolve('./counted-loops') };
      return {
        ...config,
        module: { ...config.module, rules: [...(config.module?.rules ?? []), counted] },
        resolve: { ...config.resolve, modules: listModules(config.resolve?.modules) },
      };
    },
  }).catch((cause: unknown) => {
    throw refuse(`cannot be bundled: ${inBrief([...warnings, errorMessage(cause)])}`, cause);
  });
  for (const warning of warnings) log.warn(`workflows: ${inBrief([warning])}`);
  const exported = listExports(code, (cause) => refuse(`cannot be loaded as a workflow: ${inBrief([errorMessage(cause)])}`, cause));
  const missing = missingIn(exported, needs);
  const [one] = missing;
  if (missing.length === 1 && (one === 'retention' || one === 'gc'))
    throw refuse(`does not export ${one}, which ${NEEDED_BY[one]} needs: add it from 'perdura/workflows'`);
  if (missing.length > 0) throw refuse(`does not export ${missing.join(', ')}: ${HOW}`);
  // Its source map names files by where this machine has them.
  const plain = code.replace(/\/\/# sourceMappingURL=.*/, '');
  return { code, hash: createHash('sha256').update(plain).digest('hex').slice(0, 8), collects: typeof exported['gc'] === 'function' };
}

/** Workflows that a setting asks for. */
const NEEDED_BY = { retention: 'PERDURA_RETENTION', gc: 'PERDURA_ARCHIVE' } as const;

/** What bundled code lacks of what a worker runs. Throws what `refuse` makes where it cannot be loaded. */
export function missingExports(
  code: string,
  needs: readonly string[],
  refuse: (what: string, cause?: unknown) => Error,
): readonly string[] {
  return missingIn(
    listExports(code, (cause) => refuse(`cannot be loaded as a workflow: ${inBrief([errorMessage(cause)])}`, cause)),
    needs,
  );
}

function missingIn(exported: Readonly<Record<string, unknown>>, needs: readonly string[]): readonly string[] {
  return [...EXPORTS, ...needs].filter((name) => typeof exported[name] !== 'function');
}

const HOW =
  "write `export { memory, webhook } from 'perdura/workflows'` and `export const conversation = createConversation({ reducers: { … } })`";

/**
 * The reducers of bundled workflows, to be called outside of Temporal, where no worker ends one that goes on for ever: it is stopped after as
 * many steps as there (workflows/temporal-host.ts). Throws `ConfigError`.
 */
export function reducersIn(code: string, entry: string): Reducers {
  const refuse = (what: string, cause?: unknown): ConfigError => new ConfigError(`workflows: ${entry} ${what}`, { cause });
  const context = bareContext();
  const { conversation } = listExports(code, (cause) => refuse(`cannot be loaded: ${inBrief([errorMessage(cause)])}`, cause), context);
  const reducers = (conversation as { readonly [REDUCERS]?: Reducers } | undefined)?.[REDUCERS];
  if (reducers === undefined) throw refuse('exports a conversation of another version of Perdura: its reducers cannot be found');
  const steps = (context as { readonly [STEPS]?: Steps })[STEPS];
  return Object.fromEntries(
    Object.entries(reducers).map(([type, reduce]) => [
      type,
      (event, view) => {
        if (steps) {
          steps.left = MAX_STEPS;
          steps.spent = () => {
            throw new Error(`the reducer of ${type} was stopped after ${MAX_STEPS.toLocaleString('en-US')} loops and calls`);
          };
        }
        return reduce(event, view);
      },
    ]),
  );
}

function bareContext(): Context {
  return createContext({ __webpack_module_cache__: {}, ...SANDBOX_GLOBALS });
}

/** The bundle's exports, from a context as bare as the sandbox. Nothing of a workflow runs: only what its modules do when loaded. */
function listExports(
  code: string,
  refused: (cause: unknown) => Error,
  context: Context = bareContext(),
): Readonly<Record<string, unknown>> {
  try {
    new Script(code, { filename: 'workflow-bundle.js' }).runInContext(context, { timeout: EVALUATION_MS });
    const load = new Script('__TEMPORAL__.importWorkflows()');
    return load.runInContext(context, { timeout: EVALUATION_MS }) as Readonly<Record<string, unknown>>;
  } catch (cause) {
    throw refused(cause);
  }
}

/** What Temporal's sandbox gives to workflows beyond the language (its `injectGlobals`). */
const SANDBOX_GLOBALS = {
  AsyncLocalStorage: class {},
  URL,
  URLSearchParams,
  TextEncoder,
  TextDecoder,
  AbortController,
  AbortSignal,
  assert: Object.assign(() => undefined, { AssertionError: Error }),
  console,
};

/** What an application brings is counted, also of other packages. */
function isOurs(file: string): boolean {
  return file.startsWith(OURS) || /[\\/]node_modules[\\/]@temporalio[\\/]/.test(file);
}

const OURS = join(__dirname, '..', sep);

/** Ours last: a project whose packages are not hoisted finds Temporal's through us. */
function listModules(before: readonly string[] = ['node_modules']): string[] {
  return [...before, ...(require.resolve.paths('@temporalio/workflow') ?? [])];
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function inBrief(lines: readonly string[]): string {
  return lines
    .map((line) => {
      // Webpack paints its words, and says at length what went well before what did not.
      const plain = line.replace(/\x1b\[[0-9;]*m/g, '').replace(/^\s+at .*$/gm, '');
      return plain.slice(Math.max(0, plain.indexOf('ERROR in')));
    })
    .join('; ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, REASON_CHARACTERS);
}

/** The bundler's messages, for the error; its progress is not shown. */
function listener(warnings: string[]): NonNullable<Parameters<typeof bundleWorkflowCode>[0]['logger']> {
  const quiet = (): void => undefined;
  const keep = (message: string): void => void warnings.push(message);
  const log = (level: string, message: string): void => (level === 'WARN' || level === 'ERROR' ? keep(message) : undefined);
  return { log, trace: quiet, debug: quiet, info: quiet, warn: keep, error: keep };
}

// What a bundle of workflows is made with, wherever it is made: by the build, by a worker that starts, by tests and the bench.

type Made = Required<
  Pick<BundleOptions, 'workflowsPath' | 'payloadConverterPath' | 'workflowInterceptorModules' | 'preloadModules' | 'webpackConfigHook'>
>;
type WebpackConfig = Parameters<Made['webpackConfigHook']>[0];

/** The SDK has sources in TypeScript compiled for Node 8: a fifth more code, in which no spread and no `?.` is as it was written. */
function forThisNode(config: WebpackConfig): WebpackConfig {
  const rules = config.module?.rules?.map((rule) => {
    if (typeof rule !== 'object' || !rule || typeof rule.use !== 'object' || !('options' in rule.use)) return rule;
    const { options } = rule.use as { options?: { jsc?: object } };
    return options?.jsc ? { ...rule, use: { ...rule.use, options: { ...options, jsc: { ...options.jsc, target: 'es2022' } } } } : rule;
  });
  return { ...config, module: { ...config.module, ...(rules && { rules }) } };
}

/** `sources`: where `workflows/` is, compiled or not. */
export function bundleOptions(sources = join(__dirname, '..')): Made {
  const at = (name: string): string => require.resolve(join(sources, 'workflows', name));
  // The first is the outermost: it counts what the second has added.
  const interceptors = [at('measured-history'), at('early-questions'), at('reserved-names')];
  return {
    workflowsPath: at('index'),
    payloadConverterPath: at('payload-converter'),
    webpackConfigHook: forThisNode,
    workflowInterceptorModules: interceptors,
    // Without state, so that one copy does for all conversations of a worker: a conversation at hand takes 42 KiB less (measured).
    // What counts a reducer's steps has some: it is made by the entry, for each.
    preloadModules: [
      ...interceptors,
      ...['call-stacks', 'payload-converter', 'temporal-host', 'conversation', 'memory', 'webhook'].map(at),
    ],
  };
}
