/** What strangers and broken clients send, to every route that there is: refused in words (RFC 9457), never a fault of ours. */
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/tokens.js';
import { saidIn } from '../support/echo-model.js';
import { text } from '../support/provider-apis/reply.js';
import { startWorld, type World } from '../support/world.js';

jest.setTimeout(180_000);

const TOKEN = 'a-token-that-only-tests-have';
const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
const STREAM = 'text/event-stream';

interface Route {
  readonly method: string;
  /** With ids of things that there are, as far as they can be known. */
  readonly path: string;
  /** Of JSON: a file is whatever it is. */
  readonly hasBody: boolean;
  readonly streams: boolean;
}

let world: World;
let app: GatewayApp;
let id: string;
let routes: readonly Route[];
const faults: string[] = [];
/** What the model was asked. */
const asked: string[] = [];

beforeAll(async () => {
  world = await startWorld({
    answer: (request) => {
      const said = saidIn(request).at(-1) ?? '';
      asked.push(said);
      return text(`You said: ${said}`);
    },
  });
  app = gateway();
  id = world.id();
  await world.client.send(id, { id: 'm1', text: 'hello' }, { start: {} });
  routes = await allRoutes();
});
afterAll(() => world.close());
afterEach(() => expect(faults.splice(0)).toEqual([]));

function gateway(): GatewayApp {
  return createGateway({
    client: world.client,
    authenticate: oneToken(TOKEN),
    requestsPerMinute: 1_000_000,
    log: (line) => faults.push(line),
  });
}

interface Asking {
  readonly headers?: Record<string, string>;
  readonly body?: string | ReadableStream;
  readonly token?: string | null;
  readonly to?: GatewayApp;
}

async function ask(method: string, path: string, { headers = {}, body, token = TOKEN, to = app }: Asking = {}): Promise<Response> {
  return to.request(`http://localhost${path}`, {
    method: method.toUpperCase(),
    headers: {
      host: 'localhost',
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body, duplex: 'half' }),
  } as RequestInit);
}

async function allRoutes(): Promise<Route[]> {
  const { paths } = (await (await ask('get', '/openapi.json')).json()) as { paths: Record<string, Record<string, OpenApiOperation>> };
  const values: Record<string, string> = { id, turn: 'turn_0001', messageId: 'm1', item: 'mem_x', scope: 'default' };
  return Object.entries(paths).flatMap(([path, operations]) =>
    METHODS.flatMap((method) => {
      const operation = operations[method];
      if (operation === undefined) return [];
      const filled = path.replace(/\{(\w+)\}/g, (_all, name: string) => values[name] ?? 'x');
      const streams = Object.values(operation.responses).some(({ content }) => content !== undefined && STREAM in content);
      return [{ method, path: filled, hasBody: 'application/json' in (operation.requestBody?.content ?? {}), streams }];
    }),
  );
}

interface OpenApiOperation {
  readonly requestBody?: { content: object };
  readonly responses: Record<string, { readonly content?: Record<string, object> }>;
}

/** A refusal as RFC 9457 has it, which gives nothing away. */
async function refusal(response: Response): Promise<number> {
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  const body = (await response.json()) as { type: string; title: string; status: number; detail: string };
  expect(body).toEqual({
    type: expect.stringMatching(/^urn:perdura:[a-z-]+$/),
    title: expect.any(String),
    status: response.status,
    detail: expect.any(String),
  });
  expect(body.detail).not.toMatch(/\n\s+at |node_modules|\.[jt]s:\d|a-token-that/);
  expect(body.detail.length).toBeLessThan(2_000);
  return response.status;
}

/** It may be what the route takes; if not, it is refused in words. */
async function notAFault(route: Route, response: Response): Promise<void> {
  const what = { route: `${route.method} ${route.path}`, status: response.status };
  if (response.ok) {
    expect(what.status).toBeLessThan(300);
    await response.body?.cancel();
  } else {
    const { status } = what;
    expect({ ...what, isRefused: status >= 400 && status < 500 }).toMatchObject({ ...what, isRefused: true });
    await refusal(response);
  }
}

