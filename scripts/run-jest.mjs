/** One run of jest, and what came of it. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './prepare.mjs';
import { runProgram } from './programs.mjs';

const EXIT_MS = 20_000;

/** `tier`: see jest.config.cjs. Answers `{ code, results }`; `results` is jest's own JSON, or undefined when it wrote none. */
export async function runJest(tier, args, { env, longestMs }) {
  const folder = mkdtempSync(join(tmpdir(), 'perdura-test-'));
  try {
    const outputFile = join(folder, 'jest.json');
    const hanging = watchForHanging(outputFile, longestMs);
    const { code } = await runProgram(
      process.execPath,
      [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), '--json', '--passWithNoTests', `--outputFile=${outputFile}`, ...args],
      { cwd: root, env: { ...env, PERDURA_TEST_TIER: tier }, show: true, signal: hanging.signal },
    );
    hanging.end();
    return { code, results: readResults(outputFile) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Something left open keeps jest alive for ever after its last test: that is a failure, and must not be a wait. */
function watchForHanging(outputFile, longestMs) {
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
    else if (Date.now() - started > longestMs) kill(`the tests did not end within ${longestMs / 60_000} minutes`);
  }, 1000);
  return { signal: stop.signal, end: () => clearInterval(timer) };
}

function readResults(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
