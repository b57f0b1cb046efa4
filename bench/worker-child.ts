/** A worker of the built product in a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const MAIN = join(__dirname, '..', '..', '..', 'dist', 'cli', 'main.js');

/** An installation in `dir`, with one agent without memory, for these servers; its settings, as `startWorkerChild` takes them. */
export async function createInstallation(
  dir: string,
  { address, redisUrl, modelUrl, taskQueue }: { address: string; redisUrl: string | undefined; modelUrl: string; taskQueue: string },
): Promise<Readonly<Record<string, string>>> {
  await mkdir(join(dir, 'agents', 'default'), { recursive: true });
  await writeFile(join(dir, 'agents', 'default', 'agent.json'), JSON.stringify({ memory: { enabled: false } }));
  await mkdir(join(dir, 'workspace'));
  return {
    TEMPORAL_ADDRESS: address,
    ...(redisUrl === undefined ? { PERDURA_MEMORY_DIR: join(dir, 'memory') } : { REDIS_URL: redisUrl }),
    ANTHROPIC_BASE_URL: modelUrl,
    ANTHROPIC_API_KEY: 'bench',
    PERDURA_AGENTS_DIR: join(dir, 'agents'),
    PERDURA_WORKSPACE: join(dir, 'workspace'),
    PERDURA_TASK_QUEUE: taskQueue,
    PERDURA_LOG_LEVEL: 'warn',
    PERDURA_TRUST: '1',
  };
}

export interface RunningWorker {
  readonly pid: () => number;
  readonly isGone: () => boolean;
  /** Resolves once it is gone. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** Resolves once it takes work. `env`: its settings, beside what this process has. */
export async function startWorkerChild(dir: string, env: NodeJS.ProcessEnv): Promise<RunningWorker> {
  if (!existsSync(MAIN)) throw new Error('workers are measured with the built product: npm run build');
  const child = spawn(process.execPath, [MAIN, 'worker'], {
    cwd: dir,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const exited = once(child, 'exit');
  await Promise.race([
    once(child, 'message'),
    exited.then(() => Promise.reject(new Error('a worker ended before it was ready: see what `perdura worker` says'))),
  ]);
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  return {
    pid: () => child.pid ?? 0,
    isGone: () => child.exitCode !== null || child.signalCode !== null,
    kill: end,
    stop: end,
  };
}
