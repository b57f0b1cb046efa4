/** Workflows of ours have no time limit, so a worker must see by itself that one does not return. */
import { createWorkflowWorker } from '../../src/workflow-code.js';
import { standingBuild } from '../support/builds.js';
import { createStage, say } from '../support/stage.js';
import { connect, converterOf } from '../support/temporal-worker.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ engine: 'temporal', answer: stage.answer, worker: false });
});
afterAll(() => world.close());

test('a workflow that does not return ends its worker in words, and another worker goes on', async () => {
  const connection = await connect(process.env['PERDURA_TEST_ADDRESS']);
  const { taskQueue } = world;
  const code = { workflowBundle: await standingBuild(), dataConverter: converterOf(undefined) };
  const worker = await createWorkflowWorker({ connection, taskQueue, ...code }, { isCustom: false, isObserved: false });
  const id = world.id();
  const answered = world.client.send(id, say(id, 'are you there?'), { start: {} });
  await expect(worker.run()).rejects.toThrow(/Workflow Worker Thread exited/);
  const stop = await world.startWorker();
  expect(await answered).toMatchObject({ stopReason: 'end' });
  await stop();
  await connection.close();
});
