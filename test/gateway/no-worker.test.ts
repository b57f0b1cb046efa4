/** Without a worker a client of each protocol has its answer after the 30 seconds of the docs, by a clock that the test moves. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createClientWith, WORKER_PATIENCE_MS } from '../../src/client.js';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { post, said, rpc, user, type Request } from '../support/route-requests.js';
import { ask, byName } from '../support/tenants.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
let app: GatewayApp;

beforeAll(async () => {
  world = await startWorld({ engine: 'memory', worker: false });
  const { temporal, taskQueue, store } = world;
  // The patience that `perdura serve` has.
  const client = createClientWith({
    client: temporal,
    namespace: 'default',
    taskQueue,
    store: () => store,
    workerPatienceMs: WORKER_PATIENCE_MS,
  });
  app = createGateway({ client, authenticate: byName, agents: () => Promise.resolve(['default']) });
});
afterAll(() => world.close());
afterEach(() => jest.useRealTimers());

/** Seconds by the test's clock until it is there. */
async function untilAnswered<T>(answer: Promise<T>): Promise<readonly [T, number]> {
  let isThere = false;
  const settled = answer.finally(() => (isThere = true));
  settled.catch(() => undefined);
  let seconds = 0;
  for (; !isThere && seconds < 120; seconds += 1) {
    await jest.advanceTimersByTimeAsync(1_000);
    // What is done beside timers takes real time.
    await sleep(5);
  }
  if (!isThere) throw new Error('two minutes have brought no answer');
  return [await settled, seconds];
}

const events = { accept: 'text/event-stream' };

test.each<[string, (id: string) => Request]>([
  ['native', (id) => post(`/v1/conversations/${id}/messages`, { text: 'hi', start: {} })],
  ['native, streamed', (id) => post(`/v1/conversations/${id}/messages`, { text: 'hi', start: {} }, events)],
  ['Chat Completions', () => post('/v1/chat/completions', { model: 'default', messages: [user] })],
  ['Responses', () => post('/v1/responses', { model: 'default', input: 'hi' })],
  ['Messages', () => post('/v1/messages', { model: 'default', max_tokens: 9, messages: [user] })],
  ['Messages, streamed', () => post('/v1/messages', { model: 'default', max_tokens: 9, messages: [user], stream: true })],
  ['A2A', (id) => rpc('/a2a', 'SendMessage', { message: { ...said, messageId: id } })],
])('%s', async (_name, request) => {
  const { method, path, ...asked } = request(world.id());
  jest.useFakeTimers({ doNotFake: ['Date', 'nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate', 'performance', 'hrtime'] });
  const [{ status, text }, seconds] = await untilAnswered(ask(app, '/admin', method, path, asked));
  expect(text).toMatch(/no worker takes work.*start one.* is kept and answered/);
  expect(text.includes('data: ') ? 503 : status).toBe(503);
  expect([seconds >= 30, seconds <= 60]).toEqual([true, true]);
});
