/** TypeScript by `require`: transpiled in memory with its types unchecked, as are the `.ts` files that it requires, also as `./x.js`. */
import { existsSync, readFileSync } from 'node:fs';
import Module from 'node:module';
import { dirname, resolve } from 'node:path';
import type { transformSync } from '@swc/core';

/** What `require` uses and Node does not document: how files are read and how names become files. */
interface Loader {
  readonly _extensions: Record<string, ((module: Compiling, file: string) => void) | undefined>;
  _resolveFilename(request: string, parent: { readonly filename?: string } | undefined, ...rest: unknown[]): string;
}

interface Compiling {
  _compile(code: string, file: string): void;
}

/** From now on, for the whole process; returns the way to end it. */
export function installTypeScript(transform: typeof transformSync): () => void {
  const loader = Module as unknown as Loader;
  const { _resolveFilename: resolveFilename } = loader;
  const before = loader._extensions['.ts'];
  loader._extensions['.ts'] = (module, filename) => {
    const { code } = transform(readFileSync(filename, 'utf8'), {
      filename,
      swcrc: false,
      configFile: false,
      sourceMaps: 'inline',
      jsc: { target: 'es2022', parser: { syntax: 'typescript', decorators: true } },
      module: { type: 'commonjs' },
    });
    module._compile(code, filename);
  };
  loader._resolveFilename = (request, parent, ...rest) => {
    const source = request.startsWith('.') && parent?.filename?.endsWith('.ts') ? findTypeScript(request, parent.filename) : undefined;
    if (source !== undefined) return source;
    try {
      return resolveFilename.call(loader, request, parent, ...rest);
    } catch (error) {
      // A folder without packages has this one: the program that runs its files.
      if (!/^perdura(?:\/|$)/.test(request)) throw error;
      return require.resolve(request);
    }
  };
  return () => {
    loader._resolveFilename = resolveFilename;
    if (before) loader._extensions['.ts'] = before;
    else delete loader._extensions['.ts'];
  };
}

/** `./x.js` and `./x` next to a `.ts` file mean `./x.ts` when there is one. */
function findTypeScript(request: string, from: string): string | undefined {
  const source = resolve(dirname(from), request.replace(/(\.js)?$/, '.ts'));
  return request.endsWith('.ts') || !existsSync(source) ? undefined : source;
}
