/** `perdura init`: makes a project that runs at once. Nothing of a folder is overwritten, or used, unless `--force` says so. */
import { lstat, mkdir, realpath, rename, writeFile, readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { existsSync, readFileSync } from 'node:fs';
import { packageManager } from '../../config.js';
import { counted } from '../../records/text.js';
import { runProgram } from '../services/programs.js';
import type { Answer } from '../session/command.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import { toTerminalLine } from '../terminal/terminal-text.js';
import { errorCode, errorMessage } from '../../platform/errors.js';
import { packageVersion } from '../../platform/optional-package.js';

export interface InitOptions {
  readonly name?: string;
  readonly force?: boolean;
  readonly install: boolean;
  readonly folder?: string;
}

/** The person sees it after this, and then each time it has passed again. */
const FIRST_NOTICE_MS = 1_000;
const NEXT_NOTICE_MS = 15_000;
const SHOWN_LINES = 12;
const SHOWN_FILES = 10;

export async function init({ output, closed, surroundings }: CliContext, dir: string | undefined, options: InitOptions): Promise<Answer> {
  const { cwd, env } = surroundings;
  const folder = resolve(cwd, dir ?? options.folder ?? '.');
  const name = chooseName(folder, options.name);
  const place = await makeFolder(folder);
  const perdura = perduraSource(place);
  const files = await projectFiles({ name, perdura });
  await writeAll(place, files, options.force === true);
  const manager = packageManager(env);
  if (options.install) await install(manager, { cwd: folder, env: { ...env }, signal: closed }, output);
  const made = { folder, name, perdura, files: files.map(({ path }) => path), installed: options.install };
  return { data: made, text: nextSteps(made, manager, cwd).join('\n') };
}

function chooseName(folder: string, wished: string | undefined): string {
  const name = wished ?? basename(folder);
  const refused = nameRefusal(name);
  if (refused !== undefined) throw new CliError(`${refused}; try --name ${nameLike(name)}`, EXIT.usage);
  return name;
}

async function makeFolder(folder: string): Promise<string> {
  try {
    await mkdir(folder, { recursive: true });
    return await realpath(folder);
  } catch (cause) {
    const isFile = errorCode(cause) === 'EEXIST';
    const why = isFile ? 'a file of that name is there' : errorMessage(cause);
    throw new CliError(`cannot make the folder ${folder}: ${why}; name another one`, EXIT.failed, { cause });
  }
}

/** All or nothing: what is there is looked for before the first file is written. */
async function writeAll(folder: string, files: readonly TemplateFile[], force: boolean): Promise<void> {
  const there: string[] = [];
  for (const { path } of files) if (await isThere(join(folder, path))) there.push(path);
  if (there.length > 0 && !force) {
    const more = there.length > SHOWN_FILES ? `, and ${there.length - SHOWN_FILES} more` : '';
    throw new CliError(
      `${folder} has ${counted(there.length, 'file')} already that a project would overwrite: ${there.slice(0, SHOWN_FILES).join(', ')}${more}. ` +
        'Nothing was written; name another folder, or overwrite them with --force',
      EXIT.failed,
    );
  }
  for (const { path, text } of files) {
    const file = join(folder, path);
    try {
      await mkdir(dirname(file), { recursive: true });
      // A file that has come meanwhile is not overwritten either; with --force a link is replaced and not followed.
      if (!force) await writeFile(file, text, { flag: 'wx' });
      else {
        const fresh = `${file}.${process.pid}`;
        await writeFile(fresh, text, { flag: 'wx' });
        await rename(fresh, file);
      }
    } catch (cause) {
      throw new CliError(`cannot write ${file}: ${errorMessage(cause)}; make room for it, and run this again with --force`, EXIT.failed, {
        cause,
      });
    }
  }
}

/** A broken link is something, too. */
async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

async function install(
  manager: string,
  place: { cwd: string; env: NodeJS.ProcessEnv; signal: AbortSignal },
  output: Output,
): Promise<void> {
  const began = Date.now();
  const quiet = manager === 'npm' ? ['--no-audit', '--no-fund', '--loglevel=error'] : [];
  const say = (): void => output.note(`installing packages with ${manager}, ${Math.round((Date.now() - began) / 1000)} s …`);
  const first = setTimeout(() => output.note(`installing packages with ${manager} …`), FIRST_NOTICE_MS);
  const timer = setInterval(say, NEXT_NOTICE_MS);
  try {
    const { code, output: text } = await runProgram(manager, ['install', ...quiet], place);
    if (code === 0) return;
    const lines = text
      .split('\n')
      .slice(-SHOWN_LINES)
      .map((line) => toTerminalLine(line, 300));
    throw new CliError(
      `${lines.join('\n')}\n\nThe project is in ${place.cwd}, but its packages are not: \`${manager} install\` ended with code ${code}. ` +
        `Run it there again once the registry can be reached; --no-install leaves it to you`,
      EXIT.failed,
    );
  } finally {
    clearTimeout(first);
    clearInterval(timer);
  }
}

function nextSteps(
  {
    folder,
    name,
    files,
    perdura,
    installed,
  }: Readonly<Record<'folder' | 'name' | 'perdura', string>> & {
    readonly files: readonly string[];
    readonly installed: boolean;
  },
  manager: string,
  cwd: string,
): string[] {
  const way = relative(cwd, folder);
  const steps = [
    ...(way === '' ? [] : [[`cd ${/^[\w./@-]+$/.test(way) ? way : JSON.stringify(way)}`, '']]),
    ...(installed ? [] : [[`${manager} install`, '']]),
    [`${manager} test`, 'the agent and its tool with a scripted model: no key, no server'],
    [`${manager} run chat`, 'talk to it; the first time it fetches a Temporal server where there is none'],
  ] as const;
  const width = Math.max(...steps.map(([command]) => command.length));
  return [
    `Made ${name}: ${counted(files.length, 'file')} in ${folder}`,
    ...(perdura.startsWith('file:') ? [`It takes Perdura from ${perdura.slice('file:'.length)}, where this one came from.`] : []),
    '',
    ...steps.map(([command, what]) => `  ${what === '' ? command : `${command.padEnd(width)}  ${what}`}`),
    '',
    'Without ANTHROPIC_API_KEY a scripted stand-in answers, which is no language model: put a key into .env (see .env.example).',
  ];
}

// What npm takes for the name of a new package.

const MAX_NAME = 214;
const PATTERN = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;
/** npm installs no package into one of the same name, and takes the other two for its folders. */
const TAKEN = ['perdura', 'node_modules', 'favicon.ico'];

/** Why not; undefined for a name that can be taken. */
function nameRefusal(name: string): string | undefined {
  if (TAKEN.includes(name)) return `a project cannot be called ${JSON.stringify(name)}`;
  if (name.length <= MAX_NAME && PATTERN.test(name)) return undefined;
  return `${JSON.stringify(name.slice(0, 80))} cannot be the name of a package: lower-case letters, digits, "-", "_" and "." are, up to ${MAX_NAME} of them`;
}

/** The nearest name that can be taken. */
function nameLike(name: string): string {
  const plain = name
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[-._]+|[-._]+$/g, '')
    .slice(0, 50);
  return nameRefusal(plain) === undefined ? plain : 'my-agent';
}

