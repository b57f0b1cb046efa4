/**
 * Who may import whom in src, as a table (design section 6), and what else the sandbox and the pure core must not do.
 * A place is a folder or a file; the longest that fits a file is its row. A place may always import itself.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { readModule, type Import, type Module } from './read-module.js';

interface Row {
  readonly place: string;
  /** Places of ours. */
  readonly may: readonly string[];
  /** Places of ours whose types only. */
  readonly mayTypes?: readonly string[];
  /** Exceptions from the two above, and from the packages. */
  readonly never?: readonly string[];
  /** Packages, by name; absent: any. */
  readonly packages?: readonly string[];
}

const EXTENSIONS = ['extensions/user-config.ts', 'extensions/custom-workflows.ts', 'extensions/webhooks.ts'];

/** What of the workflows runs on Temporal alone. */
const ON_TEMPORAL = ['early-questions', 'history-events', 'measured-history', 'reserved-names', 'temporal-host'].map(
  (name) => `workflows/${name}.ts`,
);

/** Rows take values and types only from rows above them, so the picture has no cycle. */
export const ARROWS: readonly Row[] = [
  // What is stored and sent, at the bottom.
  { place: 'records/', may: [], packages: ['valibot'] },
  // What long-term memory keeps, with the schemas that read it back: out of the sandbox.
  { place: 'records/memory/', may: ['records/'], packages: ['zod'] },
  { place: 'records/webhooks/', may: [], packages: ['zod'] },
  // What Node lacks, or knows of this process: pure but for the package's own version.
  { place: 'platform/', may: [], packages: ['node:fs', 'node:path', 'node:buffer', 'node:module'] },
  // Starts Perdura's programs that run apart; under test they are transpiled.
  { place: 'platform/seal.ts', may: [], packages: ['node:crypto'] },
  { place: 'platform/at-rest.ts', may: [], packages: ['node:crypto', 'node:timers/promises'] },
  { place: 'platform/processes.ts', may: ['platform/'], packages: ['node:fs', 'node:path', 'node:worker_threads', '@swc/core'] },
  {
    // Schemas of others: read and rewritten anywhere, compiled only in a thread.
    place: 'platform/json-schema/',
    may: ['platform/'],
    mayTypes: ['records/'],
    packages: ['ajv', 'p-limit', 'node:crypto', 'node:events', 'node:worker_threads'],
  },
  // Small words for thrown values and JSON, which the sandbox takes too.
  ...['platform/errors.ts', 'platform/json.ts'].map((place) => ({ place, may: [], packages: [] })),
  { place: 'conversation/', may: ['records/', 'platform/json.ts'], never: ['records/memory/', 'records/webhooks/'], packages: ['valibot'] },
  {
    place: 'config/',
    may: [
      'records/',
      'platform/errors.ts',
      'platform/known-secrets.ts',
      'platform/seal.ts',
      'platform/at-rest.ts',
      'platform/redis-address.ts',
    ],
  },
  { place: 'config.ts', may: ['config/', 'platform/', 'records/file-type.ts'] },
  { place: 'stores/', may: ['records/', 'platform/'], never: ['@temporalio/'] },
  // The ranking: pure, it knows no store and no clock.
  { place: 'search/', may: [], packages: ['snowball-stemmers', 'stopword', 'node:timers/promises'] },
  { place: 'models/', may: ['records/', 'platform/'], never: ['@temporalio/', 'ioredis', 'records/memory/'] },
  {
    // Words, counts and what must not be said: no work on import.
    place: 'telemetry/',
    may: ['records/', 'conversation/', 'platform/', 'config.ts', 'models/model.ts', 'models/known-models.ts'],
    mayTypes: ['models/circuit-breaker.ts'],
    never: ['ioredis', '@temporalio/client'],
  },
  // A program of its own, which a worker starts by its path.
  { place: 'telemetry/hang-thread.ts', may: [], packages: ['node:fs', 'node:inspector', 'node:worker_threads', '@temporalio/client'] },
  {
    place: 'memory/',
    may: ['records/', 'conversation/', 'platform/', 'search/', 'stores/store.ts', 'models/model.ts', 'models/embedder.ts'],
    never: ['@temporalio/', 'ioredis'],
  },
  {
    place: 'tools/',
    may: ['records/', 'conversation/', 'platform/', 'models/model.ts', 'memory/documents/', 'memory/recall/'],
    mayTypes: ['stores/store.ts'],
    never: ['@temporalio/', 'ioredis'],
  },
  { place: 'agents/', may: ['records/', 'conversation/', 'tools/'], never: ['@temporalio/', 'ioredis', 'tools/builtin/'] },
  // Signs and checks payloads; only the types of the settings.
  {
    place: 'extensions/state-codec.ts',
    may: ['conversation/', 'platform/'],
    mayTypes: ['config/'],
    packages: ['node:crypto', '@temporalio/common'],
  },
  {
    // Replays histories with the workflows' own code, which it is given.
    place: 'heal/',
    may: ['records/', 'conversation/', 'platform/errors.ts', 'platform/promises.ts', 'stores/store.ts', 'memory/'],
    never: ['ioredis'],
  },
  {
    // What people see of a conversation's past and present: pure, from state, history and store.
    place: 'insight/',
    may: ['records/', 'conversation/', 'platform/json.ts', 'memory/'],
    mayTypes: ['stores/store.ts', 'heal/fetch-runs.ts'],
    packages: [],
  },
  {
    place: 'activities/',
    may: ['records/', 'conversation/', 'platform/', 'stores/store.ts', 'models/', 'telemetry/', 'memory/', 'tools/', 'agents/'],
    mayTypes: ['heal/'],
    // Which provider and which tools there are is the worker's choice.
    never: [
      ...[
        'models/anthropic/',
        'models/openai/',
        'models/gemini/',
        'models/ollama/',
        'models/ai-sdk/',
        'models/providers.ts',
        'tools/builtin/',
      ],
      'ioredis',
      '@temporalio/client',
      '@temporalio/worker',
    ],
  },
  // Runs a project's TypeScript; what transpiles it is given.
  { place: 'extensions/typescript.ts', may: [], packages: ['node:fs', 'node:module', 'node:path', '@swc/core'] },
  { place: 'register.ts', may: ['extensions/typescript.ts'], packages: ['@swc/core'] },
  {
    // What a user's own code may bring, checked; it names no worker.
    place: 'extensions/user-config.ts',
    may: [
      'config.ts',
      'platform/',
      'tools/',
      'memory/processors.ts',
      'memory/compaction/compactor.ts',
      'models/embedder.ts',
      'models/known-models.ts',
      'extensions/typescript.ts',
    ],
    mayTypes: ['records/', 'conversation/', 'models/model.ts', 'memory/channel/', 'telemetry/observer.ts'],
    never: ['@temporalio/'],
  },
  // Bundles the user's workflows; it names the product's by path, never by import.
  { place: 'extensions/custom-workflows.ts', may: ['config.ts', 'conversation/context/reducers.ts', 'platform/errors.ts'] },
  { place: 'extensions/counted-loops.ts', may: [], packages: ['acorn'] },
  // Posts to the addresses that an operator has named.
  {
    place: 'extensions/webhooks.ts',
    may: ['records/', 'platform/'],
    mayTypes: ['config/', 'activities/dependencies.ts'],
    packages: ['standardwebhooks'],
  },
  // The loop and what it hears: on any host, so nothing of Temporal's sandbox, and not the host that is.
  {
    place: 'workflows/',
    may: ['records/', 'conversation/', 'platform/errors.ts'],
    mayTypes: ['activities/'],
    never: ['records/memory/', 'records/webhooks/', ...ON_TEMPORAL],
    packages: ['@temporalio/common'],
  },
  ...[...ON_TEMPORAL, 'workflows/messages.ts', 'workflows/index.ts'].map((place) => ({
    place,
    may: ['records/', 'conversation/', 'platform/errors.ts', 'workflows/'],
    never: ['records/memory/', 'records/webhooks/'],
    packages: ['@temporalio/workflow', '@temporalio/common'],
  })),
  {
    place: 'client/',
    may: [
      ...['platform/', 'records/', 'conversation/', 'memory/', 'workflows/messages.ts'],
      // Counts as the worker does, and reads agents as it does.
      ...['models/token-counter.ts', 'agents/load-agent.ts'],
      ...['insight/', 'heal/fetch-runs.ts', 'stores/feed-cursor.ts', 'stores/archive/collect.ts'],
    ],
    mayTypes: ['stores/store.ts', 'models/embedder.ts'],
    never: ['@temporalio/worker'],
  },
  {
    place: 'client.ts',
    may: ['config.ts', 'platform/', 'stores/open.ts', 'models/providers.ts', 'workflows/messages.ts', 'client/', 'agents/load-agent.ts'],
    mayTypes: ['records/', 'memory/', 'models/embedder.ts'],
    never: ['@temporalio/worker'],
  },
  // Other programs' ways to conversations.
  {
    place: 'gateway/',
    may: [
      ...['records/', 'conversation/', 'platform/', 'memory/', 'insight/', 'tools/client-tools.ts', 'client.ts', 'client/'],
      'stores/feed-cursor.ts',
    ],
    never: ['@temporalio/', 'ioredis'],
  },
  {
    // What activities work with, for workers and for the engine in memory.
    place: 'assemble.ts',
    may: [
      ...['platform/', 'memory/', 'tools/', 'agents/', 'activities/', 'heal/', 'extensions/user-config.ts'],
      ...['client/memory.ts', 'client/describe.ts', 'client/webhook-deliveries.ts', 'client/erasure/retention.ts', 'client/gc.ts'],
    ],
    mayTypes: ['models/embedder.ts', 'records/time-in-words.ts'],
    never: ['@temporalio/worker'],
  },
  // A program of its own, which a worker starts by its path.
  { place: 'recovery/lease-thread.ts', may: ['stores/'], packages: ['node:crypto', 'node:worker_threads'] },
  {
    // Goes on when a worker ends: the lease's thread, and what the others of a task queue do then.
    place: 'recovery/',
    may: ['records/', 'platform/', 'models/known-models.ts', 'models/model.ts', 'stores/leases.ts', 'client/temporal/take-over.ts'],
    never: ['ioredis'],
  },
  // A program of its own too: the thread that runs them.
  { place: 'workflow-thread.ts', may: [], packages: ['@temporalio/worker'] },
  {
    // Names workflows by path, never by import.
    place: 'workflow-code.ts',
    may: [
      ...['conversation/views/', 'platform/processes.ts', 'telemetry/', 'client/temporal/encryption.ts', 'extensions/state-codec.ts'],
      ...EXTENSIONS,
    ],
    mayTypes: ['config.ts', 'heal/'],
  },
  {
    place: 'worker.ts',
    may: [
      'workflow-code.ts',
      ...['conversation/', 'platform/', 'config.ts', 'stores/', 'models/', 'telemetry/', 'memory/', 'tools/', 'agents/', 'assemble.ts'],
      ...['activities/', 'heal/', 'extensions/state-codec.ts', 'recovery/', ...EXTENSIONS],
      ...[
        'client/temporal/connection.ts',
        'client/temporal/encryption.ts',
        'client/temporal/deployments.ts',
        'client/temporal/worker-place.ts',
        'client/erasure/retention.ts',
        'client/gc.ts',
      ],
    ],
  },
  {
    // What `import … from 'perdura'` gives: no worker, whose native part is large.
    place: 'index.ts',
    may: [
      'client.ts',
      'records/webhooks/',
      'conversation/views/observation.ts',
      'memory/channel/open-memory.ts',
      'tools/define-tool.ts',
      'models/model.ts',
      'models/draft.ts',
      'models/ai-sdk/provider.ts',
    ],
    mayTypes: [
      'models/embedder.ts',
      'models/known-models.ts',
      // What signatures of the client name.
      ...['client/', 'stores/', 'heal/fetch-runs.ts', 'search/', 'insight/'],
      'records/',
      'conversation/',
      'tools/',
      'extensions/user-config.ts',
      'memory/',
      'agents/system-prompt.ts',
    ],
    never: ['@temporalio/worker'],
  },
  // A report as people read it, in a browser too: pure.
  { place: 'whatif/report.ts', may: ['records/'], packages: [] },
  { place: 'whatif/differences.ts', may: ['whatif/report.ts', 'platform/json.ts'], packages: [] },
  { place: 'whatif/totals.ts', may: ['whatif/report.ts', 'whatif/differences.ts'], packages: [] },
  { place: 'whatif/summary.ts', may: ['whatif/report.ts', 'whatif/differences.ts', 'whatif/totals.ts'], packages: [] },
  { place: 'whatif/read-report.ts', may: ['whatif/report.ts', 'records/'], packages: ['valibot'] },
  {
    // The product's workflows without Temporal.
    place: 'testing/engine/',
    may: [
      ...['records/', 'conversation/', 'platform/', 'activities/'],
      ...['workflows/conversation.ts', 'workflows/memory.ts', 'workflows/webhook.ts', 'workflows/host.ts', 'workflows/messages.ts'],
      'workflows/payload-converter.ts',
    ],
  },
  {
    // Plays what was recorded in that engine: it reads a store, and writes to a folder that goes with it.
    place: 'whatif/',
    may: [
      ...['records/', 'conversation/', 'platform/', 'stores/store.ts', 'stores/file/', 'models/', 'memory/', 'tools/', 'agents/'],
      ...['activities/', 'heal/', 'extensions/user-config.ts', 'assemble.ts', 'testing/engine/'],
    ],
    never: ['ioredis', '@temporalio/client', '@temporalio/worker'],
  },
  // Of the CLI what tests of people need too.
  ...['cli/terminal/exit.ts', 'cli/services/programs.ts'].map((place) => ({ place, may: ['config.ts', 'platform/'] })),
  { place: 'cli/services/temporal-binary.ts', may: ['config.ts', 'platform/', 'cli/terminal/exit.ts', 'cli/services/programs.ts'] },
  {
    // For people's tests: assembles as worker.ts does; of the workflows it takes what runs anywhere.
    place: 'testing/',
    may: [
      ...['records/', 'conversation/', 'platform/', 'config.ts', 'stores/', 'models/', 'memory/', 'tools/', 'agents/', 'activities/'],
      ...['extensions/user-config.ts', 'client.ts', 'client/errors.ts', 'worker.ts', 'assemble.ts'],
      ...['workflows/conversation.ts', 'workflows/memory.ts', 'workflows/webhook.ts', 'workflows/host.ts', 'workflows/messages.ts'],
      ...['workflows/payload-converter.ts', 'client/', 'extensions/webhooks.ts'],
      'cli/services/temporal-binary.ts',
    ],
  },
  {
    // Conversations with claims: in memory as tests have them, and out of recorded ones.
    place: 'evals/',
    may: [
      ...['records/', 'conversation/protocol/', 'platform/', 'models/', 'memory/documents/forgetting.ts', 'tools/tool.ts'],
      ...['tools/define-tool.ts', 'tools/builtin/index.ts', 'extensions/user-config.ts', 'testing/'],
    ],
    mayTypes: ['stores/store.ts', 'client.ts'],
    never: ['@temporalio/', 'ioredis'],
  },
  {
    place: 'cli/',
    may: [
      ...['records/', 'conversation/', 'config.ts', 'platform/', 'stores/', 'models/', 'telemetry/', 'memory/', 'tools/', 'agents/'],
      ...[...EXTENSIONS, 'heal/', 'insight/', 'workflows/messages.ts', 'client/', 'client.ts', 'gateway/', 'worker.ts', 'workflow-code.ts'],
      ...['whatif/', 'evals/'],
    ],
  },
];

