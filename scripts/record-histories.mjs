/**
 * `node scripts/record-histories.mjs [name …]`: records anew what test/replay replays (all of it, or the named scenarios), on the
 * real stack. A history of a released version is not recorded anew: a change that it does not survive needs `patched`.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { runProgram } from './programs.mjs';
import { findRedisServer } from './redis-server.mjs';
import { report, run } from './report.mjs';

await run(async () => {
  await prepare();
  const { findTemporalBinary } = createRequire(import.meta.url)(join(root, 'dist', 'cli', 'services', 'temporal-binary.js'));
  const temporal = await findTemporalBinary((text) => report('Temporal', text));
  const redis = await findRedisServer();
  const inTest = (...path) => join(root, 'test', ...path);
  const result = await runProgram(
    process.execPath,
    ['--require', inTest('stores', 'register-swc.cjs'), inTest('replay', 'record.ts'), ...process.argv.slice(2)],
    { cwd: root, env: { ...process.env, PERDURA_TEST_TEMPORAL: temporal.path, PERDURA_TEST_REDIS: redis.path }, show: true },
  );
  return result.code;
});
