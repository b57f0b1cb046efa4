/**
 * Who may import whom in src, as a table (design section 6), and what else the sandbox and the pure core must not do.
 * A place is a folder or a file; the longest that fits a file is its row. A place may always import itself.
 */
import { posix } from 'node:path';
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

/** Rows take values only from rows above them, so the picture has no cycle; types may be named both ways. */
export const ARROWS: readonly Row[] = [
  { place: 'conversation/', may: [], packages: [] },
  { place: 'setting-values.ts', may: [] },
  { place: 'config.ts', may: ['setting-values.ts'] },
  { place: 'version.ts', may: [] },
  { place: 'testing/', may: [], never: ['@temporalio/'] },
  // What stores keep for memory: types and the schemas that read them back.
  { place: 'memory/items.ts', may: ['conversation/'], packages: ['zod'] },
  { place: 'memory/channel/agent-memory.ts', may: ['conversation/'], packages: ['zod'] },
  { place: 'memory/documents/', may: ['conversation/'], packages: ['zod', 'node-diff3', 'diff', 'node:crypto'] },
  {
    place: 'stores/',
    may: ['conversation/', 'memory/items.ts', 'memory/documents/', 'memory/channel/agent-memory.ts'],
    never: ['@temporalio/'],
  },
  { place: 'models/', may: ['conversation/'], never: ['@temporalio/', 'ioredis'] },
  // Words, counts and what must not be said: no work on import.
  {
    place: 'telemetry/',
    may: ['conversation/', 'models/model.ts', 'models/registry.ts', 'models/hooks.ts'],
    mayTypes: ['config.ts'],
    never: ['ioredis', '@temporalio/client'],
  },
  { place: 'memory/', may: ['conversation/', 'stores/store.ts', 'models/model.ts'], never: ['@temporalio/', 'ioredis'] },
  {
    place: 'tools/',
    may: ['conversation/', 'models/model.ts', 'memory/documents/', 'memory/channel/agent-memory.ts'],
    mayTypes: ['stores/store.ts'],
    never: ['@temporalio/', 'ioredis'],
  },
  { place: 'agents/', may: ['conversation/', 'tools/'], never: ['@temporalio/', 'ioredis', 'tools/builtin/'] },
  {
    // What a user's own code may bring, checked; it names no worker.
    place: 'user-config.ts',
    may: ['config.ts', 'tools/', 'memory/processors.ts', 'memory/compaction/compactor.ts'],
    mayTypes: ['conversation/', 'models/model.ts', 'models/hooks.ts', 'memory/channel/', 'telemetry/observer.ts'],
    never: ['@temporalio/'],
  },
  {
    place: 'observability.ts',
    may: ['config.ts', 'version.ts', 'conversation/', 'telemetry/'],
    mayTypes: ['models/hooks.ts', 'workflows/observe.ts'],
  },
  // Workflows of one's own, bundled; ours it names by path, never by import.
  { place: 'workflow-bundle-options.ts', may: [] },
  { place: 'own-workflows.ts', may: ['config.ts', 'workflow-bundle-options.ts'] },
  {
    place: 'activities/',
    may: ['conversation/', 'stores/store.ts', 'models/', 'telemetry/', 'memory/', 'tools/', 'agents/'],
    mayTypes: ['heal/'],
    // Which provider and which tools there are is the worker's choice.
    never: [
      ...['models/anthropic/', 'models/openai/', 'models/gemini/', 'models/ollama/', 'models/choose.ts', 'tools/builtin/'],
      'ioredis',
      '@temporalio/client',
      '@temporalio/worker',
    ],
  },
  // Tells programs and addresses of people's own: it reads no settings itself.
  { place: 'notify.ts', may: [], mayTypes: ['activities/notify.ts'], packages: ['node:child_process'] },
  {
    place: 'workflows/',
    may: ['conversation/'],
    mayTypes: ['activities/'],
    packages: ['@temporalio/workflow', '@temporalio/common'],
  },
  {
    // Replays histories with the workflows' own code, which it is given; of them it knows what they tell a listener.
    place: 'heal/',
    may: ['conversation/', 'stores/store.ts', 'memory/'],
    mayTypes: ['workflows/observe.ts'],
    never: ['ioredis'],
  },
  { place: 'registered-attributes.ts', may: ['workflows/search-attributes.ts'], never: ['@temporalio/worker'] },
  {
    place: 'client/',
    may: ['conversation/', 'memory/', 'workflows/messages.ts'],
    mayTypes: ['stores/store.ts'],
    never: ['@temporalio/worker'],
  },
  {
    place: 'client.ts',
    may: ['conversation/', 'config.ts', 'stores/', 'memory/', 'heal/fetch-runs.ts', 'workflows/messages.ts', 'client/'],
    never: ['@temporalio/worker'],
  },
  // Other programs' ways to conversations.
  { place: 'gateway/', may: ['conversation/', 'client.ts'], never: ['@temporalio/', 'ioredis'] },
  {
    // Assembles; names workflows by path, never by import.
    place: 'worker.ts',
    may: [
      ...[
        'conversation/',
        'config.ts',
        'version.ts',
        'observability.ts',
        'own-workflows.ts',
        'workflow-bundle-options.ts',
        'stores/',
        'models/',
        'memory/',
        'tools/',
        'agents/',
        'activities/',
      ],
      ...[
        'telemetry/',
        'user-config.ts',
        'heal/',
        'client/ask-memory.ts',
        'client/status-of.ts',
        'registered-attributes.ts',
        'notify.ts',
        'testing/offline-model.ts',
      ],
    ],
    mayTypes: ['workflows/observe.ts'],
  },
  // The package's entrance: for programs that talk to conversations or make tools.
  {
    place: 'index.ts',
    may: ['client.ts', 'conversation/observation.ts', 'tools/', 'models/model.ts'],
    mayTypes: ['conversation/', 'user-config.ts', 'memory/channel/'],
    never: ['tools/builtin/'],
  },
  {
    // What `import … from 'perdura'` gives: no worker, whose native part is large.
    place: 'index.ts',
    may: ['client.ts', 'conversation/observation.ts', 'tools/define-tool.ts', 'models/model.ts'],
    mayTypes: ['conversation/', 'tools/', 'user-config.ts', 'memory/channel/'],
    never: ['@temporalio/worker'],
  },
  {
    place: 'cli/',
    may: [
      ...[
        'conversation/',
        'config.ts',
        'version.ts',
        'observability.ts',
        'stores/',
        'models/',
        'memory/',
        'tools/',
        'agents/',
        'user-config.ts',
      ],
      ...[
        'telemetry/',
        'user-config.ts',
        'heal/',
        'workflows/messages.ts',
        'registered-attributes.ts',
        'client/',
        'client.ts',
        'gateway/',
        'worker.ts',
      ],
    ],
  },
];

