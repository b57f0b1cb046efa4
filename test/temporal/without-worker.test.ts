/** What a program is told that sends where no worker is, and what becomes of its message. */
import { createClientWith, type PerduraClient } from '../../src/client.js';
import { text } from '../support/provider-apis/reply.js';
import { replayProblems } from '../support/replays.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
let client: PerduraClient;

beforeAll(async () => {
  world = await startWorld({ engine: 'temporal', answer: () => text('Good day.'), worker: false });
  client = clientOf(world);
});
afterAll(() => world.close());

function clientOf({ temporal, taskQueue, store }: World): PerduraClient {
  return createClientWith({ client: temporal, namespace: 'default', taskQueue, store: () => store, workerPatienceMs: 500 });
}

test('a message to a new and to a running conversation is kept, and answered once a worker is there', async () => {
  const [fresh, running] = [world.id(), world.id()];
  await client.start(running);
  const sent = [client.send(fresh, { id: 'm1', text: 'hello' }, { start: {} }), client.send(running, { id: 'm2', text: 'hello' })];
  const [first, second] = await Promise.all(sent.map((one) => one.then(String, (error: unknown) => error)));
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
});

test('what is said by signals before a worker is there is heard in its order, whatever their names', async () => {
  const early = await startWorld({ engine: 'temporal', answer: () => text('Good day.'), worker: false });
  try {
    const id = early.id();
    await early.client.start(id);
    const said = ['m1', 'new', 'm2', 'm3', 'new', 'm4'];
    const handle = early.temporal.workflow.getHandle(id);
    for (const one of said) await (one === 'new' ? handle.signal('new', {}) : handle.signal('message', { id: one, text: one }));
    await early.startWorker();
    expect(await early.client.send(id, { id: 'm5', text: 'hello' })).toMatchObject({ text: 'Good day.', stopReason: 'end' });
    const asked = (await early.client.history(id)).filter(({ messageId }) => messageId !== undefined);
    expect(asked.map(({ messageId, session }) => [messageId, session])).toEqual([
      ['m1', 1],
      ['m2', 2],
      ['m3', 2],
      ['m4', 3],
      ['m5', 3],
    ]);
    expect(await replayProblems(early)).toEqual([]);
  } finally {
    await early.close();
  }
});

test('what only a worker answers ends with no-worker, a queued message is kept, and asking again with a worker works', async () => {
  // Of its own: a worker that has just been stopped still counts as one for a while.
  const lonely = await startWorld({ engine: 'temporal', answer: () => text('Good day.'), worker: false });
  const client = clientOf(lonely);
  // The server may still hand over a reset that nobody waits for any more, and it stops a turn: the message goes to another one.
  const [id, other] = [lonely.id(), lonely.id()];
  await client.start(id, { mode: 'stepping' });
  await client.start(other);
  const asked: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['reset', () => client.reset(id)],
    ['compact', () => client.compact(id)],
    ['step', () => client.step(id, { id: 's1' })],
    ['mode', () => client.setMode(id, 'auto')],
    ['dispatch', () => client.dispatch(id, { id: 'e1', type: 'ticket.opened' })],
    ['enqueue', () => client.enqueue(other, { id: 'm3', text: 'hello' })],
  ];
  const errors = await Promise.all(asked.map(([, ask]) => ask().then(String, (error: unknown) => error)));
  expect(errors.map((error) => (error as { kind?: unknown }).kind)).toEqual(asked.map(() => 'no-worker'));
  const texts = Object.fromEntries(asked.map(([name], at) => [name, String(errors[at])]));
  expect(texts['reset']).toContain(`cannot reset ${id}: no worker takes work from task queue ${lonely.taskQueue}`);
  expect(texts['compact']).toContain('look how the conversation stands before you ask again');
  expect(texts['step']).toContain('a step with the same id (s1) is this one');
  expect(texts['dispatch']).toContain('the same id (e1)');
  expect(texts['enqueue']).toContain('message m3 is kept');

  const stop = await lonely.startWorker();
  try {
    expect(await client.send(other, { id: 'm3', text: 'hello' })).toMatchObject({ text: 'Good day.', stopReason: 'end' });
    expect((await client.status(other)).turn).toBe(1);
    await client.setMode(id, 'auto');
    expect(await client.reset(id)).toMatchObject({ reply: 'Session cleared.' });
  } finally {
    await stop();
    await lonely.close();
  }
});

test('a signal that ends the wait still does, and nothing looks for a worker afterwards', async () => {
  const id = world.id();
  await client.start(id);
  const stop = new AbortController();
  const sent = client.send(id, 'hello', { signal: stop.signal });
  stop.abort();
  await expect(sent).rejects.toMatchObject({ kind: 'aborted' });
});
