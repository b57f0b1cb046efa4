/** Lets a child process run our TypeScript: `node --require register-swc.cjs child.ts`. */
const fs = require('node:fs');
const Module = require('node:module');
const { transformSync } = require('@swc/core');

require.extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(fs.readFileSync(filename, 'utf8'), {
    filename,
    swcrc: false,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
    sourceMaps: 'inline',
  });
  module._compile(code, filename);
};

const resolve = Module._resolveFilename;
Module._resolveFilename = function (request, parent, ...rest) {
  const ours = request.startsWith('.') && parent?.filename?.endsWith('.ts');
  return resolve.call(this, ours ? request.replace(/\.js$/, '.ts') : request, parent, ...rest);
};
