/**
 * Makes a clone ready to run: Node, packages, build. Without dependencies of its own, since there may be none yet. Looks first
 * and does only what is missing, so it can be run again at any time, also twice at once.
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { withLock } from './lock.mjs';
import { runProgram } from './programs.mjs';
import { Missing, report, run, seconds } from './report.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, 'node_modules');
const modulesStamp = join(modules, '.perdura-stamp');
const dist = join(root, 'dist');
const distStamp = join(dist, '.perdura-stamp');
const page = join(dist, 'web');
const pageStamp = join(page, '.perdura-stamp');

/** Lowest Node that has what we use (`util.parseEnv`). */
const MINIMUM_NODE = [20, 19];

const WITHOUT_TESTS = ' without tests';
/** Of the packages for development, what a build without types is made with. */
export const FOR_BUILD = ['@preact/signals', 'dompurify', 'highlight.js', 'preact', 'typescript', 'vite'];

/**
 * Everything in order. `tests: false` is content with the packages that the program and its build need, a third of all. `build: false` leaves `dist` alone; `types: false` is content with a build whose types nobody has checked and that
 * has none for others, in a third of the time; `page: false` leaves the web page as it is; `quiet` says only what had to be done.
 */
export async function prepare({ tests = true, build = true, types = true, page: wantsPage = true, quiet = false } = {}) {
  checkNode(process.versions.node);
  const onWait = (pid) => report('Waiting', `another process (${pid ?? 'unknown'}) is preparing this folder`);
  await withLock(
    join(root, '.perdura', 'prepare.lock'),
    async () => {
      await installPackages({ tests, quiet });
      if (build) await buildSources({ types, quiet });
      if (build && wantsPage) await buildPage({ quiet });
    },
    { onWait },
  );
}

export function checkNode(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor >= MINIMUM_NODE[1])) return;
  throw new Missing(
    `Perdura needs Node ${MINIMUM_NODE.join('.')} or newer, and this is ${version}: install one from https://nodejs.org, or run \`nvm install 22\`.`,
  );
}

