/** Thousands of signals come while no worker is there: the one that comes takes all of them at once, and lives. */
import { figure, LONG, sceneTest, seconds, until } from '../support/scene.js';

/** Temporal takes 10,000 signals a run. */
const SIGNALS = LONG ? 9_990 : 2_000;
const SENDERS = 16;

sceneTest(`${SIGNALS} signals that no worker was there for are queued by the next one, each once`, { redis: true }, async (scene) => {
  const id = scene.id();
  await scene.client.start(id, { mode: 'stepping' });
  const numbers = Array.from({ length: SIGNALS }, (_, n) => n + 1);
  const send = async (): Promise<void> => {
    for (let n = numbers.shift(); n !== undefined; n = numbers.shift())
      await scene.client.message(id, { id: `m${n}`, text: `message ${n}` });
  };
  await Promise.all(Array.from({ length: SENDERS }, send));

  const began = Date.now();
  const worker = await scene.startWorker();
  await until('all of them in the queue', async () => (await scene.client.status(id)).queued === SIGNALS);
  figure(`${SIGNALS} signals at once: queued ${seconds(Date.now() - began)} after the worker's start`);
  await until('all of them in the store', async () => (await scene.client.history(id)).length === SIGNALS);
  const said = (await scene.client.history(id)).map(({ messageId }) => messageId);
  expect(new Set(said).size).toBe(SIGNALS);
  expect(await Promise.race([worker.ended, Promise.resolve('it lives')])).toBe('it lives');
});
