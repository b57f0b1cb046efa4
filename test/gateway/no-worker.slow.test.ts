/** Where no worker is: every request has an answer within the patience of the client, it is true, and a message is answered once later. */
import { createGateway } from '../../src/gateway/app.js';
import { createClientWith } from '../../src/client.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { echo } from '../support/echo-model.js';
import { listedIds } from '../support/listed-ids.js';
import { post, requestsOf, rpc, said, user, type Request } from '../support/route-requests.js';
import { ask, byName } from '../support/tenants.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
let app: GatewayApp;

// One for each test: a worker that has just been stopped still counts as one for a while.
beforeEach(async () => {
  world = await startWorld({ engine: 'temporal', answer: (request) => echo(request), worker: false });
  const { temporal, taskQueue, store } = world;
  const client = createClientWith({
    ...{ client: temporal, namespace: 'default', taskQueue, store: () => store, workerPatienceMs: 500 },
    replay: () => Promise.resolve({ runs: [], problems: [] }),
  });
  app = createGateway({ client, authenticate: byName, agents: () => Promise.resolve(['default']), requestsPerMinute: 100_000 });
});
afterEach(() => world.close());

const answerTo = ({ method, path, ...asked }: Request) => ask(app, '/admin', method, path, asked);
const events = { accept: 'text/event-stream' };
const aisdk = (id: string): Request =>
  post('/api/chat', { id, messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: user.content }] }] });
const agui = (threadId: string): Request =>
  post('/agui', { threadId, runId: 'r', state: {}, context: [], tools: [], forwardedProps: {}, messages: [{ id: 'm', ...user }] });

/** Each begins a conversation. */
const SENT: readonly (readonly [string, (id: string) => Request])[] = [
  ['the native API', (id) => post(`/v1/conversations/${id}/messages?wait=0`, { text: 'hi', start: {} })],
  ['the native API, queued', (id) => post(`/v1/conversations/${id}/messages?mode=enqueue`, { text: 'hi', start: {} })],
  ['the native API, streamed', (id) => post(`/v1/conversations/${id}/messages`, { text: 'hi', start: {} }, events)],
  ['Chat Completions', () => post('/v1/chat/completions', { model: 'default', messages: [user], user: 'chat' })],
  ['Chat Completions, streamed', () => post('/v1/chat/completions', { model: 'default', messages: [user], user: 'stream', stream: true })],
  ['Responses', () => post('/v1/responses', { model: 'default', input: 'hi', user: 'responses' })],
  ['Responses, in the background', () => post('/v1/responses', { model: 'default', input: 'hi', user: 'later', background: true })],
  ['Messages', () => post('/v1/messages', { model: 'default', max_tokens: 9, messages: [user] })],
  ['the AI SDK', aisdk],
  ['AG-UI', agui],
  ['A2A', (id) => rpc('/a2a', 'SendMessage', { message: { ...said, messageId: id } })],
  ['A2A, streamed', (id) => rpc('/a2a', 'SendStreamingMessage', { message: { ...said, messageId: id } })],
];

test('every way to send says that no worker is there and that the message is kept, which is then answered once', async () => {
  const answers = await Promise.all(SENT.map(async ([name, request]) => [name, await answerTo(request(world.id()))] as const));
  for (const [name, { status, text }] of answers) {
    expect([name, text]).toEqual([name, expect.stringMatching(/no worker takes work.* is kept and answered/)]);
    // A stream may have begun by then.
    expect([name, text.includes('data: ') ? 503 : status]).toEqual([name, 503]);
  }
  const stop = await world.startWorker();
  try {
    const all = await listedIds(world.client);
    expect(all).toHaveLength(SENT.length);
    for (const id of all) {
      const { turns } = await waitFor(
        () => world.client.status(id),
        ({ turns: ended, queued }) => ended > 0 && queued === 0,
      );
      expect([id, turns]).toEqual([id, 1]);
    }
  } finally {
    await stop();
  }
});

test('no route fails without a worker, and none waits for one without an end', async () => {
  const id = world.id();
  await world.client.start(id);
  const routes = new Set(app.routes.filter(({ method }) => method !== 'ALL').map(({ method, path }) => `${method} ${path}`));
  const requests = [...routes].filter((route) => /:id|^POST \/(v1|mcp|a2a|api|agui)/.test(route) && !/events$|stream|close/.test(route));
  expect(requests.length).toBeGreaterThan(40);
  const asked = requests.flatMap((route) => requestsOf(route, id).map((request) => [route, request] as const));
  await Promise.all(
    asked.map(async ([route, request]) => {
      const { status, text } = await answerTo({ ...request, path: withWait(request.path) });
      expect([route, status, status >= 500 && status !== 503 ? text : '']).toEqual([route, status, '']);
    }),
  );
});

test('what a worker has never looked at has no past yet, and is told so in words', async () => {
  const id = world.id();
  await world.client.start(id);
  for (const path of ['moments', 'moments/0', 'context/changes', 'context/chunks']) {
    const { status, json } = await answerTo({ method: 'GET', path: `/v1/conversations/${id}/${path}` });
    expect([path, status === 409 || status === 503, json]).toEqual([
      path,
      true,
      { ...(json as object), detail: expect.stringMatching(/worker|history|nothing/) },
    ]);
  }
});

/** A turn that does not run is waited for as long as its client wants. */
function withWait(path: string): string {
  return /turns\/\w+$/.test(path) ? `${path}?wait=0` : path;
}
