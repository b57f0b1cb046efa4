/**
 * Which test files a change can break: `npm run test:changed` runs those. It reads the imports of src and test as they are, and knows by
 * folders what imports do not say: that programs, pages and containers are tried from outside.
 *
 * - A change to a file that nothing here knows, or that all tests stand on, asks for every test: too many is slow, too few is wrong.
 * - An assembling file is no way from a test to a module: by the worker every test would reach every file.
 * - Nor is a long way: a test loads what it reaches over more than two files of src, and does not try it. The rooms in between do.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';

const FIRST_TIER = /(?<!\.slow)\.test\.ts$/;
const SECOND_TIER = /\.slow\.test\.ts$/;

const EVERYTHING =
  /^(package(-lock)?\.json|jest\.config\.cjs|tsconfig[^/]*\.json|\.npmrc|test\/support\/|scripts\/(test|changed-tests|prepare|programs|report)\.mjs$|src\/index\.ts$)/;

/** Of what lies outside of src and test: rooms of test, by the beginning of the path; the first that fits counts. */
const OUTSIDE = [
  ['web/', ['page']],
  ['docs/', ['readme']],
  ['README.md', ['readme']],
  ['CONTRIBUTING.md', ['readme', 'architecture']],
  ['CHANGELOG.md', ['readme']],
  ['scripts/', ['deploy', 'package']],
  ['Dockerfile', ['deploy']],
  ['.dockerignore', ['deploy']],
  ['docker-compose.yml', ['deploy']],
  ['bin/', ['package']],
  ['types/', ['package']],
  ['templates/', ['package', 'readme']],
  ['examples/', ['package', 'readme']],
  ['packages/', ['package']],
  ['agents/', ['agents', 'package']],
  ['workspace/', ['package']],
  ['bench/', ['bench']],
];

/** Nothing that is tested reads them; `npm run check` does. */
const NOTHING = /^(LICENSE|\.gitignore|\.ci\/|\.prettier|eslint\.config\.mjs|knip\.json|test\/unstable\.json)/;

/** Rooms that try a room of src from outside, by a program, over HTTP or as a workflow: no import says so. */
const TRIED_BY = {
  workflows: ['workflows', 'temporal', 'replay', 'determinism', 'architecture'],
  conversation: ['workflows', 'replay', 'fuzz', 'architecture'],
  activities: ['workflows', 'heal', 'chaos'],
  gateway: ['page'],
  records: ['page'],
  cli: ['package'],
  client: ['workflows', 'gateway'],
  extensions: ['package', 'workflows'],
  testing: ['workflows'],
  stores: ['e2e'],
  heal: ['replay'],
  memory: ['workflows'],
  search: ['memory', 'e2e'],
  tools: ['workflows'],
  models: ['workflows'],
  agents: ['workflows'],
};

/** Of files of src that lie in no room. */
const ROOM_OF = { 'src/worker.ts': 'extensions', 'src/client.ts': 'client', 'src/config.ts': 'config', 'src/register.ts': 'package' };

const ASSEMBLES =
  /^(src\/(worker|index|client|register)\.ts|src\/(gateway|testing)\/index\.ts|src\/cli\/(main|program)[^/]*\.ts|test\/support\/)/;

/** Files of src on the way, the changed one among them. */
const MOST_STEPS = 2;

/**
 * The test files for these paths, relative to `root` with slashes: `files` are to be run, `slow` are those of the second tier in the same
 * rooms, and `why` says in at most three lines what was chosen. With `all` the slow ones are among `files`.
 */
