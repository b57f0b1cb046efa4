/**
 * What file tools do not write, since it runs or is obeyed later without a person's approval: hooks, settings of programs,
 * secrets, Perdura's settings and memory. It is refused whether or not it is there yet. A command can still do it; commands are
 * for a person to allow. Compared as file systems that ignore case and invisible characters would.
 */
import { lstat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { withoutMark } from '../records/file-type.js';
import { isInside, onOneLine, WriteRefused } from './workspace-guard.js';
import { isRecord } from '../platform/json.js';

const FOLDERS = [
  ...['.git', '.hg', '.svn', '.jj', '.sl', '.bzr', '_darcs'],
  ...['.husky', '.perdura', '.ssh', '.vscode', '.idea', '.claude', '.cursor'],
];
const FILES = ['.envrc', '.npmrc', '.yarnrc', '.yarnrc.yml', '.mcp.json', '.gitmodules', '.bashrc', '.bash_profile', '.profile', '.zshrc'];
const ENV_FILE = /^\.env(\..+)?$/;
/** Shown to others as a model of one, without secrets. */
const ENV_EXAMPLE = /^\.env\.(example|sample|template|dist)$/;
const OUR_CONFIG = /^perdura\.config\.[a-z]+$/;

/** `real` lies inside `root`. Throws `WriteRefused`. */
export function refuseProtected(root: string, real: string, protectedPlaces: readonly string[] = []): void {
  const names = plainNames(relative(root, real));
  const file = names.at(-1) ?? '';
  const refuse = (what: string): never => {
    throw new WriteRefused('protected', `cannot write ${onOneLine(relative(root, real))}: ${what}. ${ASK}`);
  };
  const folder = names.find((name) => isNamed(name, FOLDERS));
  if (folder !== undefined) refuse(`what lies in ${folder} is run or obeyed later, without a person's approval`);
  if (ENV_FILE.test(file) && !ENV_EXAMPLE.test(file)) refuse('such a file holds secrets and settings');
  if (isNamed(file, FILES) || OUR_CONFIG.test(file)) refuse("programs obey it later, without a person's approval");
  if (protectedPlaces.some((place) => isInside(place, real))) refuse("it belongs to Perdura's settings or memory");
}

/** Throws `WriteRefused` for a package.json with other scripts than before: `npm install` and `npm test` would run them. */
export function refuseNewScripts(root: string, real: string, before: string | undefined, after: string): void {
  if (plainName(relative(root, real).split(sep).at(-1) ?? '') !== 'package.json') return;
  const scripts = before === undefined ? [] : readScripts(before);
  const wanted = readScripts(after);
  if (wanted !== undefined && (wanted.length === 0 || JSON.stringify(wanted) === JSON.stringify(scripts))) return;
  const what =
    wanted === undefined
      ? 'that is not valid JSON, so its scripts cannot be compared'
      : 'its scripts would be other ones, and they run later';
  throw new WriteRefused('protected', `cannot write ${onOneLine(relative(root, real))}: ${what}. Leave "scripts" as it is. ${ASK}`);
}

const ASK = 'Tell the person what you wanted to write and why; they can do it.';

/** Sorted pairs of all that npm and hook managers run; undefined where the text is no JSON object. */
function readScripts(text: string): readonly (readonly [string, string])[] | undefined {
  try {
    const parsed: unknown = JSON.parse(withoutMark(text));
    if (!isRecord(parsed)) return undefined;
    return Object.entries(parsed)
      .filter(([field]) => RUN_BY_OTHERS.includes(field))
      .flatMap(([field, value]) =>
        typeof value === 'object' && value !== null
          ? Object.entries(value).map(([name, script]) => [`${field}.${name}`, JSON.stringify(script)] as const)
          : [[field, JSON.stringify(value)] as const],
      )
      .sort(([a], [b]) => (a < b ? -1 : 1));
  } catch {
    return undefined;
  }
}

const RUN_BY_OTHERS = ['scripts', 'husky', 'simple-git-hooks', 'lint-staged', 'pre-commit', 'gypfile'];

/**
 * A folder with HEAD, objects and refs is a repository wherever it lies and whatever it is called, and git obeys the `config` in it. So
 * HEAD never comes to stand beside one of the others, in whatever order they are written, and nothing is written in what is one already.
 * `gitdir: …` is how a file makes another folder such a one. Before any folder is made. Throws `WriteRefused`.
 */
export async function refuseRepository(root: string, real: string, content: Buffer): Promise<void> {
  const refuse = (): never => {
    throw new WriteRefused(
      'protected',
      `cannot write ${onOneLine(relative(root, real))}: it would be part of a git repository, whose settings git obeys later. ${ASK}`,
    );
  };
  if (/^\s*gitdir:/i.test(content.subarray(0, 64).toString('latin1'))) refuse();
  const names = relative(root, real).split(sep);
  for (let depth = 0; depth < names.length; depth++) {
    const folder = join(root, ...names.slice(0, depth));
    const next = plainName(names[depth] ?? '');
    // The names as they stand: whether `head` is HEAD, the file system says.
    const has = async (name: string): Promise<boolean> => isNamed(next, [name.toLowerCase()]) || exists(join(folder, name));
    if ((await has('HEAD')) && (await Promise.all(BESIDE_HEAD.map(has))).includes(true)) refuse();
  }
}

/** `commondir` names the folder where the two others are. */
const BESIDE_HEAD = ['objects', 'refs', 'commondir'];

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

// Names of files as those file systems compare them that ignore case, invisible characters, dots and blanks at the end, and what
// stands behind a colon, and that know a long name by a short one (`GIT~1`). For tables of names that are refused or need approval.

/** Lower case. */
function plainName(name: string): string {
  return name
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .replace(/(?<=.):.*$/s, '')
    .replace(/[. ]+$/, '')
    .toLowerCase();
}

/** Of a relative path. */
export function plainNames(path: string): string[] {
  return path.split(/[/\\]/).map(plainName);
}

/** Whether a plain name is one of these, which are plain too, or may be the short one of such. */
export function isNamed(name: string, names: readonly string[]): boolean {
  if (names.includes(name)) return true;
  const short = /^([^~.]{1,6})~\d{1,4}(\.[^.]{0,3})?$/.exec(name)?.[1];
  return (
    short !== undefined &&
    names.some(
      (one) =>
        isLong(one) &&
        one
          .replace(/^\.+/, '')
          .replace(/[ .].*$/, '')
          .startsWith(short),
    )
  );
}

/** Only such names have a short one. */
function isLong(name: string): boolean {
  return name.startsWith('.') || !/^[^.]{1,8}(\.[^.]{0,3})?$/.test(name);
}