/**
 * The order inside the pure core, and inside the CLI: a room takes values only from those before it. Types may come from any, since the
 * state names them all; between files there is no cycle in any case.
 */
const ORDERS: Readonly<Record<string, readonly string[]>> = {
  'conversation/': [
    ...['protocol/', 'effect.ts', 'event.ts', 'requests.ts', 'state/', 'state.ts'],
    ...['inbox/', 'outbox/', 'context/', 'stepping/', 'lineage/', 'turn/', 'session.ts', 'attributes.ts', 'views/'],
    ...['effect-table.ts', 'apply.ts', 'next-step.ts', 'opening.ts', 'memory-workflow/', 'replay/'],
  ],
  // From the terminal to the commands, which may use all of it.
  'cli/': [
    ...['lock.ts', 'terminal/', 'trust/', 'services/', 'views/', 'args/', 'session/', 'completion.ts', 'worker.ts', 'init/', 'doctor/'],
    ...['debug/', 'gateway/', 'chat/', 'commands/', 'main.ts'],
  ],
};

/** Inside these, rooms take values from each other one way: no room stands on one that stands on it. */
const ONE_WAY: readonly string[] = ['memory/', 'gateway/'];

export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly what: string;
  readonly rule: string;
}

/** Sources by their path under src, with slashes. */
export type Tree = ReadonlyMap<string, string>;

