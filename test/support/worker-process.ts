/** A worker as people run it: the built product in a process of its own, which can be killed. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { dieWithUs } from './reaper.js';

export interface WorkerProcess {
  readonly pid: number;
  /** It takes work. Rejects, with what it said, when it ends before. */
  readonly ready: Promise<void>;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** SIGTERM, as a deployment does; `ended` says when that is over. */
  term(): void;
  /** SIGTERM, and until it has ended; SIGKILL when it takes too long. */
  stop(): Promise<void>;
  /** SIGSTOP: it is there, and does nothing until `resume`. */
  pause(): void;
  resume(): void;
  /** SIGKILL, and until it is gone. */
  kill(): Promise<void>;
  /** The end of what it said. */
  log(): string;
}

export interface WorkerProcessOptions {
  /** Its settings: `TEMPORAL_ADDRESS`, `REDIS_URL` or `PERDURA_MEMORY_DIR`, … Those of a developer are left out. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Modules that are loaded before the product (Node's `--require`). */
  readonly preloads?: readonly string[];
  /** Another command than `worker`, and what it says once it is ready. */
  readonly command?: { readonly args: readonly string[]; readonly readyOn: string };
  /** Another build of the product: a folder with `dist`. */
  readonly product?: string;
}

const WORKER = { args: ['worker'], readyOn: 'takes work from task queue' };

/** The product that is tested: a folder with `dist`. A copy that was broken by hand shows whether a test can fail. */
export const PRODUCT = process.env['PERDURA_TEST_PRODUCT'] ?? join(__dirname, '..', '..');

const OWN = /^(TEMPORAL_|PERDURA_|REDIS_URL$|ANTHROPIC_|NODE_OPTIONS$)/;
/** Longer than the worker's own grace. */
const MAX_STOP_MS = 20_000;
const KEPT_LOG = 16_000;

export function startWorkerProcess({ env, cwd, preloads = [], command = WORKER, product = PRODUCT }: WorkerProcessOptions): WorkerProcess {
  const inherited = Object.entries(process.env).filter(([name]) => !OWN.test(name));
  const child = spawn(
    process.execPath,
    [...preloads.flatMap((file) => ['--require', file]), join(product, 'dist', 'cli', 'main.js'), ...command.args],
    {
      cwd,
      env: { ...Object.fromEntries(inherited), PERDURA_TEST_PRODUCT: product, PERDURA_TRUST: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const pid = child.pid ?? 0;
  const spare = dieWithUs(pid);
  let log = '';
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once('close', (code, signal) => {
      spare();
      resolve({ code, signal });
    }),
  );
  const ready = new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        log = (log + text).slice(-KEPT_LOG);
        if (log.includes(command.readyOn)) resolve();
      });
    }
    void ended.then(({ code, signal }) =>
      reject(new Error(`perdura ${command.args.join(' ')} ended (${signal ?? code}) before it was ready:\n${log}`)),
    );
  });
  // Who kills it before it is ready does not wait for it.
  ready.catch(() => undefined);

  const isGone = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    pid,
    ready,
    ended,
    term: () => void child.kill('SIGTERM'),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
    async stop() {
      if (!isGone()) child.kill('SIGTERM');
      const tooLong = setTimeout(() => child.kill('SIGKILL'), MAX_STOP_MS);
      await ended;
      clearTimeout(tooLong);
    },
    async kill() {
      if (!isGone()) child.kill('SIGKILL');
      await ended;
    },
    log: () => log,
  };
}
