/**
 * The user's code (design section 6): what `createWorker` takes, and the same object from `perdura.config.ts|js|mjs|cjs` for the
 * CLI. Every fault is named by its place: file and field.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { ConfigError, findUserConfig } from '../config.js';
import type { CompactionPlugins } from '../memory/channel/compaction-plugin.js';
import { COMPACTOR_NAME, WORKING_FLOW_COMPACTOR, type Compactor } from '../memory/compaction/compactor.js';
import { checkProcessors, type Processor, type Processors } from '../memory/processors.js';
import { EMBEDDER_PATTERN, type Embedder } from '../models/embedder.js';
import type { ModelHook, Model, SilenceLimits } from '../models/model.js';
import { PROVIDERS, type DeclaredModels } from '../models/known-models.js';
import type { Observer } from '../telemetry/observer.js';
import { builtinTools } from '../tools/builtin/index.js';
import { listIgnored, mcpConfigSchema, toServers, type McpServer } from '../tools/mcp/server-config.js';
import { listIssues } from '../tools/result-text.js';
import type { Tool } from '../tools/tool.js';
import { installTypeScript } from './typescript.js';
import { errorMessage } from '../platform/errors.js';
import { isRecord } from '../platform/json.js';

export type { Observed, Observer } from '../telemetry/observer.js';

/** What a project brings: the default export of `perdura.config.*`, and the options of `createWorker`. */
export interface Extensions {
  /** Beside the built-in ones; made with `defineTool`. */
  readonly tools?: readonly Tool[];
  /** By the name before the slash in `provider/model`. */
  readonly providers?: Readonly<Record<string, Model>>;
  /** What models cost and take, by `provider/model` or `provider/*`: of custom providers, and of models that Perdura does not know. */
  readonly models?: DeclaredModels;
  /** How long a provider may be silent before a call is given up, by the name before the slash; `*` for those that are not named. */
  readonly silence?: Readonly<Record<string, SilenceLimits>>;
  readonly observers?: readonly Observer[];
  /** What is done to texts before they are remembered and before a model sees them. */
  readonly processors?: Processors;
  /** They look on at each model call. */
  readonly hooks?: readonly ModelHook[];
  /** Beside `WorkingFlowCompactor`; an agent.json names one as `context.compactor`. */
  readonly compactors?: readonly Compactor[];
  /** Entry of custom workflows, from the working directory: exports `conversation` with the user's reducers, `memory` and `webhook`. */
  readonly workflows?: string;
  /** MCP servers of all agents, as `mcp.json` in an agent's folder has them; relative folders are from the working directory. */
  readonly mcpServers?: z.input<typeof mcpConfigSchema>['mcpServers'];
  /** By tool: what replaces its long results once the model has seen them. */
  readonly compactionPlugins?: CompactionPlugins;
  /** Searches by meaning as well as by words: `ollama/<model>`, `openai/<model>`, or a custom embedder. Default: by words alone. */
  readonly embedder?: string | Embedder;
  /** Folder of agents, in place of PERDURA_AGENTS_DIR; from the working directory. */
  readonly agentsDir?: string;
}

/** How a model without tools may write its calls. */
const TEXT_TOOLS: readonly unknown[] = [undefined, 'xml', 'json'];