export function readTree(src: string): Tree {
  const paths = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  return new Map(paths.map((path) => [path.split(sep).join('/'), readFileSync(join(src, path), 'utf8')]));
}

export function checkTree(tree: Tree, rows: readonly Row[] = ARROWS): Violation[] {
  const modules = new Map([...tree].map(([path, text]) => [path, readModule(path, text)]));
  return [
    ...[...modules].flatMap(([path, module]) => [
      ...checkArrows(path, module, tree, rows),
      ...checkOrder(path, module, tree),
      ...checkEnvironment(path, module),
      ...checkPurity(path, module),
    ]),
    ...checkOneWay(modules, tree),
    ...checkCycles(modules, tree),
  ];
}

export function describeViolation({ file, line, what, rule }: Violation): string {
  return `src/${file}:${line}: ${what}: ${rule}`;
}

function checkArrows(file: string, module: Module, tree: Tree, rows: readonly Row[]): Violation[] {
  const row = rowOf(file, rows);
  if (!row) return [{ file, line: 1, what: 'a file in a new place', rule: 'every place in src has a row in test/architecture/arrows.ts' }];
  return module.imports.flatMap((imported) => {
    const rule = brokenRule(file, imported, row, tree);
    return rule === undefined
      ? []
      : [{ file, line: imported.line, what: `imports ${imported.kind === 'type' ? 'a type from ' : ''}"${imported.specifier}"`, rule }];
  });
}

