import { spawn } from 'node:child_process';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../../platform/processes.js';
import { errorCode } from '../../platform/errors.js';

export interface Ran {
  /** 127 when the program is not there. */
  readonly code: number;
  readonly output: string;
}

/** Runs a program to its end. `signal` kills it. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv; readonly signal?: AbortSignal; readonly onOutput?: () => void } = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: options.cwd, env: options.env, signal: options.signal, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const collect = (chunk: Buffer): void => {
      output += chunk.toString();
      options.onOutput?.();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('error', (error) => resolve({ code: 127, output: error.message }));
    child.on('close', (code) => resolve({ code: code ?? 1, output: output.trim() }));
  });
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

export function findOnPath(name: string, path: readonly string[]): string | undefined {
  return path.map((dir) => join(dir, name)).find(isExecutable);
}

/** The command line of a process, so that a pid that now belongs to another program is not taken for ours. */
export async function readCommand(pid: number): Promise<string | undefined> {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() || undefined;
  } catch {
    const { code, output } = await runProgram('ps', ['-p', String(pid), '-o', 'args=']);
    return code === 0 && output !== '' ? output : undefined;
  }
}

/** SIGTERM, up to `patience` milliseconds or until `hurry`, then SIGKILL. Returns when the process is gone. */
export async function endProcess(pid: number, patience: number, hurry?: AbortSignal): Promise<void> {
  const send = (signal: NodeJS.Signals): void => {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (errorCode(error) !== 'ESRCH') throw error;
    }
  };
  send('SIGTERM');
  for (const deadline = Date.now() + patience; isAlive(pid) && Date.now() < deadline && !hurry?.aborted;) await sleep(20);
  if (!isAlive(pid)) return;
  send('SIGKILL');
  for (const deadline = Date.now() + 2000; isAlive(pid) && Date.now() < deadline;) await sleep(20);
}

/** The end of a log, for a person, with the news that a program failed. */
export function lastLines(file: string, count: number): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-count).join('\n');
  } catch {
    return '';
  }
}
