/** A2A's own TCK (scripts/a2a-tck.mjs), which comes only as a repository: tried where a folder with a checkout of it is given. */
import { join } from 'node:path';
import { runProgram } from './run-program.js';
import { MissingProgram, type Outcome, type Suite } from './suite.js';

const PROGRAM = join(__dirname, '..', '..', 'scripts', 'a2a-tck.mjs');
/** MAY has a test that fails by choice (docs/reference/protocols.md). */
const LEVELS = ['must', 'should'] as const;
const TIMEOUT_MS = 900_000;

export function a2aSuite(folder: string): Suite {
  return {
    name: 'A2A, TCK',
    client: 'a2a-tck 1.0-dev, over JSON-RPC',
    async run() {
      const outcomes: Outcome[] = [];
      for (const level of LEVELS) outcomes.push(...(await outcomesOf(folder, level)));
      return outcomes;
    },
  };
}

async function outcomesOf(folder: string, level: (typeof LEVELS)[number]): Promise<readonly Outcome[]> {
  const temporal = process.env['PERDURA_TEST_TEMPORAL'];
  const env: Record<string, string> = temporal === undefined ? {} : { PERDURA_TEST_TEMPORAL: temporal };
  const args = [PROGRAM, '--tck', folder, '--level', level];
  const { code, stdout, stderr } = await runProgram(process.execPath, args, { env, timeoutMs: TIMEOUT_MS });
  const output = `${stdout}${stderr}`;
  if (code !== 0 && code !== 1) throw new MissingProgram(output.trim().slice(-300));
  const [, passed = '0'] = /(\d+) passed/.exec(output) ?? [];
  const failed = [...stdout.matchAll(/^failed {2}([^:\n]+)(?:: (.*))?$/gm)].map(([, check = '', why = '']): Outcome => ({
    check,
    result: 'failed',
    why,
  }));
  if (failed.length > 0) return failed;
  const check = `${level.toUpperCase()}, ${passed} tests`;
  if (code === 0 && passed !== '0') return [{ check, result: 'passed' }];
  return [{ check, result: 'failed', why: output.slice(-500) }];
}