function brokenRule(file: string, { specifier, kind }: Import, row: Row, tree: Tree): string | undefined {
  if (!specifier.startsWith('.')) return mayUsePackage(row, specifier) ? undefined : packageRule(row);
  const target = resolveImport(file, specifier, tree);
  if (target === undefined)
    return specifier.startsWith('..') ? 'an import stays inside src and names a file that is there' : 'no such file';
  if (row.never?.some((place) => isIn(target, place))) return `${row.place} never imports ${row.never.join(', ')}`;
  if (isIn(target, row.place)) return undefined;
  if (row.may.some((place) => isIn(target, place))) return undefined;
  if (row.mayTypes?.some((place) => isIn(target, place))) {
    return kind === 'type' ? undefined : `${row.place} imports only types from ${row.mayTypes.join(', ')}`;
  }
  return arrowRule(row);
}

function checkOrder(file: string, module: Module, tree: Tree): Violation[] {
  const [place = '', order = []] = Object.entries(ORDERS).find(([ordered]) => isIn(file, ordered)) ?? [];
  const findRank = (path: string): number => order.findIndex((room) => isIn(path, `${place}${room}`));
  if (place === '') return [];
  if (findRank(file) < 0) return [{ file, line: 1, what: 'a file in a new place', rule: `every room of ${place} has a place in ORDERS` }];
  return module.imports.flatMap(({ specifier, kind, line }) => {
    const target = kind === 'type' ? undefined : resolveImport(file, specifier, tree);
    return target === undefined || findRank(target) <= findRank(file)
      ? []
      : [
          {
            file,
            line,
            what: `imports "${specifier}"`,
            rule: `${place}${order[findRank(file)]} comes before ${place}${order[findRank(target)]}`,
          },
        ];
  });
}

