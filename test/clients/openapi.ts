/**
 * The document of the native API, read by other people's programs: Schemathesis sends what it says can be sent, and what it says cannot;
 * a client is made of it, and used.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environment } from './python.js';
import { runProgram } from './run-program.js';
import type { ClientPlace, Outcome, Suite } from './suite.js';

const SCHEMATHESIS = 'schemathesis==4.32.5';
const GENERATOR = 'openapi-python-client==0.29.1';
/** Seconds, of the generated requests. */
const MAX_S = Number(process.env['PERDURA_SCHEMATHESIS_S'] ?? 900);
const SEED = process.env['PERDURA_SEED'] ?? '39';
/** Bytes by which the gateway may have grown, once it is warm: what is kept of each request would be more. */
const MAX_GROWTH = 150 * 1024 * 1024;

export const OPENAPI_SUITES: readonly Suite[] = [
  { name: 'OpenAPI, Schemathesis', client: SCHEMATHESIS.replace('==', ' '), run: schemathesis },
  { name: 'OpenAPI, generated client', client: GENERATOR.replace('==', ' '), run: generatedClient },
];

// A valid request may come at the wrong moment, or name what there is not; what a file is, only its content says.
const CONFIG = `
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 413, 415, 429, 501, 503]
[checks.missing_required_header]
expected-statuses = [401, 429]
`;
/** Thirty wrong tokens a minute are answered with 401, and all others with 429: see \`limits\` in docs/reference/protocols.md. */
const APART = 'ignored_auth';

async function schemathesis(place: ClientPlace): Promise<readonly Outcome[]> {
  const python = await environment(place.cacheDir, [SCHEMATHESIS]);
  const dir = await mkdtemp(join(tmpdir(), 'perdura-openapi-'));
  try {
    await writeFile(join(dir, 'schemathesis.toml'), CONFIG);
    const run = (seconds: number) =>
      runProgram(
        join(python, '..', 'schemathesis'),
        [
          ...['--config-file', join(dir, 'schemathesis.toml'), 'run', `${place.url}/openapi.json`],
          ...['-H', `Authorization: Bearer ${place.token}`, '--exclude-checks', APART, '--exclude-path-regex', 'events$'],
          ...['--phases', 'examples,coverage,fuzzing,stateful', '--seed', SEED, '--max-time', `${seconds}`, '--request-timeout', '90'],
          ...['--continue-on-failure', '--no-color', '--workers', '4', '--suppress-health-check', 'all'],
        ],
        { cwd: dir, timeoutMs: (seconds + 300) * 1000 },
      );
    await run(Math.ceil(MAX_S / 10));
    const before = await place.memory();
    const { stdout } = await run(MAX_S);
    const grown = (await place.memory()) - before;
    const [, sent = '0'] = /(\d+) generated/.exec(stdout) ?? [];
    const failures = [...stdout.matchAll(/^ +❌ (ST\d+ [^\n]+: \d+)$/gm)].map(([, what = '']) => what);
    return [
      failures.length === 0 && sent !== '0'
        ? { check: `${sent} generated requests: answered as described, none with 500`, result: 'passed' }
        : { check: 'generated requests', result: 'failed', why: `${failures.join(', ')}\n${stdout.slice(-8_000)}` },
      grown < MAX_GROWTH
        ? { check: 'its memory stays as it was', result: 'passed' }
        : { check: 'its memory', result: 'failed', why: `grew by ${grown} bytes` },
      { check: APART, result: 'apart', why: 'wrong tokens are limited: from the thirtieth in a minute on, all are answered with 429' },
    ];
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const PROGRAM = `
import os
from perdura_client import AuthenticatedClient
from perdura_client.api.conversations import start_conversation, get_conversation
from perdura_client.api.turns import send_message, get_turn
from perdura_client.models import Message, Start, StartConversationBody

client = AuthenticatedClient(base_url=os.environ["PERDURA_URL"], token=os.environ["PERDURA_TOKEN"])
begun = start_conversation.sync(client=client, body=StartConversationBody(title="By a generated client"))
result = send_message.sync(id=begun.id, client=client, body=Message(text="hello"), wait=60)
print(result.text)
print(get_turn.sync(id=begun.id, turn=result.turn_id, client=client).stop_reason)
print(get_conversation.sync(id=begun.id, client=client).title)
print(get_turn.sync_detailed(id=begun.id, turn="turn_0009", client=client).status_code.value)
`;

async function generatedClient(place: ClientPlace): Promise<readonly Outcome[]> {
  const python = await environment(place.cacheDir, [GENERATOR]);
  const dir = await mkdtemp(join(tmpdir(), 'perdura-openapi-'));
  const check = 'a conversation by the client that it makes';
  try {
    const made = await runProgram(
      join(python, '..', 'openapi-python-client'),
      ['generate', '--url', `${place.url}/openapi.json`, '--output-path', join(dir, 'made'), '--meta', 'none'],
      { cwd: dir },
    );
    // A file may be of any type, for which it makes no parser.
    const missing = [...`${made.stdout}${made.stderr}`.matchAll(/^(?:Unable to process|WARNING parsing) (.*)$/gm)].map(
      ([, what = '']) => what,
    );
    const unforeseen = missing.filter((what) => !what.startsWith('GET /v1/attachments/{ref}/content'));
    if (made.code !== 0 || unforeseen.length > 0) return [{ check, result: 'failed', why: `${made.stdout}${made.stderr}`.slice(-2_000) }];
    await runProgram('mv', [join(dir, 'made'), join(dir, 'perdura_client')]);
    const env = { PERDURA_URL: place.url, PERDURA_TOKEN: place.token, PYTHONPATH: dir, PYTHONDONTWRITEBYTECODE: '1' };
    const { stdout, stderr } = await runProgram(python, ['-c', PROGRAM], { cwd: dir, env });
    const isRight = /^\S.*\nend\nBy a generated client\n404\n$/.test(stdout);
    return [isRight ? { check, result: 'passed' } : { check, result: 'failed', why: `${stdout}${stderr}`.slice(-2_000) }];
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Bytes that a process holds, on Linux; 0 elsewhere. */
export async function heldBy(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}
