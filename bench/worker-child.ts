/** A worker of the built product in a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export const MAIN = join(__dirname, '..', '..', '..', 'dist', 'cli', 'main.js');

export interface RunningWorker {
  readonly pid: () => number;
  readonly isGone: () => boolean;
  kill(): void;
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
  return {
    pid: () => child.pid ?? 0,
    isGone: () => child.exitCode !== null || child.signalCode !== null,
    kill: () => void child.kill('SIGKILL'),
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
