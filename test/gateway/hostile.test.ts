/**
 * Every route of every protocol against strangers and broken clients: refused in words of the route's own protocol, before anything reaches a
 * conversation. The client behind the app throws when it is called. The table is made of `app.routes`: a route that is added is attacked too.
 */
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { createEntrance } from '../../src/gateway/access/entrance.js';
import type { Role } from '../../src/gateway/access/principal.js';
import { responseId } from '../../src/gateway/openai/responses.js';
import type { PerduraClient } from '../../src/client.js';
import { fakeInstallation, unreachedClient } from '../support/fake-client.js';
import { spentInMemory } from '../support/tenants.js';

const TOKEN = 'a-token-that-only-tests-have';
/** They are for those who have no token, or not yet. */
const OPEN = [
  '/openapi.json',
  '/',
  '/healthz',
  '/readyz',
  '/.well-known/agent-card.json',
  '/auth/code',
  '/auth/logout',
  '/auth/login',
  '/auth/callback',
];
const ID = 'there';

interface Route {
  readonly method: string;
  /** With parameters, as it was registered. */
  readonly pattern: string;
}

const faults: string[] = [];
const { client: unreached, reached } = unreachedClient();
/** One conversation is there, which tells nothing. */
const { client: told } = fakeInstallation({ conversations: [{ id: ID, tenant: null, publicId: null, title: '', owner: 'user' }] });

function gateway(client: PerduraClient, authenticate?: (token: string) => Promise<{ name: string; role: Role } | undefined>): GatewayApp {
  const entrance = createEntrance({ token: TOKEN, secrets: ['a-secret-that-only-tests-have'], spent: spentInMemory() });
  return createGateway({
    client,
    ...entrance,
    ...(authenticate && { authenticate }),
    requestsPerMinute: 1_000_000,
    log: (line) => faults.push(line),
    agents: () => Promise.resolve(['default']),
  });
}

const closed = gateway(unreached);
const open = gateway(told);
const routes: readonly Route[] = closed.routes
  .filter(({ path }) => path !== '/*')
  .map(({ method, path }) => ({ method: method === 'ALL' ? 'GET' : method, pattern: path }))
  .filter(({ method, pattern }, at, all) => all.findIndex((one) => one.method === method && one.pattern === pattern) === at);
const takesBody = ({ method }: Route): boolean => ['POST', 'PUT', 'PATCH'].includes(method);
/** A message of a protocol that is not the native one. */
const isForeign = ({ method, pattern }: Route): boolean =>
  method === 'POST' && /^\/(v1\/(chat\/|responses$|messages)|api\/chat$|agui$|a2a|mcp)/.test(pattern);
/** Of these a schema refuses what is not JSON of its shape. */
let described: ReadonlySet<string>;

beforeAll(async () => {
  const document = (await (await ask({ method: 'GET', pattern: '/openapi.json' })).json()) as {
    paths: Record<string, Record<string, { requestBody?: { content: object } }>>;
  };
  described = new Set(
    Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.entries(operations).flatMap(([method, { requestBody }]) =>
        'application/json' in (requestBody?.content ?? {}) ? [`${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`] : [],
      ),
    ),
  );
});
afterEach(() => {
  expect(faults.splice(0)).toEqual([]);
  expect(reached.splice(0)).toEqual([]);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});

/** With the ids of what there is, or `name` for each of them. */
function filled(pattern: string, name?: string): string {
  const id = pattern.startsWith('/v1/responses') ? responseId(ID, 'turn_0001') : ID;
  const known: Record<string, string> = { id, turn: 'turn_0001', messageId: 'm1', item: 'mem_x', scope: 'default' };
  return pattern.replace(/:(\w+)(\{[^}]*\})?/g, (_all, parameter: string) => name ?? known[parameter] ?? 'x').replace(/\*$/, 'x');
}

interface Asking {
  readonly headers?: Record<string, string>;
  readonly body?: string | ReadableStream;
  readonly token?: string | null;
  readonly to?: GatewayApp;
  readonly name?: string;
  readonly query?: string;
}

let peers = 0;

