/** What `npm publish` would send, installed in an empty folder: it runs, and has every page, picture and folder that its pages lead to. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import { ROOT } from '../readme/commands.js';
import { EXAMPLES, openProject, type Project } from './linked-package.js';

const SHIPPED = ['CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'];
const FOLDERS = ['agents', 'bench', 'bin', 'data', 'deploy', 'dist', 'docs', 'examples', 'templates', 'types', 'workspace'];

let project: Project;
/** Every file of the package, from its top. */
let packed: readonly string[];

beforeAll(async () => {
  project = await openProject(null);
  const names = readdirSync(project.perdura, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  packed = names.map(({ parentPath, name }) => relative(project.perdura, join(parentPath, name)).split(sep).join('/'));
});
afterAll(() => project?.remove());

test('the installed program says its version, and every entrance can be imported and required', () => {
  const { version, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string; exports: object };
  const node = (...args: string[]): string => execFileSync(process.execPath, args, { cwd: project.dir, encoding: 'utf8' }).trim();
  expect(node(join('node_modules', '.bin', 'perdura'), '--version')).toBe(version);
  const names = Object.keys(exports).map((name) => JSON.stringify(posix.join('perdura', name)));
  const program = `const all = [${names.join()}];
    for (const name of all) require(name);
    Promise.all(all.map((name) => import(name, name.endsWith('.json') ? { with: { type: 'json' } } : {})))
      .then(([{ createClient, defineTool }]) => console.log(typeof createClient, typeof defineTool));`;
  expect(node('-e', program)).toBe('function function');
});

test('it has the bundle, types, the program and an agent, and no sources or tests', () => {
  const wanted = ['dist/workflow-bundle.js', 'dist/index.d.ts', 'dist/worker.d.ts', 'bin/perdura', 'agents/default/SOUL.md'];
  expect(packed).toEqual(expect.arrayContaining([...wanted, 'docs/how-to/extending.md', 'examples/own-agent/README.md']));
  // For those who change Perdura: it names files of the repository.
  expect(packed).not.toContain('docs/contributing/conformance.md');
  expect(readdirSync(project.perdura).sort()).toEqual([...SHIPPED, ...FOLDERS].sort());
  for (const example of readdirSync(EXAMPLES)) {
    expect(readdirSync(join(project.perdura, 'examples', example)).sort()).toEqual(readdirSync(join(EXAMPLES, example)).sort());
  }
});

/** What its links lead to, from the top. */
function placesIn(page: string): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  return [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => posix.normalize(posix.join(posix.dirname(page), target)));
}

test('all that its pages lead to is in it', () => {
  const missing = packed
    .filter((path) => path.endsWith('.md'))
    .flatMap((page) => placesIn(page).map((place) => ({ page, place })))
    .filter(({ place }) => !packed.some((path) => path === place || path.startsWith(`${place.replace(/\/$/, '')}/`)));
  expect(missing).toEqual([]);
});

test('nothing of what running a project leaves behind is in it', () => {
  const outside = packed.filter((path) => !path.startsWith('dist/'));
  expect(outside.filter((path) => /(^|\/)(\.perdura|\.env|node_modules|memory)(\/|$)|\.(tgz|jsonl|map)$/.test(path))).toEqual([]);
});

interface Locked {
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

/** Kilobytes on the disk. */
function sizeOf(paths: readonly string[]): number {
  const lines = execFileSync('du', ['-sk', ...paths], { cwd: ROOT, encoding: 'utf8' })
    .trim()
    .split('\n');
  return lines.reduce((sum, line) => sum + Number.parseInt(line, 10), 0);
}

test('with all that it brings it takes at most 345 MB, half of them Temporal’s library in Rust, for five platforms', () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as { packages: Readonly<Record<string, Locked>> };
  const brought = Object.entries(packages).filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional);
  const there = brought.map(([path]) => path).filter((path) => existsSync(join(ROOT, path)));
  expect(there).toEqual(expect.arrayContaining(['node_modules/@temporalio/core-bridge', 'node_modules/ioredis']));
  expect((sizeOf(there) + sizeOf([project.perdura])) / 1024).toBeLessThanOrEqual(345);
  // What only some need, and those have to add.
  expect(there.filter((path) => /\/(openai|@google\/genai|ollama|gpt-tokenizer)$/.test(path))).toEqual([]);
});

test('package.json says what a registry shows', () => {
  const about = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Readonly<Record<string, unknown>>;
  expect(about).toMatchObject({
    license: 'MIT',
    description: expect.stringMatching(/\w/),
    keywords: expect.arrayContaining(['agents', 'temporal']),
  });
});
