/** A program to its end, with what it printed. */
import { spawn } from 'node:child_process';
import { MissingProgram } from './suite.js';

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/** Rejects only where it cannot be started. Settings of a developer's own do not reach it. */
export function runProgram(
  program: string,
  args: readonly string[],
  { cwd, env = {}, timeoutMs = 180_000 }: ProgramOptions = {},
): Promise<Finished> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(TEMPORAL_|PERDURA_|REDIS_URL$|ANTHROPIC_|OPENAI_|PYTHON)/.test(name));
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...Object.fromEntries(kept), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
    child.once('error', (error) => reject(new MissingProgram(`${program} cannot be started: ${error.message}`)));
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
