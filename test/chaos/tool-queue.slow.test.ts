/** A tool of another task queue while its workers are away, and while one is killed in the middle of it. */
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { answerTo, echo } from '../support/echo-model.js';
import { sceneTest, until, type Scene, type SceneOptions } from '../support/scene.js';
import { violations } from './invariants.js';

const BOTH = ['render', 'sketch'];
const TOOK_OVER = /its conversations go on/;

const ELSEWHERE: SceneOptions = {
  root: { 'perdura.config.cjs': readFileSync(join(__dirname, '..', 'support', 'elsewhere-tools.cjs'), 'utf8') },
  answer: (request) => echo(request, (said) => (BOTH.includes(said) ? [{ name: said, input: { item: 'a' } }] : [])),
};

sceneTest('without a worker of its tool a conversation says for what it waits, and goes on once one is there', ELSEWHERE, async (scene) => {
  const { client, temporal, taskQueue } = scene;
  await scene.startWorker();
  const id = scene.id();
  const sent = client.send(id, { id: 'm1', text: 'render' }, { start: {} });
  const { waiting, waitingFor, phase } = await until('a conversation that waits for a worker', async () => {
    const status = await client.status(id);
    return status.waiting && status;
  });
  expect(phase).toBe('running-tools');
  expect(waiting).toEqual({ kind: 'worker', tool: 'render', taskQueue: `${taskQueue}-gpu`, since: expect.any(String) });
  expect(waitingFor).toContain(`a worker of task queue ${taskQueue}-gpu to run render`);
  const { currentDetails } = await until('its card in the page of Temporal', async () => {
    const [payload] =
      (
        await temporal.workflowService.queryWorkflow({
          ...{ namespace: 'default', execution: { workflowId: id }, query: { queryType: '__temporal_workflow_metadata' } },
        })
      ).queryResult?.payloads ?? [];
    return JSON.parse(Buffer.from(payload?.data ?? []).toString()) as { readonly currentDetails?: string };
  });
  expect(currentDetails).toContain(`**waiting for** \`a worker of task queue ${taskQueue}-gpu to run render`);

  await scene.startWorker({ tools: BOTH });
  await until('a tool that runs', () => scene.ledger().length > 0);
  // Its workflow does not hear of that: what Temporal knows counts.
  expect((await client.status(id)).waiting).toBeUndefined();
  scene.letToolsEnd();
  const result = await sent;
  expect(scene.ledger()).toHaveLength(1);
  expect(violations(await client.history(id), [{ messageId: 'm1', result, expectedText: answerTo('render') }])).toEqual([]);
});

/** A conversation whose tool runs on a worker of its tools, which is killed; another one of them is there. */
async function killed(scene: Scene, tool: string) {
  const worker = await scene.startWorker({ env: { PERDURA_LOG_LEVEL: 'info' } });
  const first = await scene.startWorker({ tools: BOTH });
  const id = scene.id();
  const sent = scene.client.send(id, { id: 'm1', text: tool }, { start: {} });
  await until('a tool that runs', () => scene.ledger().length > 0);
  const second = await scene.startWorker({ tools: BOTH, env: { PERDURA_LOG_LEVEL: 'info' } });
  await first.kill();
  await until('a worker that takes over', () => TOOK_OVER.test(worker.log()) || TOOK_OVER.test(second.log()));
  scene.letToolsEnd();
  const result = await sent;
  expect(violations(await scene.client.history(id), [{ messageId: 'm1', result, expectedText: answerTo(tool) }])).toEqual([]);
  const [answer] = (await scene.client.history(id)).flatMap(({ message }) => (message.role === 'tool' ? [message.outcome] : []));
  return { first, second, answer };
}

sceneTest('kill -9 of a worker of tools: what may be repeated goes on at once on another one', ELSEWHERE, async (scene) => {
  const { first, second, answer } = await killed(scene, 'sketch');
  expect(scene.ledger().map(({ pid }) => pid)).toEqual([first.pid, second.pid]);
  expect(answer).toBe('ok');
});

sceneTest('kill -9 of a worker of tools: what must not run twice does not, and the model is told', ELSEWHERE, async (scene) => {
  const { first, answer } = await killed(scene, 'render');
  expect(scene.ledger().map(({ pid }) => pid)).toEqual([first.pid]);
  expect(answer).toBe('unknown');
});
