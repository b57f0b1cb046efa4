/** A worker in a process of its own: what it logs and what its metrics endpoint says of turns that it ran. */
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, type PerduraClient } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { lastToolResults } from '../support/provider-apis/api-request.js';
import { httpError } from '../support/provider-apis/faults.js';
import { startMessagesApi, type MessagesApi } from '../support/provider-apis/messages-api.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { freePort } from '../../src/testing/temporal-server.js';
import { waitFor } from '../support/wait-for.js';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.js';

const CANARY = `sk-ant-canary-${randomUUID()}`;
const USAGE = { input_tokens: 100, cache_creation_input_tokens: 0, cache_read_input_tokens: 40, output_tokens: 20 };

let dir: string;
let api: MessagesApi;
let worker: WorkerProcess;
let client: PerduraClient;
let port: number;
let turns = 0;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-telemetry-'));
  await mkdir(join(dir, 'agents', 'default'), { recursive: true });
  await writeFile(join(dir, 'agents', 'default', 'agent.json'), '{}');
  port = await freePort();
  api = await startMessagesApi({
    answer(request) {
      if (lastToolResults(request).length > 0) return { ...text('done'), usage: USAGE };
      const said = JSON.stringify(request.messages.at(-1)?.content);
      if (said.includes('unlucky') && turns++ === 0) return httpError(529, { message: `overloaded, said ${CANARY}` });
      if (said.includes('refused')) return httpError(401, { message: `invalid x-api-key: ${CANARY}` });
      return { ...callTool(said.includes('invented') ? (said.includes('key') ? CANARY : 'no_such_tool') : 'get_time'), usage: USAGE };
    },
  });
  const env = {
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: CANARY,
    PERDURA_TASK_QUEUE: `telemetry-${randomUUID()}`,
    PERDURA_LOG_LEVEL: 'info',
    PERDURA_METRICS_ADDRESS: `127.0.0.1:${port}`,
  };
  worker = startWorkerProcess({ env, cwd: dir });
  client = await createClient(loadConfig(env, dir));
  await worker.ready;
});

afterAll(async () => {
  await client?.close();
  await worker?.kill();
  await api?.close();
  await rm(dir, { recursive: true, force: true });
});

async function scrape(): Promise<string[]> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect(response.status).toBe(200);
  return (await response.text()).split('\n');
}

/** The sum of a counter over the series that have these labels. */
function sum(lines: readonly string[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  return lines
    .filter((line) => line.startsWith(`${name}{`) && Object.entries(labels).every(([key, value]) => line.includes(`${key}="${value}"`)))
    .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
}

function logged(conversation: string): Record<string, unknown>[] {
  return worker
    .log()
    .split('\n')
    .flatMap((line) => (line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line) as Record<string, unknown>] : []))
    .filter((line) => line['conversation'] === conversation);
}

test('a turn shows in the log with conversation, turn and attempt, and in the metrics without them', async () => {
  const id = `c-${randomUUID()}`;
  const before = await scrape();
  await client.send(id, 'what time is it, an invented tool aside?', { start: { model: 'anthropic/claude-sonnet-5-5' } });
  await client.send(id, 'what time is it?');
  const lines = await scrape();
  const grown = (name: string, labels?: Readonly<Record<string, string>>): number => sum(lines, name, labels) - sum(before, name, labels);

  const model = 'anthropic/claude-sonnet-5-5';
  expect(grown('perdura_model_answers_total', { model })).toBe(4);
  // The API counts what a cache had beside the input.
  expect(grown('perdura_tokens_total', { model, kind: 'input' })).toBe(400);
  expect(grown('perdura_tokens_total', { model, kind: 'cached' })).toBe(160);
  expect(grown('perdura_tokens_total', { model, kind: 'output' })).toBe(80);
  // 4 x (100 x $2 + 40 x $0.1 + 20 x $10) per million.
  expect(grown('perdura_cost_microdollars_total', { model })).toBe(4 * 404);
  expect(grown('perdura_tool_calls_total', { tool: 'get_time', outcome: 'ok' })).toBe(1);
  expect(grown('perdura_tool_calls_total', { tool: 'unknown', outcome: 'rejected' })).toBe(1);
  // Temporal's own are there too; of the conversation there is nothing.
  expect(lines.some((line) => line.startsWith('temporal_'))).toBe(true);
  for (const secret of [id, 'no_such_tool', CANARY]) expect(lines.filter((line) => line.includes(secret))).toEqual([]);

  const answers = await waitFor(
    () => logged(id).filter(({ msg }) => msg === 'model answered'),
    ({ length }) => length === 4,
  );
  expect(answers.map(({ turn }) => turn)).toEqual(['turn_0001', 'turn_0001', 'turn_0002', 'turn_0002']);
  expect(answers[0]).toMatchObject({
    level: 'info',
    conversation: id,
    turn: 'turn_0001',
    attempt: 1,
    activityType: 'model-step',
    outputTokens: 20,
  });
  expect(logged(id).filter(({ msg }) => msg === 'tool finished')).toMatchObject([
    { turn: 'turn_0001', tool: 'no_such_tool', outcome: 'rejected' },
    { turn: 'turn_0002', tool: 'get_time', outcome: 'ok' },
  ]);
});

test('a failing model is counted by what comes next, and the key that its message repeats is not logged', async () => {
  const id = `c-${randomUUID()}`;
  await client.send(id, 'be unlucky', { start: {} });
  const refused = await client.send(id, 'be refused');
  expect(refused.stopReason).toBe('failed');
  const lines = await scrape();
  expect(sum(lines, 'perdura_model_failures_total', { kind: 'overloaded', next: 'retry' })).toBe(1);
  expect(sum(lines, 'perdura_model_failures_total', { kind: 'auth', next: 'stop' })).toBe(1);
  expect(sum(lines, 'perdura_model_retries_total')).toBe(1);
  const failures = await waitFor(
    () => logged(id).filter(({ msg }) => msg === 'Activity failed' || msg === 'model failed'),
    ({ length }) => length === 2,
  );
  expect(failures).toMatchObject([
    { level: 'warn', turn: 'turn_0001', attempt: 1, msg: 'Activity failed' },
    // No other attempt would help: the step completes and says so.
    { level: 'warn', turn: 'turn_0002', attempt: 1, msg: 'model failed', type: 'auth' },
  ]);
  expect(worker.log()).not.toContain(CANARY);
});

test('a key that comes by a way that nobody thought of is not logged either', async () => {
  const id = `c-${randomUUID()}`;
  await client.send(id, 'an invented tool, by the name of the key', { start: {} });
  const finished = await waitFor(
    () => logged(id).filter(({ msg }) => msg === 'tool finished'),
    ({ length }) => length === 1,
  );
  expect(finished).toMatchObject([{ tool: '[redacted]', outcome: 'rejected' }]);
  expect(worker.log()).not.toContain(CANARY);
});

test('an address that is taken is said by the name of its setting', async () => {
  const second = startWorkerProcess({
    env: { TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '', PERDURA_METRICS_ADDRESS: `127.0.0.1:${port}` },
    cwd: dir,
  });
  expect(await second.ended).toMatchObject({ code: 2 });
  expect(second.log()).toMatch(new RegExp(`PERDURA_METRICS_ADDRESS is 127.0.0.1:${port}, where no metrics can be served: .`));
});