const KNOWN = [
  'tools',
  'providers',
  'models',
  'silence',
  'observers',
  'processors',
  'hooks',
  'mcpServers',
  'compactionPlugins',
  'agentsDir',
  'embedder',
  'compactors',
  'workflows',
];
const dollars = z.number().min(0).max(1_000_000);
const compat = z.strictObject({
  limitField: z.enum(['max_completion_tokens', 'max_tokens']).optional(),
  usage: z.boolean().optional(),
  sendsReasoning: z.boolean().optional(),
  closesTools: z.boolean().optional(),
  system: z.enum(['system', 'user']).optional(),
  keepsTools: z.boolean().optional(),
  streams: z.boolean().optional(),
  noText: z.literal('').nullable().optional(),
  mostTokens: z.int().min(1).optional(),
});
const perMinute = z.int().min(1).max(1_000_000_000).optional();
const rateLimits = z.strictObject({
  requestsPerMinute: perMinute,
  inputTokensPerMinute: perMinute,
  outputTokensPerMinute: perMinute,
  tokensPerMinute: perMinute,
  streams: z.int().min(1).max(100_000).optional(),
});
const declaredModels = z
  .record(
    z.string(),
    z.strictObject({
      prices: z.strictObject({ input: dollars, output: dollars, cached: dollars.optional(), cacheWrite: dollars.optional() }).optional(),
      contextWindow: z.int().min(4_000).max(10_000_000).optional(),
      maxOutputTokens: z.int().min(1).max(128_000).optional(),
      documents: z.boolean().optional(),
      tools: z.boolean().optional(),
      compat: compat.optional(),
      rateLimits: rateLimits.optional(),
    }),
  )
  .optional();
/** None is longer than the longest call (`limits.modelTimeoutMs`). */
const silenceMs = z.int().min(1).max(86_400_000).optional();
const silenceSchema = z.object({
  silence: z.record(z.string(), z.strictObject({ firstByteMs: silenceMs, betweenBytesMs: silenceMs })).optional(),
});
const declaredModelsSchema = z.object({ models: declaredModels });

/** What the folder's `perdura.config.*` exports as default; nothing where there is no such file. Throws `ConfigError`. */
export async function loadUserConfig(cwd: string): Promise<Extensions> {
  const file = findUserConfig(cwd);
  if (file === undefined) return {};
  const exported = await importFile(file).catch((cause: unknown) => {
    const hint = file.endsWith('.js') && cause instanceof SyntaxError ? ' (if it uses import and export, name it perdura.config.mjs)' : '';
    throw new ConfigError(`cannot load ${file}: ${errorMessage(cause)}${hint}`, { cause });
  });
  const found = findDefault(exported);
  if (found === undefined) throw new ConfigError(`${file} has no default export: write \`export default { tools: […] }\``);
  if (isRecord(found) && 'config' in found) {
    throw new ConfigError(`${file}: "config" is for createWorker; here settings stand in the environment or in .env`);
  }
  return checkExtensions(found, file);
}

