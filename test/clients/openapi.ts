/** The document of the native API, read by Schemathesis: it sends what the document says can be sent, and what it says cannot. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NOT_IN_SCHEMA } from '../support/api-description.js';
import { environment, onPypi } from './python.js';
import { runProgram } from './run-program.js';
import type { ClientPlace, Outcome, Suite } from './suite.js';

const SCHEMATHESIS = 'schemathesis==4.32.5';
/** Seconds, of the generated requests; at full length, on a machine that does nothing else, they are about 20,000. */
const MAX_S = Number(process.env['PERDURA_SCHEMATHESIS_S'] ?? 900);
const SEED = process.env['PERDURA_SEED'] ?? '39';
/** Bytes by which the gateway may have grown, once it is warm: what is kept of each request would be more. */
const MAX_GROWTH = 150 * 1024 * 1024;

export const OPENAPI_SUITES: readonly Suite[] = [{ name: 'OpenAPI, Schemathesis', client: onPypi(SCHEMATHESIS), run: schemathesis }];

// A valid request may come at the wrong moment, or too slowly, or name what there is not; what a file is, only its content says.
const CONFIG = `
hooks = "hooks.py"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 408, 409, 413, 415, 429, 501, 503]
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 501, 503]
`;
/**
 * Who asks to be waited for an hour is, and who says nothing for a minute: a turn that steps, or that asks a person, has no end by then, and
 * an event that is dispatched to it no result.
 */
const HOOKS = `
import schemathesis

@schemathesis.hook
def before_call(context, case, kwargs):
    if "wait" not in case.operation.query:
        return
    wait = str((case.query or {}).get("wait", 60))
    try:
        is_long = 0 < float(wait) <= 3600
    except ValueError:
        is_long = wait == "true"
    if is_long:
        case.query = {**(case.query or {}), "wait": "false" if wait == "true" else 0}
`;
/** Both send wrong tokens, of which thirty a minute are answered with 401, and all others with 429. */
const APART = ['ignored_auth', 'missing_required_header'];

/** Findings that are none, by their kind and the words of the answer. */
const NONE: readonly (readonly [RegExp, RegExp])[] = [
  [/^ST202 /, NOT_IN_SCHEMA],
  // Each body of ours is an object: what is none was made to be refused.
  [/^ST202 /, /expected object, received/],
  // The conversation that was begun is there: a turn that the request names is not in it, or an earlier request has closed it.
  [/^ST302 /, /has no turn_\d+|nothing was said in it|no such conversation is running/],
];

async function schemathesis(place: ClientPlace): Promise<readonly Outcome[]> {
  const python = await environment(place.cacheDir, [SCHEMATHESIS]);
  const dir = await mkdtemp(join(tmpdir(), 'perdura-openapi-'));
  try {
    await writeFile(join(dir, 'schemathesis.toml'), CONFIG);
    await writeFile(join(dir, 'hooks.py'), HOOKS);
    const run = (seconds: number) =>
      runProgram(
        join(python, '..', 'schemathesis'),
        [
          ...['--config-file', join(dir, 'schemathesis.toml'), 'run', `${place.url}/openapi.json`],
          ...['-H', `Authorization: Bearer ${place.token}`, '--exclude-checks', APART.join(), '--exclude-path-regex', 'events$'],
          ...['--phases', 'examples,coverage,fuzzing,stateful', '--seed', SEED, '--max-time', `${seconds}`, '--request-timeout', '180'],
          ...['--continue-on-failure', '--no-shrink', '--no-color', '--workers', '16', '--suppress-health-check', 'all'],
        ],
        { cwd: dir, timeoutMs: (seconds + 300) * 1000 },
      );
    await run(Math.ceil(MAX_S / 10));
    const held = [await place.memory()];
    const middle = setTimeout(() => void place.memory().then((bytes) => held.push(bytes)), MAX_S * 500);
    const { stdout } = await run(MAX_S).finally(() => clearTimeout(middle));
    held.push(await place.memory());
    const grown = (held.at(-1) ?? 0) - (held[0] ?? 0);
    const memory = `its memory at the beginning, in the middle and at the end: ${held.map((bytes) => Math.round(bytes / 2 ** 20)).join(', ')} MiB`;
    const [, sent = '0'] = /(\d+) generated/.exec(stdout) ?? [];
    const found = findings(stdout);
    return [
      found.length === 0 && sent !== '0'
        ? { check: `${sent} generated requests: answered as described, none with 500`, result: 'passed' }
        : { check: `${sent} generated requests`, result: 'failed', why: `${found.join('\n')}\n${stdout.slice(-2_000)}` },
      grown < MAX_GROWTH ? { check: memory, result: 'passed' } : { check: memory, result: 'failed', why: `it grew by ${grown} bytes` },
      ...APART.map((check): Outcome => ({
        ...{ check, result: 'apart' },
        why: 'wrong tokens are limited: from the thirtieth in a minute on, all are answered with 429 (test/gateway/described.test.ts sends fewer)',
      })),
    ];
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** The failed test cases of its report that are ours: what was found, the answer, and the request. */
function findings(report: string): readonly string[] {
  const failures = report.split(/^=+ FAILURES =+$/m)[1]?.split(/^=+ (?:WARNINGS|SUMMARY) =+$/m)[0] ?? '';
  return failures.split(/^\d+\. Test Case ID: /m).flatMap((failure) => {
    const kinds = [...failure.matchAll(/^- (ST\d+ .*)$/gm)].map(([, kind = '']) => kind);
    const isOurs = kinds.some((kind) => !NONE.some(([which, words]) => which.test(kind) && words.test(failure)));
    return isOurs ? [failure.slice(0, 1_500)] : [];
  });
}