export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly what: string;
  readonly rule: string;
}

/** Sources by their path under src, with slashes. */
export type Tree = ReadonlyMap<string, string>;

export function checkTree(tree: Tree, rows: readonly Row[] = ARROWS): Violation[] {
  const modules = new Map([...tree].map(([path, text]) => [path, readModule(path, text)]));
  return [
    ...[...modules].flatMap(([path, module]) => [
      ...checkArrows(path, module, tree, rows),
      ...checkEnvironment(path, module),
      ...checkPurity(path, module),
    ]),
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
  if (isIn(target, row.place)) return undefined;
  if (row.never?.some((place) => isIn(target, place))) return `${row.place} never imports ${row.never.join(', ')}`;
  if (row.may.some((place) => isIn(target, place))) return undefined;
  if (row.mayTypes?.some((place) => isIn(target, place))) {
    return kind === 'type' ? undefined : `${row.place} imports only types from ${row.mayTypes.join(', ')}`;
  }
  return arrowRule(row);
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

/** What a replay must find again. `clock.ts` asks for the time of the workflow task. */
function checkPurity(file: string, { moduleState, impure }: Module): Violation[] {
  if (!isIn(file, 'conversation/') && !isIn(file, 'workflows/')) return [];
  const asks = file === 'workflows/clock.ts' ? [] : impure;
  return [
    ...moduleState.map(({ line, text }) => ({ file, line, what: text, rule: 'no module-level state here: it would leak between runs' })),
    ...asks.map(({ line, text }) => ({
      file,
      line,
      what: text,
      rule: 'time and chance arrive in events; workflows/clock.ts has the time',
    })),
  ];
}

/** `import()` is no cycle: it waits until both modules are there. */
function checkCycles(modules: ReadonlyMap<string, Module>, tree: Tree): Violation[] {
  const importsOf = (file: string) =>
    (modules.get(file)?.imports ?? []).flatMap(({ kind, specifier, line }) => {
      const target = kind === 'runtime' ? resolveImport(file, specifier, tree) : undefined;
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
