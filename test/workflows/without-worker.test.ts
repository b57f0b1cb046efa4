/** What a program is told that sends where no worker is, and what becomes of its message. */
import { createClientWith, type PerduraClient } from '../../src/client.js';
import { text } from '../support/provider-apis/reply.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
let client: PerduraClient;

beforeAll(async () => {
  world = await startWorld({ answer: () => text('Good day.'), worker: false });
  const { temporal, taskQueue, store } = world;
  client = createClientWith({ client: temporal, namespace: 'default', taskQueue, store: () => store, workerPatienceMs: 500 });
});
afterAll(() => world.close());

test('a message to a new and to a running conversation is kept, and answered once a worker is there', async () => {
  const [fresh, running] = [world.id(), world.id()];
  await client.start(running);
  const began = Date.now();
  const sent = [client.send(fresh, { id: 'm1', text: 'hello' }, { start: {} }), client.send(running, { id: 'm2', text: 'hello' })];
  const [first, second] = await Promise.all(sent.map((one) => one.then(String, (error: unknown) => error)));
  expect(Date.now() - began).toBeLessThan(20_000);
  expect(first).toMatchObject({ kind: 'no-worker', message: expect.stringContaining(`task queue ${world.taskQueue}`) });
  expect(first).toMatchObject({ message: expect.stringContaining('message m1 is kept') });
  expect(second).toMatchObject({ kind: 'no-worker', message: expect.stringContaining('message m2 is kept') });

  const stop = await world.startWorker();
  try {
    expect(await client.send(fresh, { id: 'm1', text: 'hello' })).toMatchObject({ turnId: 'turn_0001', text: 'Good day.' });
    expect(await client.send(running, { id: 'm2', text: 'hello' })).toMatchObject({ turnId: 'turn_0001', text: 'Good day.' });
    expect([(await client.status(fresh)).turn, (await client.status(running)).turn]).toEqual([1, 1]);
  } finally {
    await stop();
  }
}, 120_000);

test('a signal that ends the wait still does, and nothing looks for a worker afterwards', async () => {
  const id = world.id();
  await client.start(id);
  const stop = new AbortController();
  const sent = client.send(id, 'hello', { signal: stop.signal });
  stop.abort();
  await expect(sent).rejects.toMatchObject({ kind: 'aborted' });
}, 60_000);
