/** What waits for a person outlives the worker that asked. */
import { join } from 'node:path';
import { callTool, text } from '../../support/provider-apis/reply.js';
import { runPerdura, type Ran } from '../../support/run-perdura.js';
import { createStage, resultTexts, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { SECRET, startReceiver, type Got, type Receiver } from '../../support/webhook-receiver.js';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.js';
import { startWorld, type World } from '../../support/world.js';

const AGENT = { approvals: [{ tool: 'read_file', policy: 'ask', why: 'files are private' }] };

const stage = createStage();
let world: World;
let workers: WorkerProcess[];
let receiver: Receiver;

beforeAll(async () => {
  world = await startWorld({
    answer: stage.answer,
    worker: false,
    agent: AGENT,
    files: { 'a.txt': 'content of a', 'b.txt': 'content of b' },
  });
  workers = [];
  receiver = await startReceiver();
  await startWorker();
});
afterAll(async () => {
  for (const worker of workers) await worker.kill();
  await world.close();
  await receiver.stop();
});
afterEach(() => expect(world.api.problems).toEqual([]));

async function startWorker(): Promise<WorkerProcess> {
  const worker = startWorkerProcess({
    cwd: world.dir,
    env: {
      ...environment(),
      ANTHROPIC_API_KEY: 'test-key',
      ANTHROPIC_BASE_URL: world.api.url,
      PERDURA_MODEL: 'anthropic/claude-test',
      PERDURA_WEBHOOK_URL: receiver.url,
      PERDURA_WEBHOOK_SECRET: SECRET,
    },
  });
  workers.push(worker);
  await worker.ready;
  return worker;
}

function environment() {
  return {
    TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'] ?? '',
    PERDURA_TASK_QUEUE: world.taskQueue,
    PERDURA_MEMORY_DIR: join(world.dir, 'memory'),
    PERDURA_AGENTS_DIR: join(world.dir, 'agents'),
    PERDURA_WORKSPACE: join(world.dir, 'workspace'),
  };
}

const perdura = (...args: readonly string[]): Promise<Ran> => runPerdura(world, args);

test('an approval survives the kill of the worker, is reported once, and is decided by a command', async () => {
  const id = world.id();
  stage.play(id, callTool('read_file', { path: 'a.txt' }), text('It says content of b.'));
  const sent = world.client.send(id, say(id, 'read a'), { start: {} });
  await waitFor(
    () => world.client.status(id).catch(() => undefined),
    (status) => status?.phase === 'waiting-for-person',
  );
  const reports = (): Got[] => receiver.of('approval.waiting').filter(({ body }) => body.includes(id));
  await waitFor(reports, ({ length }) => length > 0);
  // A kill before the delivery has ended would post it again, rightly.
  await waitFor(
    () => world.temporal.workflow.count(`WorkflowId STARTS_WITH 'webhook:${id}:' AND ExecutionStatus = 'Running'`),
    ({ count }) => count === 0,
  );
  await workers[0]?.kill();
  await startWorker();

  // Until the dead worker's turn with it is over, the conversation may be named among the silent.
  const listed = await waitFor(
    () => perdura('approvals', '-o', 'json'),
    ({ stdout }) => stdout.includes(id),
  );
  expect(JSON.parse(listed.stdout)).toContainEqual(expect.objectContaining({ conversation: id }));
  expect(await perdura('approve', id, '--input', '{"path":"b.txt"}')).toMatchObject({ code: 0 });
  expect(await sent).toMatchObject({ text: 'It says content of b.' });
  expect(resultTexts(stage.requests(id).at(-1))[0]).toContain('content of b');
  expect(reports()).toHaveLength(1);
});
