/** A tool that names its task queue runs where a worker of that queue is, and nowhere else. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerTo, echo } from '../support/echo-model.js';
import { sceneTest, until, type Scene, type SceneOptions } from '../support/scene.js';

const BOTH = ['render', 'sketch'];

const ELSEWHERE: SceneOptions = {
  root: { 'perdura.config.cjs': readFileSync(join(__dirname, '..', 'support', 'elsewhere-tools.cjs'), 'utf8') },
  answer: (request) => echo(request, (said) => (BOTH.includes(said) ? [{ name: said, input: { item: 'a' } }] : [])),
};

sceneTest('with a worker of its tools it runs there; without one a stop ends the wait, and it has not begun', ELSEWHERE, async (scene) => {
  const [worker, tools] = await Promise.all([scene.startWorker(), scene.startWorker({ tools: BOTH })]);
  const [id, other] = [scene.id(), scene.id()];
  scene.letToolsEnd();
  const result = await scene.client.send(id, { id: 'm1', text: 'sketch' }, { start: {} });
  expect(result).toMatchObject({ text: answerTo('sketch'), stopReason: 'end' });
  expect(scene.ledger().map(({ name, pid }) => [name, pid])).toEqual([['sketch', tools.pid]]);
  expect(await toolResults(scene, id)).toEqual([['sketch', 'ok', 'sketch: a']]);
  // It is no worker of conversations.
  const { pollers } = await scene.temporal.workflowService.describeTaskQueue({
    ...{ namespace: 'default', taskQueue: { name: `${scene.taskQueue}-gpu` }, taskQueueType: 1 },
  });
  expect(pollers).toEqual([]);
  tools.term();
  expect(await tools.ended).toEqual({ code: 0, signal: null });

  const stopped = scene.client.send(other, { id: 'm1', text: 'render' }, { start: {} });
  await until('a call in the queue of the tool', async () =>
    (await scene.client.describe(other)).pendingActivities.some(
      ({ taskQueue, state }) => taskQueue === `${scene.taskQueue}-gpu` && state === 'scheduled',
    ),
  );
  await scene.client.interrupt(other);
  expect(await stopped).toMatchObject({ stopReason: 'interrupted' });
  expect(await scene.client.send(other, { id: 'm2', text: 'go on' })).toMatchObject({ text: answerTo('go on'), stopReason: 'end' });
  expect(await toolResults(scene, other)).toEqual([['render', 'cancelled', 'Cancelled before it started: the person stopped this turn.']]);
  expect(scene.ledger()).toHaveLength(1);
  expect(worker.log()).not.toContain('error');
});

async function toolResults({ client }: Scene, id: string): Promise<unknown[]> {
  const history = await client.history(id);
  return history.flatMap(({ message }) => (message.role === 'tool' ? [[message.name, message.outcome, message.text]] : []));
}
