/**
 * `docs/reference/api/`, made from the docstrings of what the package exports. Without `--write` it only says whether it is current. What
 * is exported and has no docstring, or names a type that is not exported, is an error.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Application } from 'typedoc';
import { root } from './prepare.mjs';
import { run } from './report.mjs';

const TARGET = join(root, 'docs', 'reference', 'api');
const ENTRIES = ['index.ts', 'worker.ts', 'workflows/index.ts', 'gateway/index.ts', 'config.ts', 'testing/index.ts', 'evals/index.ts'];

/** What public types name, and that need no name outside: parts of events, and stores. */
const DEEP = [
  'EffectEvent',
  'Shortened',
  'MomentLine',
  'DebugScene',
  'FieldChange',
  'TimelineBar',
  'TimelineMark',
  'Why',
  'Slots',
  'History',
  'Run',
  'SentOrder',
  'ChildControl',
  'Reduced',
  'ConversationState',
  'MemoryQueue',
  'ValuesRef',
  'itemRecordSchema',
  'editSchema',
  'mode',
  'scope',
  'stepKind',
  'Store',
  'MeasureHistory',
  'Settings',
  'LOG_LEVELS',
  'authFile',
  'Given',
  'SignIn',
  'McpServer',
  'Owned',
  'LifeOptions',
  'Payer',
];

await run(async () => {
  const out = mkdtempSync(join(tmpdir(), 'perdura-api-'));
  try {
    if (!(await generate(out))) return 1;
    if (process.argv.includes('--write')) {
      rmSync(TARGET, { recursive: true, force: true });
      cpSync(out, TARGET, { recursive: true });
      return 0;
    }
    const [there, fresh] = [filesOf(TARGET), filesOf(out)];
    const stale = [...new Set([...there.keys(), ...fresh.keys()])].filter((name) => there.get(name) !== fresh.get(name));
    if (stale.length === 0) return 0;
    process.stderr.write(`docs/reference/api is not what the docstrings say: ${stale.join(', ')}\n`);
    return 1;
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
});

async function generate(out) {
  const app = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: ENTRIES.map((file) => join(root, 'src', file)),
    outputs: [{ name: 'markdown', path: out }],
    tsconfig: join(root, 'tsconfig.build.json'),
    basePath: root,
    readme: 'none',
    name: 'API reference',
    excludeInternal: true,
    excludePrivate: true,
    excludeExternals: true,
    disableSources: true,
    hideGenerator: true,
    sort: ['kind', 'alphabetical'],
    validation: { notExported: true, invalidLink: true, notDocumented: true, rewrittenLink: true },
    requiredToBeDocumented: ['Function', 'Class', 'Interface', 'TypeAlias', 'Variable', 'Enum'],
    intentionallyNotExported: DEEP,
    skipErrorChecking: true,
    treatWarningsAsErrors: true,
    treatValidationWarningsAsErrors: true,
    logLevel: 'Warn',
    router: 'module',
    entryFileName: 'README',
    hidePageHeader: true,
    hideBreadcrumbs: true,
    parametersFormat: 'table',
    useCodeBlocks: true,
    expandObjects: true,
  });
  // The types of a schema name each field twice, by one declaration.
  const warn = app.logger.warn.bind(app.logger);
  app.logger.warn = (text, ...at) => void (text.endsWith('An arbitrary comment will be used') || warn(text, ...at));
  const project = await app.convert();
  if (project === undefined) return false;
  // As they are imported.
  for (const module of project.children ?? []) module.name = module.name.replace(/^src/, 'perdura');
  app.validate(project);
  if (app.logger.hasErrors() || app.logger.hasWarnings()) return false;
  await app.generateOutputs(project);
  return !app.logger.hasErrors();
}

function filesOf(folder) {
  try {
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
    return new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  } catch {
    return new Map();
  }
}