async function ask(route: Route, { headers = {}, body, token = TOKEN, to = closed, name, query = '' }: Asking = {}): Promise<Response> {
  // Each from an address of its own, which is not locked out for what others have sent.
  const remoteAddress = `10.${(peers += 1) >> 8}.${peers & 255}.1`;
  const init = {
    method: route.method,
    headers: {
      host: 'localhost',
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && takesBody(route) && { body, duplex: 'half' }),
  };
  const env = { incoming: { socket: { remoteAddress } } };
  return to.request(`http://localhost${filled(route.pattern, name)}${query}`, init as RequestInit, env);
}

const textOrNull = (value: unknown): unknown => (value === null ? null : expect.any(String));

/** Errors as the clients of each protocol read them; of a protocol that is not here, at least its words. */
const SHAPES: readonly (readonly [RegExp, (type: string, text: string, status: number) => void])[] = [
  [
    /^\/v1\/(chat|responses|models)(\/|$)/,
    (_type, text) => {
      const { error } = JSON.parse(text) as { error: { param: unknown; code: unknown } };
      const [param, code] = [textOrNull(error.param), textOrNull(error.code)];
      expect(error).toEqual({ message: expect.any(String), type: expect.stringMatching(/_error$/), param, code });
    },
  ],
  [
    /^\/v1\/messages(\/|$)/,
    (_type, text) =>
      expect(JSON.parse(text)).toEqual({
        type: 'error',
        error: { type: expect.stringMatching(/./), message: expect.any(String) },
        request_id: expect.stringMatching(/^req_/),
      }),
  ],
  [/^\/api\/chat(\/|$)/, (type, text) => expect([type.split(';')[0], text.length > 0]).toEqual(['text/plain', true])],
  [
    /^\/(v1|metrics|openapi|healthz|readyz|auth\/code)/,
    (type, text, status) => {
      expect(type).toBe('application/problem+json');
      const words = { title: expect.any(String), detail: expect.any(String) };
      expect(JSON.parse(text)).toEqual({ type: expect.stringMatching(/^urn:perdura:[a-z-]+$/), status, ...words });
    },
  ],
  [/^/, (_type, text) => expect(text.length).toBeGreaterThan(1)],
];

/** The status of an answer that is no fault, 200 for all that is well. A conversation that tells nothing (501) is none. */
async function statusOf(route: Route, response: Response): Promise<number> {
  const { status } = response;
  const name = { route: `${route.method} ${route.pattern}`, status };
  expect({ ...name, isFault: status >= 500 && status !== 501 }).toEqual({ ...name, isFault: false });
  if (status < 400) {
    await response.body?.cancel();
    return 200;
  }
  const text = await response.text();
  expect(text).not.toMatch(/\n\s+at |node_modules|\.[jt]s:\d|a-token-that/);
  expect(text.length).toBeLessThan(4_000);
  SHAPES.find(([paths]) => paths.test(route.pattern))?.[1](response.headers.get('content-type') ?? '', text, status);
  return status;
}

async function eachStatus(which: (route: Route) => boolean, asking: Asking): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {};
  for (const route of routes.filter(which)) {
    statuses[`${route.method} ${route.pattern}`] = await statusOf(route, await ask(route, asking));
  }
  return statuses;
}

/** Each of these routes, with that status. */
async function all(which: (route: Route) => boolean, asking: Asking, status: number): Promise<void> {
  const statuses = await eachStatus(which, asking);
  expect(Object.keys(statuses).length).toBeGreaterThan(10);
  expect(statuses).toEqual(Object.fromEntries(Object.keys(statuses).map((route) => [route, status])));
}

const isDescribed = ({ method, pattern }: Route): boolean => described.has(`${method} ${pattern}`);

test('every protocol is in the table', () => {
  expect(routes.length).toBeGreaterThan(80);
  const served = ['/v1/responses', '/v1/chat/completions', '/v1/messages', '/api/chat', '/mcp', '/a2a', '/agui', '/auth/code'];
  for (const path of ['/v1/conversations/:id/messages', ...served]) expect(routes.map(({ pattern }) => pattern)).toContain(path);
  expect(described.size).toBeGreaterThan(20);
});

