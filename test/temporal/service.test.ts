/** What only Temporal's own service has: schedules, what a turn costs in events, queues without a worker, words for how a workflow stands. */
import { NativeConnection } from '@temporalio/worker';
import { z } from 'zod';
import { createStatusOf } from '../../src/client/describe.js';
import { createClientWith } from '../../src/client.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTool, callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { eventsSoFar, modelStepsOf } from '../support/steps.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const whisper = defineTool({
  name: 'whisper',
  description: 'Says it back, quickly.',
  input: z.object({ words: z.string() }),
  policy: { repeatable: true, quick: true },
  run: ({ words }) => `heard ${words}`,
});
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ to: z.string() }),
  policy: { approval: 'ask' },
  run: ({ to }) => `paid ${to}`,
});
const heard = (words: string) => ({ name: 'whisper', input: { words } });

const stage = createStage();
/** Who takes care of a memory names no conversation. */
const answer = (request: ApiRequest): Reply =>
  !/c-[0-9a-f]{8}-/.test(JSON.stringify(request.messages))
    ? text(JSON.stringify({ memory_update: '- Likes tea.' }))
    : stage.answer(request);
let world: World;
beforeAll(async () => {
  // Consolidations too are the stage's.
  world = await startWorld({ engine: 'temporal', answer, aside: () => undefined, tools: [...builtinTools, whisper, pay] });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

test('a text turn takes 11 events, and each further round of quick tools 6, with one activity for tools and model', async () => {
  const id = world.id();
  await world.client.send(id, say(id, 'hello'), { start: {} });
  const before = await eventsSoFar(world, id);
  await world.client.send(id, say(id, 'hello again'));
  const after = await eventsSoFar(world, id);
  stage.play(id, callTools(heard('a'), heard('b')), callTool('whisper', { words: 'c' }), text('All heard.'));
  expect(await world.client.send(id, say(id, 'listen'))).toMatchObject({ text: 'All heard.', toolCalls: 3 });
  const withTools = await eventsSoFar(world, id);
  expect([after - before, withTools - after]).toEqual([11, 11 + 6 + 6]);
  expect((await modelStepsOf(world, id)).map(({ input }) => input.tools.length)).toEqual([0, 0, 0, 2, 1]);
});

test('a conversation without a worker is named among the silent of its own queue, and is nobody else’s', async () => {
  const id = world.id();
  stage.play(id, callTool('pay', { to: 'Ada' }));
  const sent = world.client.send(id, say(id, 'pay'), { start: {} });
  await waitFor(
    () => world.client.approvals(id).catch(() => []),
    (list) => list.length === 1,
  );
  const lonely = world.id();
  const taskQueue = `${world.taskQueue}-nobody`;
  await world.temporal.workflow.start('conversation', { workflowId: lonely, taskQueue, args: [{}] });
  const store = (): Promise<typeof world.store> => Promise.resolve(world.store);
  const there = createClientWith({ client: world.temporal, namespace: 'default', taskQueue, store });
  const seen = await waitFor(
    () => there.allApprovals(),
    ({ silent }) => silent.length > 0,
  );
  expect(seen.silent.map((one) => one.id)).toEqual([lonely]);
  const here = await world.client.allApprovals();
  expect(here.silent).toEqual([]);
  expect(here.approvals.map(({ conversation }) => conversation)).toContain(id);
  await world.client.terminate(lonely);
  await world.client.interrupt(id);
  await sent;
});

test('how a workflow stands is Temporal’s own word, also of one that it does not know', async () => {
  const connection = await NativeConnection.connect({ address: process.env['PERDURA_TEST_ADDRESS'] });
  try {
    const statusOf = createStatusOf(connection, 'default');
    const id = world.id();
    await world.client.start(id);
    expect(await statusOf(id)).toBe('RUNNING');
    await world.client.terminate(id);
    expect(await statusOf(id)).toBe('TERMINATED');
    expect(await statusOf('nobody')).toBe('NOT_FOUND');
  } finally {
    await connection.close();
  }
});
