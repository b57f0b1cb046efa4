/**
 * `node scripts/record-histories.mjs [name …]`: records anew what test/replay replays (all of it, or the named scenarios), on the
 * real stack, from the sources as they are; it needs what `npm test` has prepared. A history of a released version is not
 * recorded anew: a change that it does not survive needs `patched`.
 */
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from './programs.mjs';
import { findRedisServer } from './redis-server.mjs';
import { run } from './report.mjs';
import { temporalProgram } from './temporal-program.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const inTest = (...path) => join(root, 'test', ...path);

await run(async () => {
  await findRedisServer();
  const result = await runProgram(
    process.execPath,
    ['--require', inTest('stores', 'register-swc.cjs'), inTest('replay', 'record.ts'), ...process.argv.slice(2)],
    { cwd: root, env: { ...process.env, ...(await temporalProgram()) }, show: true },
  );
  return result.code;
});