describe('who may', () => {
  test.each([
    ['no token', null],
    ['a wrong token', 'wrong-wrong-wrong-wrong-wrong'],
    ['the beginning of the token', TOKEN.slice(0, -1)],
  ])('with %s nothing opens', async (_what, token) => {
    await all(({ pattern }) => !OPEN.includes(pattern), { token }, 401);
  });

  test('wrong tokens are counted, and too many of them answered with a time to wait', async () => {
    const one = gateway(unreached);
    const of = (token: string): Promise<Response> =>
      Promise.resolve(one.request('http://localhost/v1/agents', { headers: { host: 'localhost', authorization: `Bearer ${token}` } }));
    const statuses: number[] = [];
    for (let at = 0; at < 40; at += 1) statuses.push((await of(`wrong-${at}`)).status);
    expect(statuses).toEqual(Array.from({ length: 40 }, (_, at) => (at < 30 ? 401 : 429)));
    expect(Number((await of('wrong')).headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await of(TOKEN)).status).toBe(200);
  });

  test.each(['null', 'http://localhost.evil.com', 'http://evil.com', 'http://localhost:3000'])(
    'a page of origin %s changes nothing',
    (origin) => all(({ method }) => method !== 'GET', { headers: { origin } }, 403),
  );

  test.each(['evil.com', 'localhost.evil.com', ''])('under the name %j nothing is served, health neither', (host) =>
    all(() => true, { headers: { host } }, 403),
  );
});

test.each([TOKEN, null])(
  'with the token %j every answer is of the type that it names, and in no cache but where it says so',
  async (token) => {
    for (const route of routes) {
      const response = await ask(route, { token, to: open, ...(takesBody(route) && { body: '{}' }) });
      const careful = ['x-content-type-options', 'cache-control'].filter((name) => response.headers.has(name));
      expect([route.method, route.pattern, ...careful]).toEqual([route.method, route.pattern, 'x-content-type-options', 'cache-control']);
      await response.body?.cancel();
    }
  },
);

const callId = 'turn_0001/c1';
const resuming = (payload: object): object => ({
  ...{ threadId: ID, runId: 'run', messages: [], tools: [] },
  resume: [{ interruptId: callId, status: 'resolved', payload: { approved: true, ...payload } }],
});

test.each<[pattern: string, approving: object, changing: object]>([
  ['/v1/conversations/:id/decide', { callId, decision: 'approve' }, { callId, decision: 'approve', input: { to: 'Ada' } }],
  ['/agui', resuming({}), resuming({ editedArgs: { to: 'Ada' } })],
])('by %s the arguments of a call are changed by operators alone', async (pattern, approving, changing) => {
  const statusFor = async (role: Role, body: object): Promise<number> => {
    const to = gateway(told, () => Promise.resolve({ name: role, role }));
    const response = await ask({ method: 'POST', pattern }, { to, body: JSON.stringify(body) });
    await response.body?.cancel();
    return response.status;
  };
  expect(await statusFor('user', changing)).toBe(403);
  for (const status of [await statusFor('operator', changing), await statusFor('user', approving)])
    expect([400, 403]).not.toContain(status);
});

