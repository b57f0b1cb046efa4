/**
 * The lines of the table in docs/operations/temporal-cluster.md, tried with calls of the service alone: on a dev server as `perdura up`
 * starts it, on a cluster as it comes, and on one with the dynamic config that docs/operations recommends.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import { msToTs } from '@temporalio/common/lib/time.js';
import { checkServer } from '../../src/cli/doctor/temporal.js';
import { createClient } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { answerTo, echo } from '../support/echo-model.js';
import { startMessagesApi } from '../support/provider-apis/messages-api.js';
import { startTemporal } from '../support/temporal-server.js';
import { NO_CLUSTER, RECOMMENDED, startCluster } from '../support/temporal-cluster.js';
import { figure, until } from '../support/scene.js';
import { startWorkerProcess } from '../support/worker-process.js';

const namespace = 'default';
const INVALID_ARGUMENT = 3;
const RESOURCE_EXHAUSTED = 8;

/** What a dev server has by itself. */
const FOR_LISTS = { 'frontend.namespaceRPS.visibility': 100 };

const SERVERS = [
  ['the dev server', () => startTemporal()],
  ['a cluster as it comes', () => startCluster()],
  ['a cluster as recommended', () => startCluster({ dynamicConfig: { ...RECOMMENDED, ...FOR_LISTS } })],
] as const;
type ServerName = (typeof SERVERS)[number][0];

/** By server, in their order. */
const WAITING_UPDATES = { 'the dev server': 100, 'a cluster as it comes': 10, 'a cluster as recommended': 100 };
const TAKES_FLOODS = { 'the dev server': true, 'a cluster as it comes': false, 'a cluster as recommended': true };
const STARTS_EAGERLY = { 'the dev server': 'on', 'a cluster as it comes': 'off', 'a cluster as recommended': 'on' };
const TAKES_LISTS = { 'the dev server': true, 'a cluster as it comes': false, 'a cluster as recommended': true };

if (NO_CLUSTER) test.skip(NO_CLUSTER, () => undefined);
else describe.each(SERVERS)('%s', (name, start) => tryOn(name, start));