async function installPackages({ tests: wantsTests, quiet }) {
  const all = hash([readFileSync(join(root, 'package-lock.json')), process.platform, process.arch, process.versions.modules]);
  const few = `${all}${WITHOUT_TESTS}`;
  // Who has the others keeps them.
  const tests = wantsTests || (existsSync(modules) && readText(modulesStamp)?.endsWith(WITHOUT_TESTS) !== true);
  const reason = !tests && readText(modulesStamp) === few ? undefined : whyInstall(all);
  if (reason === undefined) {
    if (!quiet) report('Packages', 'as in package-lock.json');
    return;
  }
  const begin = Date.now();
  report('Packages', `running npm ci, since ${reason} …`);
  const place = tests ? root : withoutTests();
  const result = await runProgram('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: place });
  if (result.signal) throw Object.assign(new Error('npm ci was interrupted; run the command again.'), { exitCode: 130 });
  if (result.code !== 0) {
    throw new Missing(
      `${result.output.trim().split('\n').slice(0, 12).join('\n')}\n\nPackages could not be installed: \`npm ci\` in ${root} ended with code ${result.code}.\n` +
        'Check that this machine reaches an npm registry (`npm ping`), then run the command again.',
    );
  }
  if (place !== root) {
    rmSync(modules, { recursive: true, force: true });
    renameSync(join(place, 'node_modules'), modules);
    rmSync(place, { recursive: true, force: true });
  }
  writeFileSync(modulesStamp, tests ? all : few);
  report('Packages', `installed in ${seconds(begin)}`);
}

/** A folder for npm that wants no more than the program, its optional packages and its build, in the versions of package-lock.json. */
function withoutTests() {
  const { name, version, dependencies, peerDependencies, devDependencies } = readJson(join(root, 'package.json'));
  const named = [...Object.keys(peerDependencies), ...FOR_BUILD].map((one) => [one, devDependencies[one]]);
  const own = { name, version, dependencies: { ...dependencies, ...Object.fromEntries(named) } };
  const lock = readJson(join(root, 'package-lock.json'));
  const place = join(root, '.perdura', 'packages.new');
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  cpSync(join(root, '.npmrc'), join(place, '.npmrc'));
  writeFileSync(join(place, 'package.json'), JSON.stringify(own));
  writeFileSync(join(place, 'package-lock.json'), JSON.stringify({ ...lock, packages: { ...lock.packages, '': own } }));
  return place;
}

function whyInstall(wanted) {
  if (!existsSync(modules)) return 'node_modules is missing';
  if (readText(modulesStamp) === wanted) return undefined;
  if (readText(modulesStamp) === `${wanted}${WITHOUT_TESTS}`) return 'those of the tests are missing';
  if (existsSync(modulesStamp)) return 'package-lock.json or Node has changed';
  const difference = differenceToLock();
  if (difference === undefined) writeFileSync(modulesStamp, wanted);
  return difference;
}

/** For a node_modules that npm filled without us: what npm says it put there, against what the lock file wants. */
function differenceToLock() {
  const installed = readJson(join(modules, '.package-lock.json'))?.packages;
  if (installed === undefined) return 'node_modules is not complete';
  const wanted = readJson(join(root, 'package-lock.json'))?.packages ?? {};
  const missing = Object.entries(wanted).find(
    ([path, entry]) => path !== '' && !entry.optional && installed[path]?.version !== entry.version,
  );
  return missing && `${missing[0]} is not there in version ${missing[1].version}`;
}

async function buildSources({ types, quiet }) {
  const sources = [...listFiles(join(root, 'src')), join(root, 'tsconfig.json'), join(root, 'tsconfig.build.json')].sort();
  const wanted = hash([
    ...sources.flatMap((file) => [relative(root, file), readFileSync(file)]),
    readFileSync(join(root, 'scripts', 'bundle-workflows.mjs')),
    readFileSync(join(root, 'scripts', 'transpile.mjs')),
    readText(modulesStamp) ?? '',
  ]);
  const stamp = readText(distStamp);
  if (stamp === withTypes(wanted) || (!types && stamp === wanted)) {
    if (!quiet) report('Build', 'as the sources');
    return;
  }
  const begin = Date.now();
  report('Build', `compiling, since ${whyBuild(stamp, wanted)} …`);
  // Built beside and then exchanged: a build that fails leaves the old one, and nobody sees half of one.
  // Beside `dist` itself: the types lead to `types/` by their place.
  const fresh = join(root, 'dist.new');
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  // Unused names are for `npm run check` to say; they stop nobody from running the program.
  const tsc = [join(modules, 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.build.json'];
  const lenient = ['--noUnusedLocals', 'false', '--noUnusedParameters', 'false'];
  const compile = types ? [...tsc, ...lenient, '--outDir', fresh] : [join(root, 'scripts', 'transpile.mjs'), fresh];
  await must('the sources do not compile', compile);
  await must('the workflows cannot be bundled', [join(root, 'scripts', 'bundle-workflows.mjs'), fresh]);
  writeFileSync(join(fresh, '.perdura-stamp'), types ? withTypes(wanted) : wanted);
  // The page is built by itself, and only where it has changed.
  if (existsSync(page)) cpSync(page, join(fresh, 'web'), { recursive: true });
  const old = join(root, '.perdura', 'build.old');
  rmSync(old, { recursive: true, force: true });
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(fresh, dist);
  rmSync(old, { recursive: true, force: true });
  report('Build', `done in ${seconds(begin)}`);
}

async function buildPage({ quiet }) {
  // With what the page shares with the rest: the words of a conversation, and the client package.
  const shared = [join('src', 'records'), join('packages', 'perdura-client', 'src')];
  const sources = ['web', ...shared].flatMap((folder) => listFiles(join(root, folder))).sort();
  const wanted = hash([...sources.flatMap((file) => [relative(root, file), readFileSync(file)]), readText(modulesStamp) ?? '']);
  if (readText(pageStamp) === wanted) {
    if (!quiet) report('Page', 'as the sources');
    return;
  }
  const begin = Date.now();
  report('Page', `building, since ${existsSync(page) ? 'its sources have changed' : 'dist/web is missing'} …`);
  const fresh = join(root, 'dist.new', 'web');
  rmSync(fresh, { recursive: true, force: true });
  const vite = join(modules, 'vite', 'bin', 'vite.js');
  const place = ['--config', join(root, 'web', 'vite.config.mjs'), '--outDir', fresh, '--emptyOutDir', '--logLevel', 'warn'];
  await must('the page cannot be built', [vite, 'build', ...place]);
  writeFileSync(join(fresh, '.perdura-stamp'), wanted);
  const old = join(root, '.perdura', 'page.old');
  rmSync(old, { recursive: true, force: true });
  if (existsSync(page)) renameSync(page, old);
  renameSync(fresh, page);
  rmSync(join(root, 'dist.new'), { recursive: true, force: true });
  rmSync(old, { recursive: true, force: true });
  report('Page', `done in ${seconds(begin)}`);
}

function withTypes(wanted) {
  return `${wanted} with types`;
}

function whyBuild(stamp, wanted) {
  if (!existsSync(dist)) return 'dist is missing';
  return stamp === wanted ? 'it has no types yet' : 'the sources have changed';
}

async function must(failure, nodeArguments) {
  const result = await runProgram(process.execPath, nodeArguments, { cwd: root });
  if (result.signal) throw Object.assign(new Error('The build was interrupted; run the command again.'), { exitCode: 130 });
  if (result.code !== 0) throw Object.assign(new Error(`${result.output.trim()}\n\nThe build stopped: ${failure}.`), { exitCode: 1 });
}

function listFiles(dir) {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    return entry.isDirectory() ? listFiles(path) : [path];
  });
}

/** Each part is hashed with its length, so that no two lists of parts look the same. */
function hash(parts) {
  const sum = createHash('sha256');
  for (const part of parts) sum.update(`${part.length}:`).update(part);
  return sum.digest('hex');
}

function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await run(() => prepare({ build: !process.argv.includes('--no-build'), quiet: process.argv.includes('--quiet') }));
}
