/**
 * Who asks a conversation that no worker knows must not change what is decided there. A worker that is asked gets the history as it
 * stands, also what came after the last workflow task, and the SDK applies that too, before the next task has begun. What an update in
 * that task leads to then comes after it; on replay all of it is one activation, and updates come before results.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { callTool, text } from '../support/provider-apis/reply.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { replayProblems } from '../support/replays.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

/** Of those that are asked so, half are answered before their task begins. */
export const CONVERSATIONS = 12;
/** By then the server has given up the worker that has gone, and the question lies where the next one looks. */
const QUESTION_MS = 400;

const sign = defineTool({
  name: 'sign',
  description: 'Signs.',
  input: z.object({}),
  policy: { approval: 'ask' },
  run: () => 'signed',
});

const stage = createStage();
let world: World;

/** For the tests of one file. */
export function standInAWorld(): void {
  beforeAll(async () => {
    world = await startWorld({ answer: stage.answer, tools: [sign], worker: false });
  });
  afterAll(() => world.close());
}

/** Of a task that a worker has taken and does not finish. */
const TASK_MS = 1_000;

/** Asked while a decision and an update wait for a worker; `lost`: of the tasks, so many are taken by a worker that dies with them. */
export async function askWhileTasksWait(lost: number): Promise<void> {
  const ids = Array.from({ length: CONVERSATIONS }, () => world.id());
  const handleOf = (id: string) => world.temporal.workflow.getHandle(id);
  const first = await world.startWorker();
  await Promise.all(ids.map((id) => untilItWaits(id)));
  await first();

  const asked = ids.map((id) =>
    handleOf(id)
      .query('status')
      .catch(() => undefined),
  );
  await sleep(QUESTION_MS);
  for (const id of ids) await handleOf(id).signal('decide', { callId: 'turn_0001/c1', decision: 'approve' });
  const taken = await loseTasks(lost);
  // One that the server refuses, since its worker did not look at it, has done nothing.
  const updated = ids.map((id) =>
    handleOf(id)
      .executeUpdate('enqueue', { args: [{ id: 'two', text: say(id, 'two') }] })
      .catch(() => undefined),
  );
  await sleep(QUESTION_MS);
  const second = await world.startWorker();
  try {
    await Promise.all([...asked, ...updated]);
    await Promise.all(ids.map(comeToRest));
    expect(await replayProblems(world)).toEqual([]);
    expect(taken).toBeGreaterThanOrEqual(lost / 4);
  } finally {
    await second();
  }
}

/** As a worker that dies with what it was given: tasks, and questions as well. Answers how many tasks there were. */
async function loseTasks(most: number): Promise<number> {
  if (most > 0) await sleep(QUESTION_MS);
  const { connection, workflowService } = world.temporal;
  const poll = () =>
    workflowService.pollWorkflowTaskQueue({ namespace: 'default', taskQueue: { name: world.taskQueue }, identity: 'dies' });
  const given = await Promise.all(
    Array.from({ length: most }, () => connection.withDeadline(Date.now() + 5_000, poll).catch(() => undefined)),
  );
  return given.filter((task) => task && !task.query).length;
}

/** The task that died and the one that came instead are to both sides of a hand-over. */
export async function askAroundHandOvers(): Promise<void> {
  const ids = Array.from({ length: CONVERSATIONS }, () => world.id());
  const first = await world.startWorker();
  // Until the decision, each history has 18 events, or 19; each edge is another number of events in which a run hands over.
  for (const [i, id] of ids.entries()) {
    const agent = `edge-${i}`;
    await world.writeAgent(agent, { limits: { handOver: { events: 26 + Math.floor(i / 2) } } });
    await untilItWaits(id, agent);
  }
  await first();
  // Whoever takes a task takes questions as well: of three for each, some are left.
  for (const id of [...ids, ...ids, ...ids])
    world.temporal.workflow
      .getHandle(id)
      .query('status')
      .catch(() => undefined);
  await sleep(QUESTION_MS);
  for (const id of ids) await world.temporal.workflow.getHandle(id).signal('decide', { callId: 'turn_0001/c1', decision: 'approve' });
  const taken = await loseTasks(2 * CONVERSATIONS);
  const second = await world.startWorker();
  try {
    await Promise.all(ids.map(comeToRest));
    expect(await replayProblems(world)).toEqual([]);
    expect(taken).toBeGreaterThanOrEqual(CONVERSATIONS / 4);
  } finally {
    await second();
  }
}

/** For a person's decision, and by a timer for the end of its time. */
async function untilItWaits(id: string, agent?: string): Promise<void> {
  stage.play(id, callTool('sign'), text('Signed.'), text('Two.'));
  const { temporal, taskQueue } = world;
  await temporal.workflow.start('conversation', {
    taskQueue,
    workflowId: id,
    args: [agent === undefined ? {} : { agent }],
    workflowTaskTimeout: TASK_MS,
  });
  await world.client.message(id, { id: 'one', text: say(id, 'have it signed') });
  // A task that was given back is a moment in which a conversation cannot be asked.
  await waitFor(
    () => world.client.status(id).catch(() => undefined),
    (status) => status?.pendingApprovals === 1,
  );
}

/** One that cannot be replayed never does. */
async function comeToRest(id: string): Promise<void> {
  const standing = waitFor(
    () => world.client.status(id),
    ({ phase, queued }) => phase === 'idle' && queued === 0,
  );
  await standing.catch(() => undefined);
}
