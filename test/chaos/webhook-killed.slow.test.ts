/** Workers and servers end while an event is on its way to a webhook: it arrives, under one id, and not again once it was taken. */
import { text } from '../support/provider-apis/reply.js';
import { sceneTest, seconds, figure, until } from '../support/scene.js';
import { SECRET, startReceiver } from '../support/webhook-receiver.js';

sceneTest('kill -9 while a receiver takes its time: another worker posts the same bytes under the same id, once', {}, async (scene) => {
  const receiver = await startReceiver();
  scene.onClose(() => receiver.stop());
  const env = { PERDURA_WEBHOOK_URL: receiver.url, PERDURA_WEBHOOK_SECRET: SECRET };
  scene.api.play({ reply: text('One.') }, { reply: text('Two.') });
  receiver.answer('hang');
  const id = scene.id();
  const first = await scene.startWorker({ env });
  await scene.client.send(id, { id: 'm1', text: 'one' }, { start: {} });
  await until('a post without an answer', () => receiver.got.length === 1);

  await first.kill();
  const killedAt = Date.now();
  const second = await scene.startWorker({ env });
  await until('the same post again', () => receiver.got.length === 2);
  figure(`kill -9 in a delivery: posted again after ${seconds(Date.now() - killedAt)}`);
  const [before, after] = receiver.got;
  expect([after?.id, after?.body]).toEqual([before?.id, before?.body]);
  const status = async (): Promise<string> =>
    (await scene.temporal.workflow.getHandle(`webhook:${id}:${before?.id}`).describe()).status.name;
  await until('its end', async () => (await status()) === 'COMPLETED');

  // Taken: neither the next worker nor the next turn brings it again.
  await second.kill();
  const third = await scene.startWorker({ env });
  await scene.client.send(id, { id: 'm2', text: 'two' });
  await until('the next turn', () => receiver.got.length === 3);
  expect(receiver.got.filter((got) => got.id === before?.id)).toHaveLength(2);
  expect(receiver.refused).toEqual([]);
  // What a worker prints names neither.
  for (const worker of [first, second, third]) {
    expect(worker.log()).not.toContain('secret-path');
    expect(worker.log()).not.toContain(SECRET);
  }
});

sceneTest('a worker without the settings leaves an event to one that has them', {}, async (scene) => {
  const receiver = await startReceiver();
  scene.onClose(() => receiver.stop());
  const env = { PERDURA_WEBHOOK_URL: receiver.url, PERDURA_WEBHOOK_SECRET: SECRET };
  scene.api.play({ reply: text('One.') });
  await receiver.stop();
  const id = scene.id();
  const first = await scene.startWorker({ env });
  await scene.client.send(id, { id: 'm1', text: 'one' }, { start: {} });
  const delivery = async () => {
    for await (const info of scene.temporal.workflow.list({ query: `WorkflowId STARTS_WITH 'webhook:${id}:'` })) return info;
    return undefined;
  };
  await until('the delivery', async () => (await delivery()) !== undefined);
  await first.stop();
  const without = await scene.startWorker();
  const handle = scene.temporal.workflow.getHandle((await delivery())!.workflowId);
  const lastFailure = async (): Promise<string> => (await handle.describe()).raw.pendingActivities?.[0]?.lastFailure?.message ?? '';
  await until('a try without settings', async () => (await lastFailure()).includes('this worker has no webhook'));
  await without.stop();
  await receiver.restart();
  await scene.startWorker({ env });
  await until('the event', () => receiver.got.length === 1);
  expect(await handle.result()).toEqual({ outcome: 'delivered', status: 204 });
});
