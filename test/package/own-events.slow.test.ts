/**
 * Events, reducers, a compactor and an observer of somebody else's project, with our tarball as all it has of us; and what its worker
 * tells of it: the audit file, and OpenTelemetry to a receiver of its own.
 */
import { randomUUID } from 'node:crypto';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createClient, type PerduraClient } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { lastToolResults, textOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { startMessagesApi, type MessagesApi } from '../support/provider-apis/messages-api.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { startOtlpReceiver, type OtlpReceiver } from '../support/otlp-receiver.js';
import { dieWithUs } from '../support/reaper.js';
import { waitFor } from '../support/wait-for.js';
import { addPackage, openProject, type Project } from './linked-package.js';

const run = promisify(execFile);
const SECRET = `sk-ant-canary-${randomUUID()}`;
const OTLP_KEY = `otlp-${randomUUID()}`;
const AFTER_ALL = 'The harbour is closed.';

let project: Project;
let api: MessagesApi;
let otlp: OtlpReceiver;
let client: PerduraClient;
let env: Record<string, string>;
let worker: { child: ChildProcess; log: () => string };
const requests: ApiRequest[] = [];

beforeAll(async () => {
  project = await openProject('own-events');
  addPackage(project.dir, '@opentelemetry/sdk-node');
  otlp = await startOtlpReceiver();
  api = await startMessagesApi({
    answer(request) {
      requests.push(request);
      if (lastToolResults(request).length > 0) return text('It is late.');
      return said(request).at(-1)?.includes('What time') ? callTool('get_time') : text(AFTER_ALL);
    },
  });
  env = {
    PATH: process.env['PATH'] ?? '',
    HOME: project.dir,
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: SECRET,
    PERDURA_TRUST: '1',
    PERDURA_TASK_QUEUE: `own-events-${randomUUID()}`,
    PERDURA_AUDIT_FILE: 'audit/events.jsonl',
    OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_HEADERS: `x-otlp-key=${OTLP_KEY}`,
    OTEL_METRICS_EXPORTER: 'otlp',
    OTEL_METRIC_EXPORT_INTERVAL: '500',
    OTEL_METRIC_EXPORT_TIMEOUT: '400',
    OTEL_BSP_SCHEDULE_DELAY: '200',
  };
  writeFileSync(
    join(project.dir, 'agents', 'desk', 'agent.json'),
    JSON.stringify({ tools: ['get_time'], context: { compactor: 'LedgerCompactor' } }),
  );
  worker = await startWorker();
  client = await createClient(loadConfig(env, project.dir));
});

afterAll(async () => {
  await client?.close();
  worker?.child.kill('SIGKILL');
  await api?.close();
  await otlp?.close();
  project?.remove();
});

async function startWorker(more: Record<string, string> = {}): Promise<typeof worker> {
  const child = spawn(process.execPath, [join(project.perdura, 'bin', 'perdura'), 'worker'], {
    cwd: project.dir,
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.once('exit', dieWithUs(child.pid ?? 0));
  let log = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (heard: string) => {
        log += heard;
        if (log.includes('takes work from task queue')) resolve();
      });
    child.once('close', (code) => reject(new Error(`the worker ended with ${code}:\n${log}`)));
  });
  return { child, log: () => log };
}

function said(request: ApiRequest): string[] {
  return request.messages.map(({ content }) => textOf(content));
}

async function perdura(...args: string[]): Promise<{ stdout: string; stderr: string; code: number }> {
  const options = { cwd: project.dir, env, timeout: 240_000 };
  return run(process.execPath, [join(project.perdura, 'bin', 'perdura'), ...args], options).then(
    (done) => ({ ...done, code: 0 }),
    (error: { stdout: string; stderr: string; code: number }) => error,
  );
}

async function open(): Promise<string> {
  const id = `own-events-${randomUUID().slice(0, 18)}`;
  await client.start(id, { agent: 'desk' });
  return id;
}

