/**
 * `npm test`: every test that needs no account, against a real Temporal server and a real redis-server that the tests start
 * themselves on free ports. Arguments after `--` go to jest. Closes with the line `N passed, N failed`.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { runProgram } from './programs.mjs';
import { findChromium } from './chromium.mjs';
import { findRedisServer } from './redis-server.mjs';
import { report, run } from './report.mjs';

const EXIT_MS = 20_000;
const LONGEST_MS = (process.env.PERDURA_LONG === '1' ? 240 : 45) * 60_000;

await run(async () => {
  await prepare();
  const { findTemporalBinary } = createRequire(import.meta.url)(join(root, 'dist', 'cli', 'services', 'temporal-binary.js'));
  const temporal = await findTemporalBinary((text) => report('Temporal', text));
  report('Temporal', `${temporal.path} (${temporal.reason})`);
  const redis = await findRedisServer();
  report('Redis', `${redis.path} (${redis.reason})`);
  const chromium = await findChromium();
  if (chromium !== undefined) report('Browser', `${chromium.path} (${chromium.reason})`);

  const folder = mkdtempSync(join(tmpdir(), 'perdura-test-'));
  try {
    const outputFile = join(folder, 'jest.json');
    const hanging = watchForHanging(outputFile);
    const result = await runProgram(
      process.execPath,
      [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--json', `--outputFile=${outputFile}`, ...process.argv.slice(2)],
      {
        cwd: root,
        env: testEnvironment({
          PERDURA_TEST_TEMPORAL: temporal.path,
          PERDURA_TEST_REDIS: redis.path,
          ...(chromium !== undefined && { PERDURA_TEST_CHROMIUM: chromium.path }),
          PERDURA_TEST_BUNDLE: join(root, 'dist', 'workflow-bundle.js'),
        }),
        show: true,
        signal: hanging.signal,
      },
    );
    hanging.end();
    return close(readResults(outputFile), result.code);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Something left open keeps jest alive for ever after its last test: that is a failure, and must not be a wait. */
function watchForHanging(outputFile) {
  const stop = new AbortController();
  const started = Date.now();
  let resultsAt;
  const timer = setInterval(() => {
    if (resultsAt === undefined && existsSync(outputFile)) resultsAt = Date.now();
    const kill = (why) => {
      process.stderr.write(`\n${why}; killed.\n`);
      stop.abort();
    };
    if (resultsAt !== undefined && Date.now() - resultsAt > EXIT_MS) kill(`jest did not exit ${EXIT_MS / 1000} s after its last test`);
    else if (Date.now() - started > LONGEST_MS) kill(`the tests did not end within ${LONGEST_MS / 60_000} minutes`);
  }, 1000);
  return { signal: stop.signal, end: () => clearInterval(timer) };
}

/** A developer's own server, key and settings are no part of a test: tests say what they need. What asks for a form of a test is. */
function testEnvironment(extra) {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      ['PERDURA_LONG', 'PERDURA_SEED', 'PERDURA_SCREENSHOTS', 'PERDURA_TEST_ENGINE'].includes(name) ||
      !/^(TEMPORAL_|PERDURA_|REDIS_URL$|ANTHROPIC_|OPENAI_|GEMINI_|OLLAMA_)/.test(name),
  );
  return { ...Object.fromEntries(kept), ...extra };
}

function readResults(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * A file that could not even be loaded counts as one failed test; no test at all is a failure too, and so are, in continuous integration,
 * tests of the page that were skipped for want of a browser.
 */
function close(results, code) {
  const passed = results?.numPassedTests ?? 0;
  const failed = (results?.numFailedTests ?? 0) + (results?.numRuntimeErrorTestSuites ?? 0);
  const skipped = (results?.numPendingTests ?? 0) + (results?.numTodoTests ?? 0);
  if (results === undefined) process.stderr.write(`\njest ended with code ${code} before it wrote results.\n`);
  else if (passed + failed === 0) process.stderr.write('\nNo test ran.\n');
  process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
  const unseen = (results?.testResults ?? [])
    .filter(({ name }) => /[\\/]test[\\/]page[\\/]/.test(name))
    .flatMap(({ assertionResults }) => assertionResults.filter(({ status }) => status === 'pending'));
  for (const { fullName } of unseen) process.stdout.write(`skipped, for want of a browser: ${fullName}\n`);
  if (process.env.CI === 'true' && unseen.length > 0) return Math.max(code, 1);
  return code !== 0 || failed > 0 || passed === 0 ? Math.max(code, 1) : 0;
}
