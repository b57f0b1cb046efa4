/**
 * What a command is run in: separate mounts, processes, users and network, made by bubblewrap (the package `bubblewrap`). It sees the
 * system's programs, read-only, and its workspace; nothing else of the machine is there, and no host can be reached.
 */
import { spawn } from 'node:child_process';
import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, sep } from 'node:path';

/** What a sandbox is made for. Absolute paths. */
export interface SandboxNeeds {
  /** Can be written; all else is read-only, or not there. */
  readonly workspace: string;
  /** Of the command: where its programs are, and what it calls home. */
  readonly env: Readonly<Record<string, string>>;
  /** What the program around the command is made of: files, and a folder with its way out. */
  readonly files: readonly string[];
  /** In the workspace, and not for commands to write: settings and memory. */
  readonly protectedPlaces?: readonly string[];
  /** In the workspace, and not for commands to read: keys, and what others remember. */
  readonly hiddenPlaces?: readonly string[];
}

/** Of the system. What is a link there is one here. */
const SYSTEM = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** Names of users, hosts and certificates; no password, no key, no address of a name server. */
const SETTINGS = [
  ...['alternatives', 'ca-certificates', 'ca-certificates.conf', 'crypto-policies', 'group', 'hosts', 'inputrc'],
  ...['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'localtime', 'locale.conf', 'mime.types', 'nsswitch.conf', 'os-release', 'passwd'],
  ...['pki', 'profile', 'protocols', 'services', 'shells', 'ssl/certs', 'ssl/openssl.cnf', 'terminfo', 'timezone'],
];
/** Bytes that it may write beside its workspace, in memory. */
const SCRATCH = 256 * 1024 * 1024;

/** What a root user of any user namespace may write, whose owner is root: what the kernel runs, and what it does. */
const KERNEL_READ = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger', '/proc/mtrr'];
const KERNEL_HIDDEN = ['acpi', 'asound', 'kcore', 'keys', 'key-users', 'kmsg', 'latency_stats', 'sched_debug', 'scsi', 'timer_list'].map(
  (name) => `/proc/${name}`,
);

/** Words that are put before an argv. */
export function sandboxWords(
  { workspace, env, files, protectedPlaces = [], hiddenPlaces = [] }: SandboxNeeds,
  { namespaces, hasSizes }: SandboxMeans,
): string[] {
  const home = env['HOME'] ?? '/root';
  const isThere = (place: string): boolean => place.startsWith(`${workspace}${sep}`) && existsSync(place);
  const scratch = (path: string): string[] => [...(hasSizes ? ['--size', String(SCRATCH)] : []), '--tmpfs', path];
  return [
    'bwrap',
    ...namespaces,
    ...['--die-with-parent', '--as-pid-1', '--cap-drop', 'ALL', '--hostname', 'sandbox'],
    ...['--ro-bind', '/usr', '/usr'],
    ...SYSTEM.flatMap(likeTheSystem),
    ...SETTINGS.flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
    ...['--proc', '/proc', '--dev', '/dev'],
    ...KERNEL_READ.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', path, path]),
    ...KERNEL_HIDDEN.filter((path) => existsSync(path)).flatMap(hidden),
    ...['/tmp', ...(isSpecial(home) ? [] : [home])].flatMap(scratch),
    ...['--symlink', '/tmp', '/var/tmp'],
    ...programFolders(env['PATH'] ?? '', home).flatMap((folder) => ['--ro-bind', folder, folder]),
    ...[process.execPath, ...files].filter((file) => !file.startsWith('/usr/')).flatMap((file) => ['--ro-bind', file, file]),
    ...['--bind', workspace, workspace],
    ...protectedPlaces.filter(isThere).flatMap((place) => ['--ro-bind', place, place]),
    ...hiddenPlaces.filter(isThere).flatMap(hidden),
    ...['--chdir', workspace, '--'],
  ];
}

function likeTheSystem(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

function hidden(path: string): string[] {
  return lstatSync(path).isDirectory() ? ['--tmpfs', path, '--remount-ro', path] : ['--ro-bind', '/dev/null', path];
}

function isSpecial(home: string): boolean {
  return !home.startsWith('/') || ['/', '/usr', '/bin', '/etc', '/proc', '/dev', '/tmp', '/nonexistent'].includes(home);
}

/** Those that the system's are not: a version manager's, with what its links lead to. Of a home only such folders are there. */
function programFolders(path: string, home: string): string[] {
  const folders = path.split(':').flatMap((folder) => {
    // `npm` puts folders of packages before all others, for scripts of packages.
    if (!folder.startsWith('/') || folder.startsWith('/usr/') || folder.includes(`${sep}node_modules${sep}`) || !existsSync(folder))
      return [];
    if (SYSTEM.some((one) => folder === one || folder.startsWith(`${one}/`))) return [];
    const real = realpathSync(folder);
    const above = dirname(real);
    // `~/.cargo` has keys beside its `bin`; what a version manager keeps for one version has none.
    const isWhole = basename(real) === 'bin' && above.split(sep).length > 3 && above !== home && dirname(above) !== home;
    return [isWhole ? above : real];
  });
  return [...new Set(folders)];
}

/** What bubblewrap of this machine can do. */
export interface SandboxMeans {
  readonly namespaces: readonly string[];
  /** From 0.7 on it bounds folders in memory. */
  readonly hasSizes: boolean;
}

/** Of the kinds of namespaces that there can be, the first that works here: containers and some systems forbid some of them. */
const NAMESPACES: readonly (readonly string[])[] = [
  ['--unshare-all', '--unshare-user', '--disable-userns', '--new-session'],
  ['--unshare-all', '--unshare-user', '--new-session'],
  // A privileged worker of a system that forbids user namespaces.
  ['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try', '--new-session'],
];

let found: Promise<SandboxMeans | undefined> | undefined;

/** By which a sandbox is made here; undefined: none can be. Found out once. */
export function findSandbox(): Promise<SandboxMeans | undefined> {
  return (found ??= firstThatWorks());
}

async function firstThatWorks(): Promise<SandboxMeans | undefined> {
  if (process.platform !== 'linux') return undefined;
  for (const means of [true, false].flatMap((hasSizes) => NAMESPACES.map((namespaces) => ({ namespaces, hasSizes })))) {
    const words = sandboxWords({ workspace: '/tmp', env: {}, files: [] }, means);
    if (await works([...words, 'true'])) return means;
  }
  return undefined;
}

/** Where the system's programs are, whatever the worker's PATH says. */
export const SYSTEM_ENVIRONMENT: Readonly<Record<string, string>> = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

/** Whether a program of the system ends well. */
export function works([program = '', ...args]: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const trial = spawn(program, args, { env: SYSTEM_ENVIRONMENT, stdio: 'ignore', timeout: 5_000, killSignal: 'SIGKILL' });
    trial.once('error', () => resolve(false));
    trial.once('close', (code) => resolve(code === 0));
  });
}
