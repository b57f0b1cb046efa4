/**
 * Of processes on this machine; and Perdura's programs that run apart from this one, as a process or a thread, so that hostile input cannot
 * hold it up.
 */
import { readFileSync } from 'node:fs';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { errorCode } from './errors.js';

/** Also of one that we may not signal. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== 'ESRCH';
  }
}

/** `file`: what `require.resolve` says. In the build it is run as it lies; under test there are only sources. */
export type ChildProgram = { readonly kind: 'file'; readonly path: string } | { readonly kind: 'code'; readonly code: string };

export async function childProgram(file: string): Promise<ChildProgram> {
  if (!file.endsWith('.ts')) return { kind: 'file', path: file };
  const { transformSync } = await import('@swc/core');
  const { code } = transformSync(readFileSync(file, 'utf8'), {
    filename: file,
    swcrc: false,
    configFile: false,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  });
  // As if it lay where its source lies: that is where it finds its packages.
  const require = `require('node:module').createRequire(${JSON.stringify(file)})`;
  return { kind: 'code', code: `(function (require, exports) {${code}\n})(${require}, {});` };
}

/** A thread that reads nothing of this process's environment and has `memoryMb`. Its failures reach those who listen, and no one else. */
export async function startThread(file: string, memoryMb: number, options: WorkerOptions = {}): Promise<Worker> {
  const program = await childProgram(file);
  const thread = new Worker(program.kind === 'file' ? program.path : program.code, {
    eval: program.kind === 'code',
    env: {},
    // What this process was started to load before all else is for it alone, and may need the environment.
    execArgv: [],
    // It reads what strangers wrote: whatever it prints is theirs.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, stackSizeMb: 4 },
    ...options,
  });
  // An error that comes while it is ended has no other listener, and would end this process.
  thread.on('error', () => undefined);
  return thread;
}
