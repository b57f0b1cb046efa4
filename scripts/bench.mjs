/**
 * `npm run bench`: the numbers of design section 8, as ratios to bare workflows, on servers that it starts itself on free ports.
 * Arguments after `--`: names of rows, `--quick`, `-o json`, `--compare FILE`. Compiled without type checks, which are `npm run check`'s.
 */
import { cp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { withLock } from './lock.mjs';
import { prepare, root } from './prepare.mjs';
import { runProgram } from './programs.mjs';
import { findRedisServer } from './redis-server.mjs';
import { report, run, seconds } from './report.mjs';

const compiled = join(root, '.perdura', 'bench');

await run(async () => {
  await prepare({ build: false });
  await withLock(join(root, '.perdura', 'bench.lock'), compile);
  const require = createRequire(import.meta.url);
  const { findTemporalBinary } = require(join(compiled, 'src', 'cli', 'services', 'temporal-binary.js'));
  const temporal = await findTemporalBinary((text) => report('Temporal', text));
  report('Temporal', `${temporal.path} (${temporal.reason})`);
  const redis = await findRedisServer();
  report('Redis', `${redis.path} (${redis.reason})`);
  process.env.PERDURA_TEST_TEMPORAL = temporal.path;
  process.env.PERDURA_TEST_REDIS = redis.path;
  const { main } = require(join(compiled, 'bench', 'main.js'));
  return await main(process.argv.slice(2));
});

async function compile() {
  const begin = Date.now();
  const result = await runProgram(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.bench.json'], {
    cwd: root,
  });
  if (result.code !== 0) throw Object.assign(new Error(`${result.output.trim()}\n\nThe bench does not compile.`), { exitCode: 1 });
  // What the compiled product reads beside its code.
  await cp(join(root, 'data'), join(compiled, 'data'), { recursive: true });
  report('Bench', `compiled in ${seconds(begin)}`);
}