/** What the model is shown of our chunks in the next turn, in order. */
async function shown(id: string): Promise<string[]> {
  await client.send(id, `look, ${id}`);
  const request = requests.filter((one) => said(one).some((line) => line.includes(id))).at(-1);
  return (request ? said(request) : []).flatMap((line) => line.match(/\[TICKET[_A-Z]*\][^\n]*/g) ?? []);
}

const ticket = (id: number, title: string, state?: string) => ({ id, title, ...(state === undefined ? {} : { state }) });

test('ADD, UPDATE, DELETE and BATCH_REPLACE show in what the model is sent', async () => {
  const id = await open();
  await client.dispatch(id, { type: 'ticket.opened', payload: ticket(1, 'no paper') });
  await client.dispatch(id, { type: 'ticket.opened', payload: ticket(2, 'on fire') });
  expect(await shown(id)).toEqual(['[TICKET] Ticket 1: no paper (open)', '[TICKET] Ticket 2: on fire (open)']);
  await client.dispatch(id, { type: 'ticket.changed', payload: ticket(2, 'on fire', 'extinguished') });
  expect(await shown(id)).toEqual(['[TICKET] Ticket 1: no paper (open)', '[TICKET] Ticket 2: on fire (extinguished)']);
  await client.dispatch(id, { type: 'ticket.viewed' });
  const before = await client.status(id);
  expect(await shown(id)).toHaveLength(2);
  await client.dispatch(id, { type: 'ticket.closed' });
  expect(await shown(id)).toEqual(['[TICKET] Ticket 1: no paper (open)']);
  // Who waits is answered with what the reducer made of it.
  const { result } = await client.dispatch(id, { type: 'tickets.summed-up', payload: 'two were there' }, { wait: true });
  expect(result).toMatchObject({ kind: 'reduced', addedChunks: [expect.any(String)], removedChunkIds: [expect.any(String)] });
  expect(await shown(id)).toEqual(['[TICKET_SUMMARY] two were there']);
  // A new epoch, as a compaction begins one.
  expect((await client.status(id)).epoch).toBe(before.epoch + 1);
});

test('an event nobody reduces, and one whose reducer throws, are counted and named; the same id twice is one event', async () => {
  const id = await open();
  const dispatched = await perdura(
    ...['debug', 'dispatch'],
    id,
    'ticket.opened',
    '{"id": 9, "title": "from the shell"}',
    '--event-id',
    'e-1',
    '-o',
    'json',
  );
  expect(JSON.parse(dispatched.stdout)).toEqual({ conversation: id, id: 'e-1', type: 'ticket.opened', position: 0 });
  await waitFor(
    () => client.status(id),
    ({ appEvents }) => appEvents?.chunks === 1,
  );
  // Reduced long ago, and said again by another client.
  await client.dispatch(id, { id: 'e-1', type: 'ticket.opened', payload: ticket(9, 'again') }).catch(() => undefined);
  await perdura('debug', 'dispatch', id, 'ticket.unheard-of');
  await perdura('debug', 'dispatch', id, 'ticket.broken', '1');
  expect(await shown(id)).toEqual(['[TICKET] Ticket 9: from the shell (open)']);
  expect((await client.status(id)).appEvents).toMatchObject({
    chunks: 1,
    unreduced: { count: 1, types: ['ticket.unheard-of'] },
    parkedCount: 1,
    parked: [{ type: 'ticket.broken', error: 'Error: this reducer has a mistake' }],
  });
  const inspected = await perdura('debug', 'inspect', id);
  expect(inspected.stdout).toContain('1 without a reducer: ticket.unheard-of');
  expect(inspected.stdout).toContain('this reducer has a mistake');
  expect((await perdura('debug', 'dispatch', id, 'ticket.opened', '{')).stderr).toContain('the payload is not JSON');
  expect(await perdura('debug', 'dispatch', id, '!')).toMatchObject({ code: 2, stderr: expect.stringContaining('event.type must match') });
});

