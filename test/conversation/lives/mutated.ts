/** The lives and the sources that they drive, loaded anew with one change in one file: what has to break a rule. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import { transformSync } from '@swc/core';

const SOURCES = resolve(__dirname, '../../../src/conversation');

export interface Mutant {
  readonly name: string;
  /** Below src/conversation. */
  readonly file: string;
  /** Must be there exactly once, so that a change of the source does not quietly turn a mutant into the original. */
  readonly from: string;
  readonly to: string;
}

interface Module {
  exports: unknown;
}

type Run = (module: Module, exports: unknown, require: (name: string) => unknown) => void;

const compiled = new Map<string, Run>();

/** Exports of a file of this folder. Only files of the repository are loaded anew: packages are the ones that are there. */
export function loadMutated<T>(file: string, mutant?: Mutant): T {
  const modules = new Map<string, Module>();
  const load = (path: string): unknown => {
    const known = modules.get(path);
    if (known) return known.exports;
    const module: Module = { exports: {} };
    modules.set(path, module);
    const require = (name: string): unknown =>
      name.startsWith('.') ? load(resolve(dirname(path), name.replace(/\.js$/, '.ts'))) : packages(path, name);
    compile(path, mutant && path === resolve(SOURCES, mutant.file) ? mutant : undefined)(module, module.exports, require);
    return module.exports;
  };
  return load(resolve(__dirname, file)) as T;
}

function packages(path: string, name: string): unknown {
  return createRequire(path)(name);
}

function compile(path: string, mutant: Mutant | undefined): Run {
  const source = readFileSync(path, 'utf8');
  const wanted = mutant ? changed(source, mutant) : source;
  const name = `${path}\n${mutant?.name ?? ''}`;
  const known = compiled.get(name);
  if (known) return known;
  const { code } = transformSync(wanted, {
    filename: path,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  });
  const run = new Function('module', 'exports', 'require', code) as Run;
  compiled.set(name, run);
  return run;
}

/** How often a mutant finds its place; throws where its file is not there. */
export function placesOf({ file, from }: Mutant, source = readFileSync(resolve(SOURCES, file), 'utf8')): number {
  return source.split(from).length - 1;
}

function changed(source: string, mutant: Mutant): string {
  const { name, file, from, to } = mutant;
  const places = placesOf(mutant, source);
  if (places !== 1) throw new Error(`the mutant that ${name} finds its place in ${file} ${places} times, not once: adapt it`);
  return source.replace(from, () => to);
}
