/**
 * The tests that need no account, against a real Temporal server and a real redis-server that they start themselves on free ports.
 * `npm test`: the first tier, what a change can break. `--slow` (`npm run test:slow`): the second. `--all` (`npm run test:all`): both.
 * `--changed` (`npm run test:changed`): of the first tier the files of the rooms that were changed. Other arguments go to jest. Closes with
 * the line `N passed, N failed`.
 *
 * In the first tier nothing is tried twice. A file of the second that fails is run once more, alone, at the end: see unstable.mjs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { changedPaths, filesFor } from './changed-tests.mjs';
import { findChromium } from './chromium.mjs';
import { prepare, root } from './prepare.mjs';
import { findRedisServer } from './redis-server.mjs';
import { report, run, seconds } from './report.mjs';
import { runJest } from './run-jest.mjs';
import { findClusterPrograms } from './temporal-cluster.mjs';
import { failedTests, judge, MAX_RERUN_FILES } from './unstable.mjs';

/** Of a tier, with what is run once more; that has some minutes in any case. */
const LONGEST_MS = (process.env.PERDURA_LONG === '1' ? 240 : 66) * 60_000;
const RERUN_MS = 10 * 60_000;
const UNSTABLE = join(root, 'test', 'unstable.json');

await run(async () => {
  const given = process.argv.slice(2);
  const has = (flag) => given.includes(flag);
  const args = given.filter((one) => !['--slow', '--all', '--changed'].includes(one));
  if (has('--changed')) {
    const paths = changedPaths(root);
    if (paths === undefined)
      throw Object.assign(new Error('Git knows no branch main here to compare with: name files instead.'), { exitCode: 1 });
    const { files, why } = filesFor(paths, root, { all: has('--all') });
    for (const line of why) report('Changed', line);
    if (files.length === 0) return 0;
    args.push('--runTestsByPath', ...files);
  }
  await prepare();
  const env = testEnvironment(await findServers());
  const begin = Date.now();
  // A file that is named is run, whatever its tier.
  const namesSlow = args.some((one) => one.includes('.slow.'));
  const tiers = namesSlow ? ['any'] : has('--all') ? ['first', 'slow'] : [has('--slow') ? 'slow' : 'first'];
  const ended = [];
  for (const tier of tiers) ended.push(await runTier(tier, args, env));
  return close(ended, begin);
});

async function findServers() {
  const { findTemporalBinary } = createRequire(import.meta.url)(join(root, 'dist', 'cli', 'services', 'temporal-binary.js'));
  const temporal = await findTemporalBinary((text) => report('Temporal', text));
  report('Temporal', `${temporal.path} (${temporal.reason})`);
  const redis = await findRedisServer();
  report('Redis', `${redis.path} (${redis.reason})`);
  const cluster = process.env.PERDURA_CLUSTER === '1' ? await findClusterPrograms(temporal.path) : {};
  const chromium = await findChromium();
  if (chromium !== undefined) report('Browser', `${chromium.path} (${chromium.reason})`);
  return {
    PERDURA_TEST_TEMPORAL: temporal.path,
    PERDURA_TEST_REDIS: redis.path,
    ...cluster,
    ...(chromium !== undefined && { PERDURA_TEST_CHROMIUM: chromium.path }),
    PERDURA_TEST_BUNDLE: join(root, 'dist', 'workflow-bundle.js'),
  };
}

/** A developer's own server, key and settings are no part of a test: tests say what they need. What asks for a form of a test is. */
function testEnvironment(extra) {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      ['PERDURA_LONG', 'PERDURA_CLUSTER', 'PERDURA_SEED', 'PERDURA_SCREENSHOTS', 'PERDURA_TEST_ENGINE'].includes(name) ||
      !/^(TEMPORAL_|PERDURA_|REDIS_URL$|ANTHROPIC_|OPENAI_|GEMINI_|OLLAMA_)/.test(name),
  );
  return { ...Object.fromEntries(kept), ...extra };
}

/** A file that could not even be loaded counts as one failed test. */
async function runTier(tier, args, env) {
  const until = Date.now() + LONGEST_MS;
  const { code, results } = await runJest(tier, args, { env, longestMs: LONGEST_MS });
  if (results === undefined) process.stderr.write(`\njest ended with code ${code} before it wrote results.\n`);
  const failed = failedTests(results, root);
  const files = [...new Set(failed.map(({ file }) => file))];
  const counts = { passed: results?.numPassedTests ?? 0, skipped: (results?.numPendingTests ?? 0) + (results?.numTodoTests ?? 0) };
  const withoutBrowser = testsWithoutBrowser(results);
  if (tier !== 'slow' || files.length === 0 || files.length > MAX_RERUN_FILES)
    return { ...counts, red: failed, unstable: [], withoutBrowser, code: failed.length > 0 || results === undefined ? 1 : code };

  process.stderr.write(`\n${files.length} failed, and are run once more, alone:\n${files.map((file) => `  ${file}\n`).join('')}`);
  const longestMs = Math.max(RERUN_MS, until - Date.now());
  const rerun = await runJest(tier, ['--runInBand', '--runTestsByPath', ...files], { env, longestMs });
  const again = rerun.results === undefined ? failed : failedTests(rerun.results, root);
  const { red, unstable } = judge({ failed, again, known: JSON.parse(readFileSync(UNSTABLE, 'utf8')) });
  return { ...counts, passed: counts.passed + unstable.length, red, unstable, withoutBrowser, code: 0 };
}

/** Tests of the page that were skipped for want of a browser. */
function testsWithoutBrowser(results) {
  return (results?.testResults ?? [])
    .filter(({ name }) => /[\\/]test[\\/]page[\\/]/.test(name))
    .flatMap(({ assertionResults }) => assertionResults.filter(({ status }) => status === 'pending').map(({ fullName }) => fullName));
}

/** No test at all is a failure too, and so are, in continuous integration, tests that were skipped for want of a browser. */
function close(tiers, begin) {
  const sum = (count) => tiers.reduce((total, tier) => total + count(tier), 0);
  const [passed, failed, skipped] = [sum((tier) => tier.passed), sum((tier) => tier.red.length), sum((tier) => tier.skipped)];
  const [unstable, withoutBrowser] = [tiers.flatMap((tier) => tier.unstable), tiers.flatMap((tier) => tier.withoutBrowser)];
  for (const { file, test } of tiers.flatMap((tier) => tier.red)) process.stderr.write(`red: ${file}, ${test}\n`);
  for (const test of withoutBrowser) process.stderr.write(`skipped, for want of a browser: ${test}\n`);
  if (unstable.length > 0) {
    for (const { file, test } of unstable) process.stderr.write(`unstable: ${file}, ${test}\n`);
    const known = JSON.parse(readFileSync(UNSTABLE, 'utf8'));
    writeFileSync(UNSTABLE, `${JSON.stringify([...known, ...unstable], null, 2)}\n`);
    process.stderr.write('test/unstable.json has them now; one that is unstable again is red: fix it, or delete it.\n');
  }
  if (passed + failed === 0) process.stderr.write('\nNo test ran.\n');
  process.stdout.write(`\n${seconds(begin)}, ${unstable.length} unstable\n`);
  process.stdout.write(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
  const ended = tiers.find(({ code }) => code !== 0)?.code ?? 0;
  if (process.env.CI === 'true' && withoutBrowser.length > 0) return Math.max(ended, 1);
  return failed > 0 || passed === 0 ? Math.max(ended, 1) : ended;
}
