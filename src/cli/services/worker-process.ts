/** The worker as a child process: alive while this process is, gone with it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { CliError, EXIT } from '../terminal/exit.js';
import { endProcess, lastLines } from './programs.js';

export interface WorkerProcess {
  /** Settles when the first worker takes work, or when none can be started. */
  readonly ready: Promise<void>;
  /** To be called once there is a server: until then it only loads its code, which takes as long as a server takes to start. */
  begin(taskQueue: string): void;
  /** Lets a running answer end or move, within the worker's grace; `hurry` does not wait for that. */
  stop(hurry: AbortSignal): Promise<void>;
}

export interface WorkerOptions {
  /** Node's arguments: the script and what it is given. */
  readonly command: readonly string[];
  readonly cwd: string;
  /** Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv;
  readonly logFile: string;
  /** Says which process it is, for who wants to look at it or to kill it; with several of them in a folder, the latest. */
  readonly pidFile?: string;
  /** The next worker has loaded its code already when this one dies. The command waits for its begin. */
  readonly keepsSpare?: boolean;
  readonly changed: (change: WorkerChange) => void;
}

/** `at`: epoch milliseconds. */
export type WorkerChange =
  /** `how` ends "the worker was ended …"; another one starts after `pauseMs`. */
  | { readonly kind: 'away'; readonly at: number; readonly how: string; readonly pauseMs: number; readonly logFile: string }
  | { readonly kind: 'back'; readonly at: number; readonly afterMs: number };

export function describeWorkerChange(change: WorkerChange): string {
  if (change.kind === 'back') return `the new worker has taken over after ${(change.afterMs / 1000).toFixed(1)} s`;
  const when = change.pauseMs === 0 ? '' : ` in ${Math.round(change.pauseMs / 1000)} s`;
  return `the worker was ended ${change.how}: starting another${when} (${change.logFile})`;
}

/** What a worker says to its parent, over IPC. */
export interface WorkerReady {
  readonly kind: 'ready';
}

/** What its parent sends to a worker that was started with `--await-begin`. */
export interface WorkerBegin {
  readonly kind: 'begin';
  readonly taskQueue: string;
}

/** A worker that dies sooner than this is not started again at once: something is wrong with more than its luck. */
const SHORT_LIFE = 5000;
const MAX_PAUSE = 10_000;
/** Of a worker that works, before another one loads its code beside it. */
const SPARE_AFTER = 2000;
/** The worker's grace of 10 s and a little. */
const MAX_SHUTDOWN = 12_000;

export function startWorkerProcess(options: WorkerOptions): WorkerProcess {
  let child: ChildProcess | undefined;
  let spare: ChildProcess | undefined;
  let soon: NodeJS.Timeout | undefined;
  let stopping = false;
  let queue: string | undefined;
  let wasReady = false;
  let shortLives = 0;
  let pause: NodeJS.Timeout | undefined;
  let awaySince: number | undefined;
  let settle!: { resolve: () => void; reject: (error: Error) => void };
  const ready = new Promise<void>((resolve, reject) => (settle = { resolve, reject }));

  // Who stops us before it settled no longer asks.
  ready.catch(() => {});

  const keepSpare = (): void => {
    const waiting = spawnWorker(options);
    spare = waiting;
    waiting.on('exit', () => {
      if (spare === waiting) spare = undefined;
    });
  };
  const start = (): void => {
    const begin = Date.now();
    clearTimeout(soon);
    const started = spare ?? spawnWorker(options);
    spare = undefined;
    child = started;
    if (options.pidFile !== undefined && started.pid !== undefined) writeFileSync(options.pidFile, `${started.pid}\n`);
    if (queue !== undefined) sendBegin(child, queue);
    child.on('message', (message: WorkerReady) => {
      if (message.kind !== 'ready') return;
      const now = Date.now();
      if (wasReady) options.changed({ kind: 'back', at: now, afterMs: now - (awaySince ?? now) });
      awaySince = undefined;
      wasReady = true;
      settle.resolve();
      if (options.keepsSpare && !stopping) soon = setTimeout(keepSpare, SPARE_AFTER);
    });
    child.on('exit', (code, signal) => {
      child = undefined;
      if (stopping) return;
      shortLives = Date.now() - begin < SHORT_LIFE ? shortLives + 1 : 0;
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      if (!wasReady && (code === EXIT.unreachable || code === EXIT.usage || shortLives >= 3)) {
        return settle.reject(new CliError(`the worker ended ${how} before it was ready. ${tail(options.logFile)}`, code || EXIT.failed));
      }
      const pauseMs = shortLives < 2 ? 0 : Math.min(1000 * 2 ** (shortLives - 2), MAX_PAUSE);
      awaySince ??= Date.now();
      options.changed({ kind: 'away', at: awaySince, how, pauseMs, logFile: options.logFile });
      if (pauseMs === 0) return start();
      pause = setTimeout(start, pauseMs);
    });
  };
  start();

  return {
    ready,
    begin(taskQueue) {
      queue = taskQueue;
      if (child !== undefined) sendBegin(child, taskQueue);
    },
    async stop(hurry) {
      stopping = true;
      clearTimeout(pause);
      clearTimeout(soon);
      // It has nothing to end in order.
      spare?.kill('SIGKILL');
      if (child?.pid !== undefined) await endProcess(child.pid, MAX_SHUTDOWN, hurry);
      if (options.pidFile !== undefined) rmSync(options.pidFile, { force: true });
    },
  };
}

/** Detached, so that Ctrl+C in the terminal is ours alone to answer; IPC, so that it notices our end however we ended. */
function spawnWorker(options: WorkerOptions): ChildProcess {
  mkdirSync(dirname(options.logFile), { recursive: true });
  keepLogShort(options.logFile);
  const log = openSync(options.logFile, 'a');
  const child = spawn(process.execPath, options.command, {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  return child;
}

function sendBegin(child: ChildProcess, taskQueue: string): void {
  // One that has just ended cannot be reached, and the next one can.
  child.send({ kind: 'begin', taskQueue } satisfies WorkerBegin, () => undefined);
}

function keepLogShort(file: string): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > 10 * 1024 * 1024) renameSync(file, `${file}.old`);
}

function tail(logFile: string): string {
  return `The end of ${logFile}:\n${lastLines(logFile, 16)}`;
}
