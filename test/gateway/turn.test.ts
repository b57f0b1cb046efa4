/** A conversation over HTTP, with a real worker and a real server: sent, streamed, read, steered. */
import type { ConversationEvent } from '../../src/conversation/event.js';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { text } from '../support/provider-apis/reply.js';
import { saidIn } from '../support/echo-model.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
let world: World;
let app: GatewayApp;
const events: { readonly conversation: string; readonly event: ConversationEvent }[] = [];

beforeAll(async () => {
  world = await startWorld({
    answer: (request) => text(`You said ${saidIn(request).at(-1)}.`),
    observe: (conversation, event) => void events.push({ conversation, event }),
  });
  app = createGateway({ client: world.client, authenticate: oneToken(TOKEN) });
});
afterAll(() => world.close());

const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  Promise.resolve(
    app.request(`http://localhost${path}`, {
      method,
      headers: { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
  );

test('a message is answered, and the same id again is the same answer', async () => {
  const id = world.id();
  const sent = await ask('POST', `/v1/conversations/${id}/messages`, { id: 'm1', text: 'hello', start: {} });
  expect(sent.status).toBe(200);
  expect(await sent.json()).toMatchObject({ turnId: 'turn_0001', text: 'You said hello.', stopReason: 'end' });
  const again = await ask('POST', `/v1/conversations/${id}/messages`, { id: 'm1', text: 'hello', start: {} });
  expect(await again.json()).toMatchObject({ turnId: 'turn_0001', text: 'You said hello.' });
  expect(await (await ask('GET', `/v1/conversations/${id}`)).json()).toMatchObject({ id, state: 'running', status: { turns: 1 } });
});

test('how a turn ended is read without waiting, and what is not there is not found', async () => {
  const id = world.id();
  await ask('POST', `/v1/conversations/${id}/messages`, { text: 'hello', start: {} });
  const read = (of: string, turn: string): Promise<Response> => ask('GET', `/v1/conversations/${of}/turns/${turn}?wait=0`);
  const ended = await read(id, 'turn_0001');
  expect([ended.status, await ended.json()]).toEqual([200, expect.objectContaining({ turnId: 'turn_0001', text: 'You said hello.' })]);
  for (const [of, turn] of [
    [id, 'turn_0002'],
    [id, 'turn_0009'],
    [world.id(), 'turn_0001'],
  ] as const) {
    const missing = await read(of, turn);
    expect([turn, missing.status, await missing.json()]).toEqual([turn, 404, expect.objectContaining({ title: 'not-found', status: 404 })]);
  }
});

test('the trace of a request goes with its message; a header that is none is passed over', async () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const of = async (header: string): Promise<unknown> => {
    const id = world.id();
    const sent = await ask('POST', `/v1/conversations/${id}/messages`, { text: 'hello', start: {} }, { traceparent: header });
    expect(sent.status).toBe(200);
    return events.find(({ conversation, event }) => conversation === id && event.kind === 'message-received')?.event;
  };
  expect(await of(traceparent)).toMatchObject({ traceparent });
  expect(await of('00-not-a-trace')).not.toHaveProperty('traceparent');
});

test('a streamed turn ends with the whole answer', async () => {
  const id = world.id();
  const response = await ask('POST', `/v1/conversations/${id}/messages`, { text: 'stream', start: {} }, { accept: 'text/event-stream' });
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const body = await response.text();
  expect(body).toContain('event: submitted');
  expect(body.match(/event: turn-finished/g)).toHaveLength(1);
  expect(body).toMatch(/event: turn-finished\ndata: .*"text":"You said stream\."/);
});

test('sent again, a message is streamed from its beginning, as it was', async () => {
  const id = world.id();
  const once = { id: 'm1', text: 'again', start: {} };
  const said = async (): Promise<string[]> => {
    const response = await ask('POST', `/v1/conversations/${id}/messages`, once, { accept: 'text/event-stream' });
    return [...(await response.text()).matchAll(/event: (?:message|text|turn-finished)\n(data: .*)/g)].map(([, data = '']) => data);
  };
  const first = await said();
  expect(first.length).toBeGreaterThan(2);
  expect(await said()).toEqual(first);
});

test.each(['of another conversation', '1-1', '999999999999999-999999999999999', '$', '__proto__', '0-0', '\u00ff', 'x'.repeat(5_000)])(
  'a reader that comes with the cursor %# has the whole answer all the same, once',
  async (given) => {
    const [id, other] = [world.id(), world.id()];
    await ask('POST', `/v1/conversations/${id}/messages`, { text: 'hello', start: {} });
    if (given === 'of another conversation') await ask('POST', `/v1/conversations/${other}/messages`, { text: 'other', start: {} });
    const cursor = given === 'of another conversation' ? await world.client.newestCursor(other) : given;
    const response = await ask('GET', `/v1/conversations/${id}/turns/turn_0001/events`, undefined, { 'last-event-id': cursor });
    expect((await response.text()).match(/event: turn-finished\ndata: .*"text":"You said hello\."/g)).toHaveLength(1);
  },
);

test('the same id, sent twenty times at once, also in place of a start, is one turn', async () => {
  const path = `/v1/conversations/${world.id()}/messages`;
  const before = world.api.hits.length;
  const send = async (): Promise<unknown> => (await ask('POST', path, { id: 'once', text: 'once', start: {} })).json();
  for (const answer of await Promise.all(Array.from({ length: 20 }, send))) {
    expect(answer).toMatchObject({ turnId: 'turn_0001', text: 'You said once.' });
  }
  expect(world.api.hits).toHaveLength(before + 1);
});

test('a message that is refused begins no conversation', async () => {
  const id = world.id();
  const payload = JSON.parse('['.repeat(500) + ']'.repeat(500)) as unknown;
  expect((await ask('POST', `/v1/conversations/${id}/messages`, { text: 'deep', payload, start: {} })).status).toBe(400);
  expect((await ask('GET', `/v1/conversations/${id}`)).status).toBe(404);
});

test('/new clears the session, and with a picture beside it is a message', async () => {
  const id = world.id();
  await ask('POST', `/v1/conversations/${id}/messages`, { text: 'hello', start: {} });
  const cleared = await ask('POST', `/v1/conversations/${id}/messages`, { text: '/new' });
  expect(await cleared.json()).toMatchObject({ turnId: null, text: 'Session cleared.', stopReason: 'reset' });
  expect((await world.client.status(id)).session).toBe(2);
  const images = [{ mediaType: 'image/png', base64: 'iVBORw0KGgo=' }];
  const pictured = await ask('POST', `/v1/conversations/${id}/messages`, { text: '/new', images });
  expect(await pictured.json()).toMatchObject({ turnId: 'turn_0002', stopReason: 'end' });
  expect((await world.client.status(id)).session).toBe(2);
});

test('what can be done is described', async () => {
  const doc = (await (await ask('GET', '/openapi.json')).json()) as { paths: object };
  expect(Object.keys(doc.paths).length).toBeGreaterThan(30);
});