describe('bodies', () => {
  test.each([
    ['broken JSON', '{"text":'],
    ['a bare word', 'undefined'],
    ['JSON that is 200,000 deep', '['.repeat(200_000) + ']'.repeat(200_000)],
    ['an array', '[1]'],
    ['null', 'null'],
    ['a number', '1e999'],
    ['a string', '"x"'],
    ['a field that is not known', '{"unknown_field":1}'],
    [
      'fields of wrong types',
      '{"text":1,"id":{},"start":[],"to":7,"at":false,"callId":[],"decision":{},"type":1,"chunks":"x","title":[],"messages":{},"input":7,"model":[],"method":3,"jsonrpc":2,"stream":"x","params":[]}',
    ],
    ['a field 200,000 deep', `{"text":"x","payload":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
    ['an object 100,000 deep', `{"text":"x","payload":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`],
    ['a prototype', '{"unknown_field":{"a":1},"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'],
  ])('%s is refused by every route that takes one', async (_what, body) => {
    await all(isDescribed, { body }, 400);
    const others = await eachStatus(isForeign, { body });
    expect(Object.keys(others).length).toBeGreaterThan(8);
    expect(Object.entries(others).filter(([, status]) => status === 200)).toEqual([]);
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', '\u00ff'])(
    'of type %j it is no fault, and no message',
    async (type) => {
      await eachStatus(takesBody, { body: '{"unknown_field":1}', headers: { 'content-type': type }, to: open });
    },
  );

  test.each<Record<string, string>>([{}, { 'content-length': '11534336' }])('11 MB are refused, with %j', async (headers) => {
    // A file is counted as it comes (uploads/), and nothing is read to sign out.
    await all(
      (route) => takesBody(route) && !['/v1/attachments', '/auth/logout'].includes(route.pattern),
      { body: 'x'.repeat(11 * 1024 * 1024), headers },
      413,
    );
  });

  test('of one without an end no more is read than a request may have', async () => {
    let read = 0;
    const endless = new ReadableStream({
      pull(controller) {
        read += 65_536;
        controller.enqueue(new Uint8Array(65_536).fill(32));
      },
    });
    const route = { method: 'POST', pattern: '/v1/conversations/:id/fork' };
    expect(await statusOf(route, await ask(route, { body: endless, headers: { 'transfer-encoding': 'chunked' } }))).toBe(413);
    expect(read).toBeLessThan(2_000_000);
  });

  // @rule gateway/bounded-bodies
  test.each([null, 'a-wrong-one'])('of one with the token %j nothing is read', async (token) => {
    let read = 0;
    for (const route of routes.filter((one) => takesBody(one) && !OPEN.includes(one.pattern))) {
      const body = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array((read += 1))) }, { highWaterMark: 0 });
      const response = await ask(route, { body, token, headers: { 'transfer-encoding': 'chunked' } });
      expect([route.pattern, response.status, response.headers.get('connection')]).toEqual([route.pattern, 401, 'close']);
    }
    expect(read).toBe(0);
  });

  test.each(['__proto__', 'constructor', 'prototype'])('%s in what is taken changes no prototype', async (name) => {
    const body = `{"text":"x","type":"t","context":{"${name}":{"polluted":1}},"payload":{"${name}":{"polluted":1}}}`;
    await eachStatus(takesBody, { body, to: open, query: '?mode=enqueue' });
  });
});

test.each([
  '..%2f..%2fetc%2fpasswd',
  '__proto__',
  '%00',
  'x'.repeat(5_000),
  '%F0%9F%92%A9',
  "a'%20OR%20'1'='1",
  '%E0%A4%A',
  '*',
  'resp_AAAA',
  'memory:default',
])('the absurd id at %# is no fault', async (name) => {
  const statuses = await eachStatus(({ pattern }) => pattern.includes(':'), { body: '{}', to: open, name });
  expect(Object.keys(statuses).length).toBeGreaterThan(40);
});

test.each(['wait=-1', 'wait=NaN', 'limit=1e9', 'after=__proto__', 'after=-1', 'branch=x', 'mode=x', 'by=x', 'since=never'])(
  'the query %s is no fault',
  async (query) => void (await eachStatus(({ method }) => method === 'GET', { to: open, query: `?${query}` })),
);

test.each(['1-1', '999999999999999-999999999999999', '$', '__proto__', '\u00ff', 'x'.repeat(5_000)])(
  'the invented cursor at %# is no fault',
  async (cursor) => {
    await eachStatus(({ method }) => method === 'GET', { to: open, headers: { 'last-event-id': cursor } });
    for (const query of [`?conversation=${ID}`, `?stream=true&starting_after=${encodeURIComponent(cursor)}`]) {
      await eachStatus(({ pattern }) => ['/v1/events', '/v1/responses/:id'].includes(pattern), { to: open, query });
    }
  },
);

test('a method that a path does not have is refused', async () => {
  for (const pattern of new Set(routes.map((route) => route.pattern))) {
    const known = routes.filter((route) => route.pattern === pattern).map(({ method }) => method);
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((one) => !known.includes(one))) {
      const status = await statusOf({ method, pattern }, await ask({ method, pattern }));
      expect({ method, pattern, isRefused: [404, 405].includes(status) }).toEqual({ method, pattern, isRefused: true });
    }
  }
});
