/** Commands as a person runs them: in the world's folder, with its Temporal and its file store. */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, closeSync } from 'node:fs';
import { mkdtemp, readFile, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { World } from './world.js';

export const PERDURA = join(__dirname, '..', '..', 'bin', 'perdura');

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly ended: Promise<Ran>;
  readonly stdout: () => string;
  readonly stderr: () => string;
  kill(signal: NodeJS.Signals): void;
}

export interface RunOptions {
  /** Beside that of the world. */
  readonly env?: Readonly<Record<string, string>>;
  /** What stands on stdin. */
  readonly input?: string;
}

type Place = Pick<World, 'dir' | 'taskQueue'>;

export function perduraEnvironment({ dir, taskQueue }: Place): Record<string, string> {
  return {
    PATH: '',
    HOME: dir,
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    PERDURA_TASK_QUEUE: taskQueue,
    PERDURA_MEMORY_DIR: join(dir, 'memory'),
    PERDURA_TRUST: '1',
  };
}

/** A command as a process of its own. */
export function startPerdura(world: Place, args: readonly string[], { env = {}, input = '' }: RunOptions = {}): Running {
  const child = spawn(process.execPath, [PERDURA, ...args], { cwd: world.dir, env: { ...perduraEnvironment(world), ...env } });
  const said = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (said.stdout += piece));
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (said.stderr += piece));
  child.stdin.end(input);
  return {
    ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, ...said }))),
    stdout: () => said.stdout,
    stderr: () => said.stderr,
    kill: (signal) => void child.kill(signal),
  };
}

let host: Promise<Host> | undefined;
let isHostBusy = false;

afterAll(async () => (await host)?.close());

/**
 * Runs a command to its end. The first of each kind in a run of jest is a process of its own, and so are those that read stdin or
 * overlap. The others of a test file share one (see perdura-host.cjs): a start takes half a second of a core, and few of hundreds show
 * something by it.
 */
export async function runPerdura(world: Place, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  if (isHostBusy || options.input || isFirst(kindOf(args))) return startPerdura(world, args, options).ended;
  isHostBusy = true;
  try {
    return await (await (host ??= openHost())).run(world, args, options);
  } finally {
    isHostBusy = false;
  }
}

const ranHere = new Set<string>();

/** Of all test files of this run of jest, which note in its folder what they have started. */
function isFirst(kind: string): boolean {
  if (ranHere.has(kind)) return false;
  ranHere.add(kind);
  const dir = process.env['PERDURA_TEST_DIR'];
  if (dir === undefined) return true;
  try {
    closeSync(openSync(join(dir, `started-${kind.replace(/[^a-z-]+/g, '_')}`), 'wx'));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** `memory show` and `memory log` are commands, and so is `show`. */
function kindOf([name = '', part = '']: readonly string[]): string {
  return ['memory', 'history', 'mcp'].includes(name) ? `${name} ${part}` : name;
}

interface Host {
  run(world: Place, args: readonly string[], options: RunOptions): Promise<Ran>;
  close(): Promise<void>;
}

async function openHost(): Promise<Host> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-host-'));
  const files = [join(dir, 'stdout'), join(dir, 'stderr')] as const;
  const opened = files.map((file) => openSync(file, 'a'));
  const child = fork(join(__dirname, 'perdura-host.cjs'), { stdio: ['ignore', ...opened, 'ipc'], execArgv: [] });
  for (const file of opened) closeSync(file);
  return {
    async run(world, args, { env = {} }) {
      for (const file of files) await truncate(file);
      child.send({ args, env: { ...perduraEnvironment(world), ...env }, cwd: world.dir });
      const code = await answerOf(child);
      const [stdout, stderr] = await Promise.all([readFile(files[0], 'utf8'), readFile(files[1], 'utf8')]);
      return { code, stdout, stderr };
    },
    async close() {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The exit code of the command; that of the process when the command took it along. */
function answerOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => {
    const answer = ({ code }: { code: number }): void => end(code);
    const end = (code: number | null): void => {
      child.off('message', answer).off('exit', end);
      resolve(code);
    };
    child.on('message', answer).on('exit', end);
  });
}