test('there are many routes, and each is attacked below', () => {
  expect(routes.length).toBeGreaterThan(35);
});

test.each([
  ['no token', null],
  ['a wrong token', 'wrong-wrong-wrong-wrong-wrong'],
  ['the beginning of the token', TOKEN.slice(0, -1)],
])('with %s no route opens', async (_what, token) => {
  for (const { method, path } of routes) {
    const response = await ask(method, path, { token, to: gateway(), headers: { 'x-real-ip': '1.2.3.4' } });
    expect({ method, path, status: await refusal(response) }).toEqual({ method, path, status: 401 });
  }
});

test('wrong tokens are counted, and too many of them answered with a time to wait', async () => {
  const one = gateway();
  const statuses: number[] = [];
  for (let at = 0; at < 40; at += 1) statuses.push(await refusal(await ask('get', '/v1/agents', { token: `wrong-${at}`, to: one })));
  expect(statuses.filter((status) => status === 401)).toHaveLength(30);
  expect(statuses.at(-1)).toBe(429);
  expect(Number((await ask('get', '/v1/agents', { token: 'wrong', to: one })).headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await ask('get', '/v1/agents', { to: one })).status).toBe(200);
});

test.each([
  ['null', 403],
  ['http://localhost.evil.com', 403],
  ['http://evil.com', 403],
  ['http://localhost:3000', 403],
])('a page of origin %s changes nothing', async (origin, status) => {
  for (const { method, path } of routes.filter((route) => route.method !== 'get')) {
    expect(await refusal(await ask(method, path, { headers: { origin } }))).toBe(status);
  }
});

test.each(['evil.com', 'localhost.evil.com', ''])('under the name %j nothing is served, health neither', async (host) => {
  for (const path of ['/healthz', '/v1/agents']) expect(await refusal(await ask('get', path, { headers: { host } }))).toBe(403);
});