export function filesFor(changedPaths, root, { all = false } = {}) {
  const tests = listed(root, 'test').filter((path) => path.endsWith('.test.ts'));
  const chosen = new Set();
  const rooms = new Set();
  let everything = changedPaths.find((path) => EVERYTHING.test(path));
  const sources = changedPaths.filter((path) => /^(src|test)\//.test(path));
  const graph = sources.length === 0 ? new Map() : readGraph(root);
  const inSources = new Set(sources);

  for (const path of changedPaths) {
    if (NOTHING.test(path) || EVERYTHING.test(path)) continue;
    const [top, room] = path.split('/');
    if (top === 'test') {
      if (tests.includes(path)) chosen.add(path);
      else if (!path.endsWith('.ts')) rooms.add(room);
    } else if (top === 'src') {
      for (const one of roomsOf(path, graph)) rooms.add(one);
    } else {
      const found = OUTSIDE.find(([beginning]) => path.startsWith(beginning));
      if (found) for (const one of found[1]) rooms.add(one);
      else everything ??= path;
    }
  }
  const byImport = tests.filter((test) => reaches(test, inSources, graph));
  for (const path of byImport) chosen.add(path);
  const inRooms = tests.filter((path) => rooms.has(roomOfTest(path)));
  for (const path of everything === undefined ? inRooms : tests) chosen.add(path);

  const slow = [...chosen].filter((path) => SECOND_TIER.test(path)).sort();
  const files = [...chosen].filter((path) => all || FIRST_TIER.test(path)).sort();
  const first = tests.filter((path) => all || FIRST_TIER.test(path)).length;
  return { files, slow, why: inWords({ changedPaths, everything, rooms, files, slow, first, all }) };
}

/** The room itself, those that try it from outside, and those of the files that import it directly. */
function roomsOf(path, graph) {
  const own = roomOfSource(path);
  const users = [...graph]
    .filter(([file, imports]) => file.startsWith('src/') && imports.includes(path))
    .map(([file]) => roomOfSource(file));
  return new Set([own, ...(TRIED_BY[own] ?? []), ...users]);
}

function roomOfSource(path) {
  return ROOM_OF[path] ?? path.split('/')[1].replace(/\.ts$/, '');
}

/** A file beside the rooms is a room of its own: `test/config.test.ts`. */
function roomOfTest(path) {
  return path.split('/')[1].replace(/(\.slow)?\.test\.ts$/, '');
}

/** Breadth first, so that each file is met on its shortest way. */
function reaches(from, wanted, graph) {
  const seen = new Set([from]);
  let ways = [{ path: from, steps: 0 }];
  while (ways.length > 0) {
    if (ways.some(({ path }) => wanted.has(path))) return true;
    const open = ways.filter(({ path, steps }) => !ASSEMBLES.test(path) && steps < MOST_STEPS);
    ways = open.flatMap(({ path, steps }) =>
      (graph.get(path) ?? []).flatMap((next) => {
        if (seen.has(next)) return [];
        seen.add(next);
        return [{ path: next, steps: next.startsWith('src/') ? steps + 1 : steps }];
      }),
    );
  }
  return false;
}

/** What each file of src and test imports of them, types left out: they are gone when a test runs. */
function readGraph(root) {
  const paths = [...listed(root, 'src'), ...listed(root, 'test')].filter((path) => path.endsWith('.ts'));
  const known = new Set(paths);
  return new Map(
    paths.map((path) => {
      const specifiers = importsIn(readFileSync(join(root, path), 'utf8')).filter((specifier) => specifier.startsWith('.'));
      const found = specifiers.map((specifier) => posix.join(posix.dirname(path), specifier.replace(/\.js$/, '.ts')));
      return [path, found.filter((one) => known.has(one))];
    }),
  );
}

/** Formatted as prettier does it, so each begins a line; `import type` and lists of types alone load nothing. */
function importsIn(text) {
  const found = [];
  for (const [, clause, specifier] of text.matchAll(/^(?:import|export)\s+(?!type\s)([^'";]*?)\s*from\s+'([^']+)'/gm)) {
    const names = /^\{([\s\S]*)\}$/.exec(clause)?.[1];
    const areTypes = names !== undefined && names.trim() !== '' && names.split(',').every((name) => /^\s*(type\s|$)/.test(name));
    if (!areTypes) found.push(specifier);
  }
  for (const [, specifier] of text.matchAll(/^import\s+'([^']+)'/gm)) found.push(specifier);
  for (const [, specifier] of text.matchAll(/(?<!typeof )\b(?:import|require)\('([^']+)'\)(?!\.)/g)) found.push(specifier);
  return found;
}

function listed(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path.split(sep).join('/')}`);
}

function inWords({ changedPaths, everything, rooms, files, slow, first, all }) {
  const changed = `${changedPaths.length} changed: ${some(changedPaths, 4)}`;
  if (everything !== undefined) return [changed, `all ${files.length} test files: ${everything} may break any of them`];
  const places = rooms.size === 0 ? '' : `those of ${some([...rooms].sort(), 12)}, and `;
  const runs = `${files.length} of ${first} test files: ${places}what imports the change`;
  return [changed, runs, ...(all || slow.length === 0 ? [] : [`not run, \`--all\` does: ${some(slow, 6)}`])];
}

function some(all, most) {
  return all.length <= most ? all.join(', ') : `${all.slice(0, most).join(', ')} and ${all.length - most} more`;
}

/** Since the branch left main, with what is not committed; undefined where git does not know main. */
export function changedPaths(root) {
  const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const base = ['origin/main', 'main'].map((branch) => baseWith(git, branch)).find((found) => found !== undefined);
  if (base === undefined) return undefined;
  const lists = [git('diff', '--name-only', '--no-renames', '-z', base), git('ls-files', '--others', '--exclude-standard', '-z')];
  return [...new Set(lists.flatMap((list) => list.split('\0')).filter((path) => path !== ''))].sort();
}

function baseWith(git, branch) {
  try {
    return git('merge-base', 'HEAD', branch).trim();
  } catch {
    return undefined;
  }
}