/** `from`: who asks, for the message. Throws `ConfigError`. */
export function checkExtensions(given: unknown, from: string): Extensions {
  const refuse = (what: string): never => {
    throw new ConfigError(`${from}: ${what}`);
  };
  if (!isRecord(given)) return refuse(`expected an object such as { tools: […] }, got ${nameKind(given)}`);
  for (const name of Object.keys(given)) {
    if (name === 'reducers')
      refuse('"reducers" run inside the workflow: hand them to createConversation in an entry of your own, and name it as "workflows"');
    if (!KNOWN.includes(name)) refuse(`there is no option "${name}"; there are: ${KNOWN.join(', ')}`);
  }
  const { tools, providers, observers, processors, hooks, mcpServers, compactionPlugins, agentsDir, compactors, workflows } = given;
  for (const [i, tool] of readList(tools, 'tools', refuse).entries()) {
    if (!isTool(tool)) refuse(`tools[${i}] is no tool: make it with defineTool`);
    const { name } = tool as Tool;
    if (builtinTools.some((builtin) => builtin.name === name))
      refuse(`tools[${i}] is named ${name}, as a built-in tool is: give yours another name`);
    const first = (tools as Tool[]).findIndex((other) => other.name === name);
    if (first !== i) refuse(`tools[${first}] and tools[${i}] are both named ${name}: a model could not tell them apart`);
  }
  if (providers !== undefined && !isRecord(providers))
    refuse(`"providers" must be an object from name to model, and is ${nameKind(providers)}`);
  for (const [name, model] of Object.entries(providers ?? {})) {
    if (!/^[a-z0-9][a-z0-9-]*$/.test(name))
      refuse(`providers.${name}: a name has lower-case letters, digits and "-", as it stands before the slash in provider/model`);
    if (PROVIDERS.has(name)) refuse(`providers.${name}: that one is built in: give yours another name`);
    if (isAiSdkProvider(model)) refuse(`providers.${name} is a provider of the AI SDK: write aiSdk(…) of perdura around it`);
    if (!isRecord(model) || typeof model['stream'] !== 'function') refuse(`providers.${name} is no model: it needs a function "stream"`);
    if (!TEXT_TOOLS.includes(model['textTools']))
      refuse(`providers.${name}.textTools must be "xml" or "json", and is absent where the model has tools`);
  }
  for (const [i, observer] of readList(observers, 'observers', refuse).entries()) {
    if (typeof observer !== 'function') refuse(`observers[${i}] must be a function, and is ${nameKind(observer)}`);
  }
  checkOwnProcessors(processors, refuse);
  for (const [i, hook] of readList(hooks, 'hooks', refuse).entries()) {
    const isOne = isRecord(hook) && typeof hook['name'] === 'string';
    if (!isOne || !['beforeInvoke', 'afterInvoke'].some((side) => typeof hook[side] === 'function')) {
      refuse(`hooks[${i}] is no hook: it needs a name, and a function beforeInvoke or afterInvoke`);
    }
  }
  const servers = mcpConfigSchema.safeParse({ mcpServers });
  if (!servers.success) refuse(listIssues(servers.error.issues).join('; '));
  const [ignored] = listIgnored({ mcpServers });
  if (ignored !== undefined) refuse(ignored);
  const declared = declaredModelsSchema.safeParse({ models: given['models'] });
  if (!declared.success) refuse(listIssues(declared.error.issues).join('; '));
  for (const name of Object.keys(declared.data?.models ?? {})) {
    if (!/^[a-z0-9][a-z0-9-]*\/\S+$/.test(name))
      refuse(`models: ${JSON.stringify(name)} must be provider/model, or provider/* for all others of a provider`);
  }
  checkSilence(given['silence'], ['*', ...PROVIDERS.keys(), ...Object.keys(providers ?? {})], refuse);
  checkCompactionPlugins(compactionPlugins, refuse);
  if (agentsDir !== undefined && (typeof agentsDir !== 'string' || agentsDir === ''))
    refuse(`"agentsDir" must be a path, and is ${nameKind(agentsDir)}`);
  checkEmbedder(given['embedder'], refuse);
  checkOwnCompactors(compactors, refuse);
  if (workflows !== undefined && (typeof workflows !== 'string' || workflows === ''))
    refuse(`"workflows" must be the path of a file, and is ${nameKind(workflows)}`);
  return given as Extensions;
}

/** Its providers are functions or objects. */
function isAiSdkProvider(value: unknown): boolean {
  const { languageModel, doStream } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof languageModel === 'function' || typeof doStream === 'function';
}

function checkEmbedder(embedder: unknown, refuse: (what: string) => never): void {
  if (embedder === undefined) return;
  if (typeof embedder === 'string' && EMBEDDER_PATTERN.test(embedder)) return;
  if (isRecord(embedder) && typeof embedder['embed'] === 'function' && typeof embedder['name'] === 'string') return;
  refuse('"embedder" must be "ollama/<model>", "openai/<model>", or an object with a name and a function embed');
}

function checkSilence(silence: unknown, known: readonly string[], refuse: (what: string) => never): void {
  const read = silenceSchema.safeParse({ silence });
  if (!read.success) return refuse(listIssues(read.error.issues).join('; '));
  const strange = Object.keys(read.data.silence ?? {}).find((name) => !known.includes(name));
  if (strange !== undefined) refuse(`silence: there is no provider ${JSON.stringify(strange)}; there are: ${known.join(', ')}`);
}