test('chunks that the store has lost come back from history, with the reducers of one’s own', async () => {
  const id = await open();
  await client.dispatch(id, { type: 'ticket.opened', payload: ticket(4, 'lost and found') });
  expect(await shown(id)).toEqual(['[TICKET] Ticket 4: lost and found (open)']);
  rmSync(join(project.dir, 'memory'), { recursive: true, force: true });
  const healed = await perdura('admin', 'heal', id, '-o', 'json');
  expect(healed.stderr).not.toContain('cannot be replayed');
  expect(JSON.parse(healed.stdout)).toMatchObject({ complete: true, problems: [] });
  expect(await shown(id)).toEqual(['[TICKET] Ticket 4: lost and found (open)']);
  expect(JSON.stringify(await client.history(id))).toContain('[TICKET] Ticket 4: lost and found (open)');
});

test('1,000 events leave a small state', async () => {
  const id = await open();
  await client.dispatch(id, { type: 'ticket.opened', payload: ticket(0, 'busy') });
  // The server takes ten updates at once.
  for (let n = 1; n < 1_000; n += 8) {
    const some = Array.from({ length: Math.min(8, 1_000 - n) }, (_, i) => ticket(n + i, 'busy', `step ${n + i}`));
    await Promise.all(some.map((payload) => client.dispatch(id, { type: 'ticket.changed', payload })));
  }
  const status = await waitFor(
    () => client.status(id),
    ({ queued }) => queued === 0,
  );
  expect(status.appEvents?.chunks).toBe(1);
  expect(status.context.chunks).toBeLessThanOrEqual(2);
  expect(await shown(id)).toEqual([expect.stringContaining('step 9')]);
  const { historyBytes } = await client.describe(id);
  expect(historyBytes).toBeLessThan(2 * 1024 * 1024);
});

