/** `npm run check`: format, lint, types, who imports whom, what is not used, rules, the API reference, the table of models and the tables of docs. */
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { runProgram } from './programs.mjs';
import { report, run, seconds } from './report.mjs';

const bin = (name) => join(root, 'node_modules', ...name);
export const FORMATTED = '**/*.{ts,tsx,mjs,cjs,js,json,yml,yaml,css}';

await run(async () => {
  await prepare({ build: false, quiet: true });
  const results = await Promise.all([
    check('Format', '`npm run format` repairs it', [bin(['prettier', 'bin', 'prettier.cjs']), '--check', '--log-level', 'warn', FORMATTED]),
    check('Lint', 'each line above names its rule', [bin(['eslint', 'bin', 'eslint.js']), '.', '--max-warnings', '0']),
    check('Types', 'each line above names its place', [bin(['typescript', 'bin', 'tsc']), '-p', '.']),
    check('Page', 'each line above names its place', [bin(['typescript', 'bin', 'tsc']), '-p', 'web']),
    check('Imports', 'the table is in test/architecture/arrows.ts', [
      ...['--require', join(root, 'test', 'stores', 'register-swc.cjs')],
      join(root, 'test', 'architecture', 'check.ts'),
    ]),
    check('Dead code', 'delete it, or name what uses it in knip.json', [bin(['knip', 'bin', 'knip.js']), '--no-progress']),
    check('Rules', 'CONTRIBUTING.md says how a rule is written', [join(root, 'scripts', 'rules.mjs')]),
    check('API', '`node scripts/api-reference.mjs --write` repairs it; an export without a docstring gets one', [
      join(root, 'scripts', 'api-reference.mjs'),
    ]),
    check('Models', '`node scripts/model-table.mjs --write` makes data/models.txt anew', [join(root, 'scripts', 'model-table.mjs')]),
    check('Tables', '`node scripts/readme.mjs --write` repairs it', [join(root, 'scripts', 'readme.mjs')]),
  ]);
  return results.every(Boolean) ? 0 : 1;
});

async function check(what, advice, nodeArguments) {
  const begin = Date.now();
  const result = await runProgram(process.execPath, nodeArguments, { cwd: root });
  if (result.code === 0) report(what, `in order, ${seconds(begin)}`);
  else process.stderr.write(`${result.output.trim()}\n  ✘ ${what.padEnd(9)}  not in order: ${advice}\n`);
  return result.code === 0;
}