function checkOwnCompactors(compactors: unknown, refuse: (what: string) => never): void {
  const list = readList(compactors, 'compactors', refuse);
  const names = list.map((one, i) => {
    const name = isRecord(one) ? one['name'] : undefined;
    if (!isRecord(one) || typeof name !== 'string' || typeof one['compact'] !== 'function')
      return refuse(`compactors[${i}] is no compactor: it needs a name and a function compact`);
    if (!COMPACTOR_NAME.test(name)) return refuse(`compactors[${i}].name must match ${COMPACTOR_NAME.source}`);
    return name === WORKING_FLOW_COMPACTOR ? refuse(`compactors[${i}] is named ${name}, as the default is: give yours another name`) : name;
  });
  const twice = names.findIndex((name, i) => names.indexOf(name) !== i);
  if (twice !== -1) refuse(`compactors[${twice}] is named ${names[twice]}, as another is`);
}

/** MCP servers of all agents. */
export function sharedServers({ mcpServers }: Extensions, cwd: string): readonly McpServer[] {
  return toServers(mcpConfigSchema.parse({ mcpServers }), cwd);
}

function checkCompactionPlugins(plugins: unknown, refuse: (what: string) => never): void {
  if (plugins === undefined) return;
  if (!isRecord(plugins))
    return refuse(`"compactionPlugins" must be an object from the name of a tool to a plugin, and is ${nameKind(plugins)}`);
  for (const [tool, plugin] of Object.entries(plugins)) {
    if (!isRecord(plugin) || typeof plugin['compact'] !== 'function') {
      refuse(`compactionPlugins.${tool} is no plugin: it needs a function compact(result, action, context)`);
    }
  }
}

function checkOwnProcessors(processors: unknown, refuse: (what: string) => never): void {
  if (processors === undefined) return;
  if (!isRecord(processors)) return refuse(`"processors" must be { input?: […], toolResult?: […] }, and is ${nameKind(processors)}`);
  for (const name of Object.keys(processors)) {
    if (name !== 'input' && name !== 'toolResult') refuse(`there is no pipeline processors.${name}; there are: input, toolResult`);
    const list = readList(processors[name], `processors.${name}`, refuse);
    for (const [i, one] of list.entries()) {
      if (!isRecord(one) || typeof one['name'] !== 'string' || typeof one['order'] !== 'number' || typeof one['process'] !== 'function') {
        refuse(`processors.${name}[${i}] is no processor: it needs a name, an order and a function process`);
      }
    }
    try {
      checkProcessors(list as readonly Processor<never>[]);
    } catch (error) {
      refuse(`processors.${name}: ${errorMessage(error)}`);
    }
  }
}

function readList(value: unknown, name: string, refuse: (what: string) => never): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? (value as unknown[]) : refuse(`"${name}" must be an array, and is ${nameKind(value)}`);
}

function isTool(value: unknown): value is Tool {
  return (
    isRecord(value) &&
    typeof value['name'] === 'string' &&
    typeof value['description'] === 'string' &&
    isRecord(value['inputSchema']) &&
    isRecord(value['policy']) &&
    typeof value['run'] === 'function'
  );
}

function nameKind(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : value === '' ? 'empty' : `a ${typeof value}`;
}

/** A CommonJS module that was written as an ES module has its default one level deeper. */
function findDefault(exported: unknown): unknown {
  if (!isRecord(exported)) return undefined;
  const found = exported['default'];
  return isRecord(found) && found['__esModule'] === true ? found['default'] : found;
}

/** What a file of the project exports as default, loaded as perdura.config is; undefined: nothing. */
export async function importDefault(file: string): Promise<unknown> {
  return findDefault(await importFile(file));
}

function importFile(file: string): Promise<unknown> {
  return file.endsWith('.ts') ? importTypeScript(file) : import(pathToFileURL(file).href);
}

/** Transpiled in memory, types unchecked; so are the `.ts` files that it imports, also as `./x.js`. */
async function importTypeScript(file: string): Promise<unknown> {
  const restore = installTypeScript((await import('@swc/core')).transformSync);
  try {
    return { default: findDefault({ default: createRequire(file)(file) }) };
  } finally {
    restore();
  }
}