const BAD_JSON: readonly [string, string][] = [
  ['broken JSON', '{"text":'],
  ['a bare word', 'undefined'],
  ['JSON that is 200,000 deep', '['.repeat(200_000) + ']'.repeat(200_000)],
  ['an array', '[]'],
  ['null', 'null'],
  ['a number', '1e999'],
  ['a string', '"x"'],
  ['a field that is not known', '{"unknown_field":1}'],
  ['values of wrong types', '{"text":1,"id":{},"start":[],"to":7,"at":false,"callId":[],"decision":{},"type":1,"chunks":"x","title":[]}'],
  ['a field 200,000 deep', `{"text":"x","payload":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
  ['an object 100,000 deep', `{"text":"x","payload":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`],
];

test.each(BAD_JSON)('%s as a body is refused by every route that takes one', async (_what, body) => {
  for (const route of routes.filter(({ hasBody }) => hasBody)) {
    const response = await ask(route.method, route.path, { body });
    const { method, path } = route;
    expect({ method, path, status: response.status }).toEqual({ method, path, status: 400 });
    await refusal(response);
  }
});

test.each([
  ['text', { 'content-type': 'text/plain' }],
  ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
  ['files', { 'content-type': 'multipart/form-data; boundary=x' }],
  ['nothing that has a name', { 'content-type': '\u00ff' }],
])('a body that says it is %s is no fault', async (_what, headers) => {
  for (const route of routes.filter(({ hasBody, path }) => hasBody && !path.endsWith('/retry'))) {
    await notAFault(route, await ask(route.method, route.path, { body: '{"unknown_field":1}', headers }));
  }
});

test.each([
  ['11 MB', () => 'x'.repeat(11_000_000), {}],
  ['11 MB, as it says itself', () => 'x'.repeat(11_000_000), { 'content-length': '11000000' }],
])('a body of %s is refused', async (_what, body, headers) => {
  for (const { method, path } of routes.filter((route) => route.method !== 'get')) {
    const response = await ask(method, path, { body: body(), headers });
    expect({ method, path, status: await refusal(response) }).toEqual({ method, path, status: 413 });
  }
});

test('of a body without an end no more is read than a request may have', async () => {
  let read = 0;
  const endless = new ReadableStream({
    pull(controller) {
      read += 65_536;
      controller.enqueue(new Uint8Array(65_536).fill(32));
    },
  });
  const response = await ask('post', `/v1/conversations/${id}/messages`, { body: endless, headers: { 'transfer-encoding': 'chunked' } });
  expect(await refusal(response)).toBe(413);
  expect(read).toBeLessThan(2_000_000);
});

test.each(['__proto__', 'constructor', 'prototype'])('%s in a body changes no prototype', async (name) => {
  for (const route of routes.filter(({ hasBody, path }) => hasBody && !path.endsWith('/retry'))) {
    for (const body of [`{"${name}":{"polluted":1}}`, `{"text":"x","type":"t","context":{"${name}":{"polluted":1}}}`]) {
      const response = await ask(route.method, `${route.path}${route.path.endsWith('/messages') ? '?mode=enqueue' : ''}`, { body });
      await notAFault(route, response);
    }
  }
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});

const BAD_IDS = [
  '..%2f..%2fetc%2fpasswd',
  '__proto__',
  '%00',
  'x'.repeat(5_000),
  '%F0%9F%92%A9',
  "a'%20OR%20'1'='1",
  'memory:default',
  '%E0%A4%A',
  '*',
];

test.each(BAD_IDS)('the id %s is refused by every route', async (bad) => {
  for (const route of routes.filter(({ path }) => path.includes(id))) {
    const response = await ask(route.method, route.path.replace(id, bad), route.hasBody ? { body: '{}' } : {});
    await notAFault(route, response);
  }
});

test('a query that is no query is refused', async () => {
  for (const query of ['wait=-1', 'wait=NaN', 'limit=1e9', 'after=__proto__', 'after=-1', 'branch=x', 'mode=x', 'by=x', 'since=never']) {
    for (const route of routes.filter(({ method }) => method === 'get')) {
      await notAFault(route, await ask('get', `${route.path}?${query}`));
    }
  }
});

describe('cursors', () => {
  const endOf = async (headers: Record<string, string>, query = ''): Promise<string[]> => {
    const response = await ask('get', `/v1/conversations/${id}/turns/turn_0001/events${query}`, { headers });
    expect(response.status).toBe(200);
    return (await response.text()).split('\n\n').filter((frame) => frame.includes('event: turn-finished'));
  };

  test('one of another conversation, or an invented one, brings the whole answer all the same, once', async () => {
    const other = world.id();
    for (let at = 0; at < 3; at += 1) await world.client.send(other, { text: `other ${at}` }, at === 0 ? { start: {} } : {});
    const foreign = await world.client.newestCursor(other);
    for (const cursor of [
      foreign,
      '1-1',
      '999999999999999-999999999999999',
      '$',
      'x',
      '__proto__',
      '-',
      '0-0',
      '\u00ff',
      'x'.repeat(5_000),
    ]) {
      const ends = await endOf({ 'last-event-id': cursor });
      expect(ends).toHaveLength(1);
      expect(ends[0]).toContain('"text":"You said: hello"');
    }
  });

  test('positions of many conversations that are invented are not looked at', async () => {
    for (const given of ['x', Buffer.from('[["__proto__","0"]]').toString('base64url'), Buffer.from('{}').toString('base64url')]) {
      const response = await ask('get', `/v1/events?conversation=${id}`, { headers: { 'last-event-id': given } });
      expect(response.status).toBe(200);
      await response.body?.cancel();
    }
  });
});

test('the same id, sent twenty times at once, also in place of a start, is one turn', async () => {
  const own = world.id();
  const body = JSON.stringify({ id: 'once', text: 'once', start: {} });
  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => (await ask('post', `/v1/conversations/${own}/messages`, { body })).json()),
  );
  for (const answer of answers) expect(answer).toMatchObject({ turnId: 'turn_0001', text: 'You said: once' });
  expect(asked.filter((said) => said === 'once')).toHaveLength(1);
});
