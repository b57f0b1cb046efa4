/**
 * Of processes on this machine; and Perdura's programs that run apart from this one, as a process or a thread, so that hostile input cannot
 * hold it up.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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
  const transform = (path: string): string => {
    const { code } = transformSync(readFileSync(path, 'utf8'), {
      filename: path,
      swcrc: false,
      configFile: false,
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'commonjs' },
    });
    return code;
  };
  const sources = new Map<string, string>();
  const collect = (path: string): void => {
    if (sources.has(path)) return;
    const code = transform(path);
    sources.set(path, code);
    for (const [, name = ''] of code.matchAll(/\brequire\("(\.[^"]+)"\)/g)) collect(sourceFile(path, name));
  };
  collect(file);
  // As if each lay where its source lies: that is where it finds its packages.
  const files = [...sources].map(([path, code]) => `${JSON.stringify(path)}: (require, exports, module, __dirname) => {${code}\n}`);
  return {
    kind: 'code',
    code: `{
      const { createRequire } = require('node:module');
      const { dirname, join } = require('node:path');
      const files = {${files.join(',\n')}};
      const loaded = new Map();
      const load = (path) => {
        if (loaded.has(path)) return loaded.get(path).exports;
        const module = { exports: {} };
        loaded.set(path, module);
        const packages = createRequire(path);
        const find = (name) => (name.startsWith('.') ? load(join(dirname(path), name).replace(/\\.js$/, '.ts')) : packages(name));
        files[path](find, module.exports, module, dirname(path));
        return module.exports;
      };
      load(${JSON.stringify(file)});
    }`,
  };
}

function sourceFile(from: string, name: string): string {
  return join(dirname(from), name).replace(/\.js$/, '.ts');
}

/**
 * A thread that reads nothing of this process's environment and has `memoryMb`, by default as much as the process. Its failures reach those who
 * listen, and no one else.
 */
export async function startThread(file: string, memoryMb?: number, options: WorkerOptions = {}): Promise<Worker> {
  const program = await childProgram(file);
  const thread = new Worker(program.kind === 'file' ? program.path : program.code, {
    eval: program.kind === 'code',
    env: {},
    // What this process was started to load before all else is for it alone, and may need the environment.
    execArgv: [],
    // It reads what strangers wrote: whatever it prints is theirs.
    stdout: true,
    stderr: true,
    ...(memoryMb !== undefined && { resourceLimits: { maxOldGenerationSizeMb: memoryMb, stackSizeMb: 4 } }),
    ...options,
  });
  // An error that comes while it is ended has no other listener, and would end this process.
  thread.on('error', () => undefined);
  return thread;
}