test('one’s own compactor makes memory, with goal and turns, and the episode says how', async () => {
  const id = await open();
  for (let n = 1; n <= 7; n++) await client.send(id, n === 1 ? `Find the harbour, ${id}` : `and ${n}`);
  const outcome = await client.compact(id);
  expect(outcome).toMatchObject({ kind: 'compacted', method: 'compactor' });
  const { episodes, facts } = await client.memory(id);
  expect(episodes[0]?.summary).toContain(`Goal: Find the harbour, ${id}`);
  expect(episodes[0]?.made).toMatchObject({
    compactor: 'LedgerCompactor',
    method: 'compactor',
    model: expect.stringMatching(/^anthropic\//),
  });
  expect(episodes[0]?.made?.inputsHash).toMatch(/^[0-9a-f]{64}$/);
  expect(episodes[0]?.made?.tokensBefore).toBeGreaterThan(0);
  expect(facts.map(({ fact }) => fact)).toContain('3 turns were put into the ledger.');
});

test('the observer has heard of each of these once, in the seed’s words', async () => {
  const told = readFileSync(join(project.dir, 'notifications.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const kinds = new Set(told.map(({ kind }) => kind));
  for (const kind of ['event-dispatched', 'reducer-executed', 'state-changed', 'compaction']) expect(kinds).toContain(kind);
  const executed = told.filter(({ kind }) => kind === 'reducer-executed').map(({ id }) => id);
  expect(new Set(executed).size).toBe(executed.length);
  expect(told).toContainEqual(
    expect.objectContaining({ kind: 'reducer-executed', outcome: 'parked', error: 'Error: this reducer has a mistake' }),
  );
});

test('a turn is one trace: the turn, its model calls and its tool runs; without what was said, and without secrets', async () => {
  const id = await open();
  await client.send(id, `What time is it, ${id}?`);
  const mine = () => otlp.spans.filter(({ attributes }) => attributes['gen_ai.conversation.id'] === id);
  await waitFor(mine, (spans) => spans.length >= 4);
  const spans = mine();
  const turn = spans.find(({ name }) => name === 'invoke_agent desk');
  expect(turn).toMatchObject({
    kind: 1,
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'desk',
      'perdura.turn': 'turn_0001',
      'perdura.turn.stop_reason': 'end',
    },
  });
  expect(turn?.parentSpanId ?? '').toBe('');
  // A provider's SDK tells no call a second time.
  expect(otlp.spans.filter(({ traceId }) => traceId === turn?.traceId)).toHaveLength(4);
  const others = spans.filter((span) => span !== turn);
  expect(others.map(({ name }) => name).sort()).toEqual(['chat claude-sonnet-5-5', 'chat claude-sonnet-5-5', 'execute_tool get_time']);
  for (const span of others) expect(span).toMatchObject({ traceId: turn?.traceId, parentSpanId: turn?.spanId });
  expect(others.find(({ name }) => name.startsWith('chat'))).toMatchObject({
    kind: 3,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'anthropic',
      'gen_ai.request.model': 'claude-sonnet-5-5',
      'gen_ai.usage.input_tokens': expect.any(Number),
      'gen_ai.usage.output_tokens': expect.any(Number),
      'gen_ai.request.max_tokens': 8192,
    },
  });
  expect(others.find(({ name }) => name.startsWith('execute_tool'))?.attributes).toMatchObject({
    'gen_ai.tool.name': 'get_time',
    'gen_ai.tool.call.id': 'turn_0001/c1',
    'perdura.tool.outcome': 'ok',
  });
  expect(Number(turn?.endTimeUnixNano)).toBeGreaterThanOrEqual(Number(turn?.startTimeUnixNano));
  await waitFor(
    () => otlp.points.map(({ metric }) => metric),
    (metrics) => metrics.includes('gen_ai.client.token.usage') && metrics.includes('gen_ai.client.operation.duration'),
  );
  expect(otlp.text()).not.toContain('What time is it');
  expect(otlp.text()).not.toContain('It is late.');
  expect(otlp.text()).not.toContain(SECRET);
  expect(otlp.headers).toContain(OTLP_KEY);
  expect(worker.log()).not.toContain(OTLP_KEY);
});

test('the audit file has a line for each event, with ids and sizes and no texts, and nobody else may read it', async () => {
  const id = await open();
  await client.dispatch(id, { type: 'ticket.opened', payload: ticket(5, 'a text that is private') });
  await client.send(id, `private words ${SECRET}, ${id}`);
  const file = join(project.dir, 'audit', 'events.jsonl');
  const lines = await waitFor(
    () =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter(({ conversation }) => conversation === id),
    (mine) => mine.some(({ kind, event }) => kind === 'effect-completed' && (event as { effect: string }).effect === 'model-step'),
  );
  expect(lines.find(({ kind }) => kind === 'message-received')).toMatchObject({
    namespace: 'default',
    conversation: id,
    runId: expect.any(String),
    event: { messageId: expect.any(String), textCharacters: `private words ${SECRET}, ${id}`.length },
    notifications: expect.arrayContaining([expect.objectContaining({ kind: 'event-dispatched', type: 'message' })]),
  });
  expect(lines.find(({ kind }) => kind === 'app-event-reduced')).toMatchObject({
    notifications: [
      { kind: 'reducer-executed', outcome: 'reduced', operations: 1 },
      { kind: 'state-changed', before: { chunks: 0 }, after: { chunks: 1 } },
    ],
  });
  const all = readFileSync(file, 'utf8');
  for (const secret of [SECRET, 'private words', 'a text that is private', AFTER_ALL, 'harbour']) expect(all).not.toContain(secret);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('killed and started again, it delivers nothing twice', async () => {
  const id = await open();
  await client.send(id, `before, ${id}`);
  await waitFor(() => otlp.spans.some(({ attributes }) => attributes['gen_ai.conversation.id'] === id), Boolean);
  worker.child.kill('SIGKILL');
  await once(worker.child, 'exit');
  // It bundles the project's own workflows, which takes seconds: the next test has the same one.
  worker = await startWorker({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true' });
  await client.send(id, `after, ${id}`);
  await waitFor(
    () => otlp.spans.filter(({ attributes }) => attributes['gen_ai.conversation.id'] === id && attributes['perdura.turn'] === 'turn_0002'),
    (spans) => spans.length >= 2,
  );
  const spans = otlp.spans.filter(({ attributes }) => attributes['gen_ai.conversation.id'] === id);
  expect(spans.filter(({ name }) => name.startsWith('chat'))).toHaveLength(2);
  const lines = readFileSync(join(project.dir, 'audit', 'events.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line.includes(id));
  expect(lines.filter((line) => line.includes('"kind":"message-received"'))).toHaveLength(2);
});

test('what was said is delivered where that is asked for: without secrets, and no more than 64 KiB of it', async () => {
  const id = await open();
  await client.send(id, `What time is it where ${SECRET} is known? ${'x'.repeat(100_000)}`);
  const spans = await waitFor(
    () => otlp.spans.filter(({ attributes }) => attributes['gen_ai.conversation.id'] === id),
    (told) => told.length >= 4,
  );
  const [first, second] = spans.filter(({ name }) => name.startsWith('chat'));
  const asked = String(first?.attributes['gen_ai.input.messages']);
  expect(asked).toContain('What time is it where');
  expect(asked).toContain('characters left out]');
  expect(asked.length).toBeLessThanOrEqual(64 * 1024);
  expect(JSON.parse(String(first?.attributes['gen_ai.system_instructions']))).toEqual([{ type: 'text', content: expect.any(String) }]);
  expect(String(second?.attributes['gen_ai.output.messages'])).toContain('It is late.');
  const tool = spans.find(({ name }) => name.startsWith('execute_tool'));
  expect(String(tool?.attributes['gen_ai.tool.call.result'])).toMatch(/\d{4}-\d{2}-\d{2}/);
  expect(otlp.text()).not.toContain(SECRET);
});

test('its entry and its reducers are typed', async () => {
  const bin = (name: string): string => join(__dirname, '..', '..', 'node_modules', '.bin', name);
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'node16', '--target', 'es2022', '--types', 'node', '--ignoreConfig'];
  const roots = ['--typeRoots', join(__dirname, '..', '..', 'node_modules', '@types')];
  await run(process.execPath, [bin('tsc'), ...flags, ...roots, 'workflows.ts'], { cwd: project.dir }).catch(
    ({ stdout }: { stdout: string }) => {
      throw new Error(stdout);
    },
  );
});

test.each([
  ['nothing is there', undefined, /workflows: .*own\.ts is not there, or is no file/],
  [
    'it exports too little',
    "export { memory } from 'perdura/workflows';\n",
    /does not export conversation, webhook: write `export \{ memory, webhook \}/,
  ],
  ['it does not parse', 'export const conversation = ;\n', /cannot be bundled: .*own\.ts/],
  [
    'a module of Node’s is imported',
    "import { readFileSync } from 'node:fs';\nexport const conversation = () => readFileSync('x');\n",
    /cannot be bundled: ERROR in node:fs/,
  ],
  [
    'it throws when loaded',
    "export { memory, webhook } from 'perdura/workflows';\nthrow new Error('no ledger');\n",
    /cannot be loaded as a workflow: no ledger/,
  ],
])('a worker is refused with the reason when %s', async (_what, source, reason) => {
  const config = join(project.dir, 'perdura.config.mjs');
  const before = readFileSync(config, 'utf8');
  const own = join(project.dir, 'own.ts');
  if (source !== undefined) writeFileSync(own, source);
  writeFileSync(config, "export default { workflows: './own.ts' };\n");
  try {
    const { code, stderr } = await perdura('worker');
    expect(stderr).toMatch(reason);
    expect(code).not.toBe(0);
  } finally {
    writeFileSync(config, before);
    if (existsSync(own)) rmSync(own);
  }
});