function checkOneWay(modules: ReadonlyMap<string, Module>, tree: Tree): Violation[] {
  return ONE_WAY.flatMap((place) => {
    const findRoom = (path = ''): string | undefined => (isIn(path, place) ? /^([^/]+)\//.exec(path.slice(place.length))?.[1] : undefined);
    const arrows = [...modules].flatMap(([file, { imports }]) =>
      imports.flatMap(({ specifier, kind, line }) => {
        const [from, to] = [findRoom(file), kind === 'type' ? undefined : findRoom(resolveImport(file, specifier, tree))];
        return from === undefined || to === undefined || from === to ? [] : [{ file, line, specifier, from, to }];
      }),
    );
    const reaches = (from: string, to: string, seen: ReadonlySet<string> = new Set()): boolean =>
      from === to || arrows.some((one) => one.from === from && !seen.has(one.to) && reaches(one.to, to, new Set([...seen, one.to])));
    return arrows
      .filter(({ from, to }) => reaches(to, from))
      .map(({ file, line, specifier }) => ({
        ...{ file, line, what: `imports "${specifier}"` },
        rule: `rooms of ${place} take values from each other one way`,
      }));
  });
}

function arrowRule({ place, may, mayTypes = [] }: Row): string {
  const allowed = [...may, ...mayTypes.map((types) => `types of ${types}`)];
  return `${place} imports ${allowed.length === 0 ? 'nothing else of ours' : `of ours only ${allowed.join(', ')}`}`;
}

function mayUsePackage({ packages, never = [] }: Row, specifier: string): boolean {
  const isOf = (name: string): boolean => specifier === name || specifier.startsWith(name.endsWith('/') ? name : `${name}/`);
  return !never.some(isOf) && (packages === undefined || packages.some(isOf));
}

function packageRule({ place, packages, never = [] }: Row): string {
  if (packages === undefined) return `${place} never imports ${never.join(', ')}`;
  return packages.length === 0 ? `${place} imports no library` : `${place} imports of packages only ${packages.join(', ')}`;
}

function checkEnvironment(file: string, { environment }: Module): Violation[] {
  if (file === 'config.ts') return [];
  return environment.map(({ line, text }) => ({ file, line, what: text, rule: 'only config.ts reads the environment' }));
}

/** What a replay must find again. `temporal-host.ts` asks for the time of the workflow task. */
function checkPurity(file: string, { moduleState, impure }: Module): Violation[] {
  if (!['records/', 'conversation/', 'search/', 'workflows/'].some((place) => isIn(file, place))) return [];
  const asks = file === 'workflows/temporal-host.ts' ? [] : impure;
  return [
    ...moduleState.map(({ line, text }) => ({ file, line, what: text, rule: 'no module-level state here: it would leak between runs' })),
    ...asks.map(({ line, text }) => ({
      file,
      line,
      what: text,
      rule: 'time and chance arrive in events; workflows/temporal-host.ts has the time',
    })),
  ];
}

/** Types count, and so does `import()`: who reads one of the files has to read them all. */
function checkCycles(modules: ReadonlyMap<string, Module>, tree: Tree): Violation[] {
  const importsOf = (file: string) =>
    (modules.get(file)?.imports ?? []).flatMap(({ specifier, line }) => {
      const target = resolveImport(file, specifier, tree);
      return target === undefined ? [] : [{ target, line, specifier }];
    });
  const violations: Violation[] = [];
  const done = new Set<string>();
  const walk = (file: string, path: readonly string[]): void => {
    for (const { target, line, specifier } of importsOf(file)) {
      const begin = path.indexOf(target);
      if (begin >= 0) {
        violations.push({ file, line, what: `imports "${specifier}"`, rule: `no cycles: ${[...path.slice(begin), target].join(' -> ')}` });
      } else if (!done.has(target)) walk(target, [...path, target]);
    }
    done.add(file);
  };
  for (const file of modules.keys()) if (!done.has(file)) walk(file, [file]);
  return violations;
}

/** `./x.js` is `x.ts`; undefined when it leaves src or is not there. */
function resolveImport(file: string, specifier: string, tree: Tree): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const target = posix.normalize(posix.join(posix.dirname(file), specifier)).replace(/\.js$/, '.ts');
  return tree.has(target) ? target : undefined;
}

function rowOf(file: string, rows: readonly Row[]): Row | undefined {
  return rows.filter(({ place }) => isIn(file, place)).sort((a, b) => b.place.length - a.place.length)[0];
}

function isIn(file: string, place: string): boolean {
  return place.endsWith('/') ? file.startsWith(place) : file === place;
}
