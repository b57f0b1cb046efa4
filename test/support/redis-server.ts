/** A real redis-server of its own, on a free port, in a temp dir. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from '../../src/testing/temporal-server.js';

const KEPT_LOG = 2_000;

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Ends it in order, and removes the temp dir that it made. */
  stop(): Promise<void>;
  /** SIGKILL; the dir stays, so that another can start on it. */
  kill(): Promise<void>;
  /** Why it ended by itself: the end of its log. Undefined while it runs, or where it was ended. */
  death(): string | undefined;
}

export interface RedisServerOptions {
  /** Where its files lie; without it a temp dir, removed by `stop`. */
  readonly dir?: string;
  readonly port?: number;
  readonly appendonly?: boolean;
  /** The configuration of a Sentinel, which it is then. */
  readonly sentinelFile?: string;
  /** Further arguments, such as `['--maxmemory', '2mb']`. */
  readonly args?: readonly string[];
}

export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'perdura-redis-')));
  const removeDir = async () => (options.dir === undefined ? rm(dir, { recursive: true, force: true }) : undefined);
  // Somebody else may take a free port before redis does: then another one.
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await freePort());
    const process = spawn('redis-server', toArguments({ ...options, dir, port }), { stdio: ['ignore', 'pipe', 'inherit'] });
    let [log, isEnded] = ['', false];
    process.stdout.setEncoding('utf8').on('data', (text: string) => (log = (log + text).slice(-KEPT_LOG)));
    const finish = (signal: NodeJS.Signals): Promise<void> => {
      isEnded = true;
      return end(process, signal);
    };
    try {
      await answering(process);
    } catch (error) {
      if (attempt < 3 && options.port === undefined) continue;
      await removeDir();
      throw error;
    }
    return {
      url: `redis://127.0.0.1:${port}`,
      port,
      pid: process.pid ?? 0,
      async stop() {
        await finish('SIGTERM');
        await removeDir();
      },
      kill: () => finish('SIGKILL'),
      death: () => (isEnded || (process.exitCode === null && process.signalCode === null) ? undefined : log),
    };
  }
}

/** One command on the server of a port of this machine, which is not tried again. */
export async function askRedis<T = unknown>(port: number, ...[name = '', ...rest]: string[]): Promise<T> {
  const redis = new Redis({
    port,
    host: '127.0.0.1',
    retryStrategy: () => null,
    commandTimeout: 5_000,
    enableReadyCheck: false,
    disconnectTimeout: 0,
  });
  redis.on('error', () => undefined);
  try {
    return (await redis.call(name, ...rest)) as T;
  } finally {
    redis.disconnect();
  }
}

/** Looks for a minute; a server that does not answer has not done it yet. `attempt`: who does not do what. */
export async function untilDone(attempt: string, look: () => Promise<boolean>): Promise<void> {
  for (let left = 1_200; !(await look().catch(() => false)); left -= 1) {
    if (left === 0) throw new Error(attempt);
    await delay(50);
  }
}

function toArguments({ dir = '', port, appendonly, sentinelFile, args = [] }: RedisServerOptions): string[] {
  if (sentinelFile !== undefined) return [sentinelFile, '--sentinel', ...args];
  return [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--daemonize', 'no'],
    ...['--appendonly', appendonly === true ? 'yes' : 'no', ...args],
  ];
}

async function answering(process: ChildProcess): Promise<void> {
  let output = '';
  await new Promise<void>((resolve, reject) => {
    process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (/Ready to accept connections|\+monitor master/.test(output)) resolve();
    });
    process.once('error', (error) => reject(new Error(`cannot start redis-server: ${error.message}; is it installed?`)));
    process.once('exit', (code) => reject(new Error(`redis-server ended with ${code}:\n${output}`)));
  });
}

async function end(process: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const exited = once(process, 'exit');
  process.kill(signal);
  await exited;
}