// Where a new project is to get Perdura from: where this one came from. A tarball or a clone is not on any registry.

const ROOT = join(__dirname, '..', '..', '..');

/** As in the dependencies of package.json: `^0.1.0`, or `file:…` from the project's folder. */
function perduraSource(project: string, root = ROOT): string {
  const from = (place: string): string => `file:${relative(project, place).split(sep).join('/') || '.'}`;
  const modules = dirname(root);
  // A clone has no node_modules above it.
  if (basename(modules) !== 'node_modules') return from(root);
  const tarball = installedFrom(modules);
  return tarball === undefined ? `^${packageVersion()}` : from(tarball);
}

/** The file or folder that npm has installed it from; undefined for a registry. */
function installedFrom(modules: string): string | undefined {
  try {
    const lock = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')) as {
      readonly packages?: Readonly<Record<string, { readonly resolved?: string } | undefined>>;
    };
    const resolved = lock.packages?.['node_modules/perdura']?.resolved;
    if (!resolved?.startsWith('file:')) return undefined;
    const file = resolve(dirname(modules), decodeURIComponent(resolved.slice('file:'.length)));
    return existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

// The files of a new project, as they are in the package's `templates/project`, with what differs from project to project filled in.

const TEMPLATE = join(__dirname, '..', '..', '..', 'templates', 'project');
/** npm leaves a `.gitignore` out of a package, and a `.env…` is not looked for in one. */
const HIDDEN: Readonly<Record<string, string>> = { gitignore: '.gitignore', 'env.example': '.env.example' };
/** The name in the template. */
const PLACEHOLDER = 'my-agent';

interface TemplateFile {
  /** In the project, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** Sorted by path. `perdura`: the version of Perdura in package.json. */
async function projectFiles({ name, perdura }: { readonly name: string; readonly perdura: string }): Promise<readonly TemplateFile[]> {
  const found = await readdir(TEMPLATE, { recursive: true, withFileTypes: true });
  const files = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const all = await Promise.all(
    files.map(async (file) => {
      const path = file
        .slice(TEMPLATE.length + 1)
        .split(sep)
        .join('/');
      return { path: HIDDEN[path] ?? path, text: fill(path, await readFile(file, 'utf8'), { name, perdura }) };
    }),
  );
  return all.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function fill(path: string, text: string, { name, perdura }: { readonly name: string; readonly perdura: string }): string {
  if (path === 'README.md') return text.replace(`# ${PLACEHOLDER}\n`, `# ${name}\n`);
  if (path !== 'package.json') return text;
  const manifest = JSON.parse(text) as { readonly dependencies: Readonly<Record<string, string>> };
  const dependencies = { ...manifest.dependencies, perdura };
  return `${JSON.stringify({ ...manifest, name, dependencies }, null, 2)}\n`;
}