function tryOn(name: ServerName, start: () => Promise<{ readonly address: string; stop(): Promise<void> }>): void {
  let server: { readonly address: string; stop(): Promise<void> };
  let connection: Connection;
  beforeAll(async () => {
    server = await start();
    // What is refused is not tried again.
    connection = await Connection.connect({ address: server.address, interceptors: [] });
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });
  const begin = async (more: object = {}): Promise<string> => {
    const id = randomUUID();
    await connection.workflowService.startWorkflowExecution({
      ...{ namespace, workflowId: id, requestId: id, workflowType: { name: 'probe' }, taskQueue: { name: id }, ...more },
    });
    return id;
  };

  test('how many updates of one conversation may wait for their answer', async () => {
    const id = await begin();
    const limit = WAITING_UPDATES[name];
    const update = (n: number): Promise<unknown> =>
      connection.withDeadline(Date.now() + 5_000, () =>
        connection.workflowService.updateWorkflowExecution({
          ...{ namespace, workflowExecution: { workflowId: id }, waitPolicy: { lifecycleStage: 3 } },
          request: { meta: { updateId: `u${n}` }, input: { name: 'probe' } },
        }),
      );
    // No worker answers: each waits for its deadline, unless it is refused at once.
    const codes = await Promise.all(Array.from({ length: limit + 1 }, (_, n) => codeOf(() => update(n))));
    expect(codes.filter((code) => code === RESOURCE_EXHAUSTED)).toHaveLength(1);
  });

  test('whether a workflow task survives two hundred signals that come while it runs', async () => {
    const id = await begin();
    const poll = () => connection.workflowService.pollWorkflowTaskQueue({ namespace, taskQueue: { name: id } });
    const { taskToken } = await connection.withDeadline(Date.now() + 30_000, poll);
    for (let n = 0; n < 200; n += 1) await signal(id, 'hello');
    const completed = await codeOf(() => connection.workflowService.respondWorkflowTaskCompleted({ namespace, taskToken, commands: [] }));
    expect(completed === undefined).toBe(TAKES_FLOODS[name]);
  });

  test('a payload above two megabytes is refused, one below is taken', async () => {
    const id = await begin();
    expect(await codeOf(() => signal(id, 'x'.repeat(2 * 1024 * 1024 - 1_000)))).toBeUndefined();
    expect(await codeOf(() => signal(id, 'x'.repeat(2 * 1024 * 1024)))).toBe(INVALID_ARGUMENT);
  });

  test('whether sixty lists at once are answered', async () => {
    const list = (): Promise<unknown> => connection.workflowService.listWorkflowExecutions({ namespace, pageSize: 1 });
    const codes = await Promise.all(Array.from({ length: 60 }, () => codeOf(list)));
    const refused = codes.filter((code) => code === RESOURCE_EXHAUSTED).length;
    figure(`${name}: of 60 lists at once ${refused} were refused`);
    expect(refused === 0).toBe(TAKES_LISTS[name]);
  });

  test('how long after its registration a search attribute can be used', async () => {
    const attribute = `Probe${name.length}`;
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: { [attribute]: 2 } });
    const registeredAt = Date.now();
    const payload = defaultPayloadConverter.toPayload('a');
    let refusals = 0;
    await until('a search attribute that can be used', async () => {
      const code = await codeOf(() => begin({ searchAttributes: { indexedFields: { [attribute]: payload } } }));
      if (code === INVALID_ARGUMENT) refusals += 1;
      return code === undefined;
    });
    figure(`${name}: a new search attribute could be used ${Date.now() - registeredAt} ms after its registration`);
    if (name === 'the dev server') expect(refusals).toBe(0);
  });

  test('how soon a list shows what has begun', async () => {
    const id = await begin();
    const begunAt = Date.now();
    await until('it in the list', async () => {
      const query = `WorkflowId = '${id}'`;
      const { executions } = await connection.workflowService.listWorkflowExecutions({ namespace, query });
      return executions?.length === 1;
    });
    figure(`${name}: a list showed a new workflow after ${Date.now() - begunAt} ms`);
  });

  test('no retention below an hour', async () => {
    const set = (seconds: number): Promise<unknown> =>
      connection.workflowService.updateNamespace({ namespace, config: { workflowExecutionRetentionTtl: msToTs(1_000 * seconds) } });
    expect(await codeOf(() => set(3_600))).toBeUndefined();
    expect(await codeOf(() => set(3_599))).toBe(INVALID_ARGUMENT);
    expect(await codeOf(() => set(30 * 86_400))).toBeUndefined();
  });

  test('activities start eagerly, or wait in a queue', async () => {
    const findings = await checkServer(loadConfig({ TEMPORAL_ADDRESS: server.address }, '/tmp'));
    const speed = findings.find(({ what }) => what === 'Speed')?.found ?? '';
    figure(`${name}: ${speed}`);
    expect(speed).toMatch(new RegExp(`eager activities are ${STARTS_EAGERLY[name]}$`));
  });

  test('how long a turn of text takes, and a turn with a tool', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'perdura-differences-'));
    const api = await startMessagesApi({
      answer: (request) => echo(request, (said) => (said.startsWith('tool') ? [{ name: 'get_time', input: {} }] : [])),
    });
    const env = {
      ...{ TEMPORAL_ADDRESS: server.address, PERDURA_TASK_QUEUE: 'turns', PERDURA_MEMORY_DIR: join(dir, 'memory') },
      ...{ ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'test', PERDURA_AGENTS_DIR: join(dir, 'agents') },
    };
    await mkdir(join(dir, 'agents', 'default'), { recursive: true });
    await writeFile(join(dir, 'agents', 'default', 'agent.json'), '{}');
    const worker = startWorkerProcess({ env, cwd: dir });
    const client = await createClient(loadConfig(env, dir));
    try {
      await worker.ready;
      const took: Record<string, number[]> = { text: [], tool: [] };
      for (let n = 0; n < 60; n += 1) {
        const [kind, begin] = [n % 2 === 0 ? 'text' : 'tool', performance.now()];
        expect(await client.send('turns', `${kind} ${n}`, { start: {} })).toMatchObject({ text: answerTo(`${kind} ${n}`) });
        took[kind]?.push(performance.now() - begin);
      }
      const row = Object.entries(took).map(([kind, all]) => {
        const sorted = all.sort((a, b) => a - b);
        return `${kind} ${Math.round(sorted[3] ?? 0)} ms (p10), ${Math.round(sorted[15] ?? 0)} ms (p50)`;
      });
      figure(`${name}: a turn of ${row.join('; with a ')}`);
    } finally {
      await client.close();
      await worker.stop();
      await api.close();
      await rm(dir, { recursive: true, force: true });
    }
  });

  async function signal(workflowId: string, text: string): Promise<unknown> {
    const input = { payloads: [defaultPayloadConverter.toPayload(text)] };
    return connection.workflowService.signalWorkflowExecution({ namespace, workflowExecution: { workflowId }, signalName: 'probe', input });
  }
}

/** Of what a call is refused with; undefined where it is not. */
async function codeOf(call: () => Promise<unknown>): Promise<unknown> {
  return call().then(
    () => undefined,
    (error: { code?: unknown }) => error.code,
  );
}
