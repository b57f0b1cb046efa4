/** What a worker of workflows leaves out: news without a listener, and notes of promises. By real calls into its sinks. */
import type { InjectedSinks } from '@temporalio/worker';
import { createWorkflowWorker } from '../../src/workflow-code.js';
import type { ConversationListener } from '../../src/conversation/views/observation.js';
import { connect, converterOf, workflowBundle } from '../support/temporal-worker.js';
import { startWorld, type World } from '../support/world.js';

let world: World;

beforeAll(async () => {
  world = await startWorld({ engine: 'temporal', worker: false });
});
afterAll(() => world.close());

test.each([
  ['with a listener every event is told', true, ['opened', 'message-received']],
  ['without one none is', false, []],
] as const)('%s; there is no call stack', async (_, isObserved, told) => {
  const connection = await connect(process.env['PERDURA_TEST_ADDRESS']);
  const heard: string[] = [];
  const sinks: InjectedSinks<{ conversation: ConversationListener }> = {
    conversation: { opened: { fn: () => void heard.push('opened') }, event: { fn: (_info, { kind }) => void heard.push(kind) } },
  };
  const code = { workflowBundle: await workflowBundle(), dataConverter: converterOf(undefined) };
  const { taskQueue } = world;
  const worker = await createWorkflowWorker({ connection, taskQueue, sinks, ...code }, { isCustom: false, isObserved });
  const running = worker.run();
  const id = world.id();
  await world.client.start(id);
  await world.client.enqueue(id, 'hello');
  await expect(world.temporal.workflow.getHandle(id).query('__stack_trace')).rejects.toThrow(/not enabled/);
  expect(heard.slice(0, 2)).toEqual(told);
  worker.shutdown();
  await running;
  await connection.close();
});
