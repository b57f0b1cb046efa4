/** Packages of npm, each set in a folder that is made once for its versions. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram, type Finished } from './run-program.js';
import { MissingProgram } from './suite.js';

/** Some need a newer Node than Perdura does: all run with one that npm has. */
const NODE = 'node@22';

export interface Packages {
  /** A program of them, by its name; or a file of modules that may import them. */
  run(
    program: { readonly bin: string } | { readonly file: string },
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<Finished>;
  readonly dir: string;
}

export async function installPackages(cacheDir: string, wanted: readonly string[]): Promise<Packages> {
  const pins = [NODE, ...wanted];
  const dir = join(cacheDir, `node-${createHash('sha256').update(pins.join()).digest('hex').slice(0, 12)}`);
  const ready = join(dir, 'ready');
  if (!existsSync(ready)) {
    await rm(dir, { recursive: true, force: true });
    await mkdir(dir, { recursive: true });
    await writeFile(join(dir, 'package.json'), '{ "private": true }');
    const made = await runProgram('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...pins], {
      cwd: dir,
      timeoutMs: 600_000,
    });
    if (made.code !== 0) throw new MissingProgram(`npm cannot install ${pins.join(', ')}: ${made.stderr.trim().slice(-300)}`);
    await writeFile(ready, '');
  }
  const node = join(dir, 'node_modules', 'node', 'bin', 'node');
  return {
    dir,
    run: (program, args, env = {}) => {
      const file = 'bin' in program ? join(dir, 'node_modules', '.bin', program.bin) : program.file;
      return runProgram(node, [file, ...args], { env, cwd: dir, timeoutMs: 600_000 });
    },
  };
}

/** As people write a package and its version. */
export function named(pin: string): string {
  const at = pin.lastIndexOf('@');
  return `${pin.slice(0, at)} ${pin.slice(at + 1)}`;
}
