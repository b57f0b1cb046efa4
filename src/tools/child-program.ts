/** Perdura's programs that run apart from the worker, as a process or a thread, so that hostile input cannot hold it up. */
import { readFileSync } from 'node:fs';

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
