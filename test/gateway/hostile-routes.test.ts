/**
 * Every route that the app has, of every protocol, against everything that clients get wrong: an answer in words of the route's own
 * protocol, never a fault. The table is made of `app.routes`, so that a route which is added is attacked too.
 */
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { createEntrance } from '../../src/gateway/access/entrance.js';
import { createLimits } from '../../src/gateway/access/limits.js';
import { responseId } from '../../src/gateway/openai/response-id.js';
import { echo } from '../support/echo-model.js';
import { startWorld, type World } from '../support/world.js';

jest.setTimeout(120_000);

const TOKEN = 'a-token-that-only-tests-have';
/** They are for those who have no token, or not yet. */
const OPEN = ['/', '/healthz', '/readyz', '/.well-known/agent-card.json', '/auth/code', '/auth/logout', '/auth/login', '/auth/callback'];

interface Route {
  readonly method: string;
  /** With parameters, as it was registered. */
  readonly pattern: string;
}

let world: World;
let app: GatewayApp;
let routes: readonly Route[];
let id: string;
let foreign: string;
const faults: string[] = [];

const gateway = (): GatewayApp =>
  createGateway({
    client: world.client,
    ...createEntrance({ token: TOKEN, secret: 'a-secret-that-only-tests-have', createLimiter: createLimits() }),
    requestsPerMinute: 1_000_000,
    log: (line) => faults.push(line),
    agents: () => Promise.resolve(['default']),
  });

beforeAll(async () => {
  world = await startWorld({ answer: (request) => echo(request) });
  app = gateway();
  id = world.id();
  const other = world.id();
  await Promise.all([id, other].map((one) => world.client.send(one, { id: 'm1', text: 'hello' }, { start: {} })));
  await world.client.send(other, 'hello again');
  foreign = await world.client.newestCursor(other);
  routes = app.routes
    .filter(({ path }) => path !== '/*')
    .map(({ method, path }) => ({ method: method === 'ALL' ? 'GET' : method, pattern: path }))
    .filter(({ method, pattern }, at, all) => all.findIndex((one) => one.method === method && one.pattern === pattern) === at);
});
afterAll(() => world.close());
afterEach(async () => {
  expect(faults.splice(0)).toEqual([]);
  // It lives, and answers as before.
  expect((await app.request('http://localhost/healthz', { headers: { host: 'localhost' } })).status).toBe(200);
});

/** With the ids of what there is, or `name` for each of them. */
function filled(pattern: string, name?: string): string {
  const known: Record<string, string> = {
    id: pattern.startsWith('/v1/responses') ? responseId(id, 'turn_0001') : id,
    turn: 'turn_0001', messageId: 'm1', item: 'mem_x', scope: 'default',
  }; // prettier-ignore
  return pattern.replace(/:(\w+)(\{[^}]*\})?/g, (_all, parameter: string) => name ?? known[parameter] ?? 'x').replace(/\*$/, 'x');
}

interface Asking {
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly token?: string | null;
  readonly to?: GatewayApp;
}

/** What takes longer than this waits for something that it may wait for; it is left, as clients do. */
const PATIENCE_MS = 1_500;

/** Undefined where it is still being answered. */
async function ask(
  method: string,
  path: string,
  { headers = {}, body, token = TOKEN, to = app }: Asking = {},
): Promise<Response | undefined> {
  const leave = new AbortController();
  const asked = Promise.resolve(
    to.request(`http://localhost${path}`, {
      method,
      signal: leave.signal,
      headers: {
        host: 'localhost',
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && !['GET', 'HEAD'].includes(method) && { body }),
    }),
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, PATIENCE_MS, undefined)));
  const response = await Promise.race([asked, late]);
  clearTimeout(timer);
  if (response?.headers.get('content-type')?.startsWith('text/event-stream')) await response.body?.cancel();
  leave.abort();
  asked.catch(() => undefined);
  return response;
}

const textOrNull = (value: unknown): unknown => (value === null ? null : expect.any(String));

/** Errors as the clients of each protocol read them; of a protocol that is not here, at least its words. */
const SHAPES: readonly (readonly [RegExp, (type: string, text: string, status: number) => void])[] = [
  [
    /^\/v1\/(chat|responses|models)(\/|$)/,
    (_type, text) => {
      const { error } = JSON.parse(text) as { error: { param: unknown; code: unknown } };
      expect(JSON.parse(text)).toEqual({
        error: {
          message: expect.any(String),
          type: expect.stringMatching(/_error$/),
          param: textOrNull(error.param),
          code: textOrNull(error.code),
        },
      });
    },
  ],
  [
    /^\/v1\/messages(\/|$)/,
    (_type, text) =>
      expect(JSON.parse(text)).toEqual({ type: 'error', error: { type: expect.stringMatching(/./), message: expect.any(String) } }),
  ],
  [/^\/api\/chat(\/|$)/, (type, text) => expect([type.split(';')[0], text.length > 0]).toEqual(['text/plain', true])],
  [
    /^\/(v1|metrics|openapi|healthz|readyz)/,
    (type, text, status) => {
      expect(type).toBe('application/problem+json');
      expect(JSON.parse(text)).toEqual({
        type: expect.stringMatching(/^urn:perdura:[a-z-]+$/), title: expect.any(String), status, detail: expect.any(String),
      }); // prettier-ignore
    },
  ],
  [/^/, (_type, text) => expect(text.length).toBeGreaterThan(1)],
];

/** The status, of an answer that is no fault; 0 where it is not there yet, 200 of all that is well. */
async function statusOf(route: Route, response: Response | undefined): Promise<number> {
  if (response === undefined) return 0;
  const { status } = response;
  const name = { route: `${route.method} ${route.pattern}`, status };
  expect({ ...name, isFault: status >= 500 }).toEqual({ ...name, isFault: false });
  if (status < 400) return 200;
  const text = await response.text();
  expect(text).not.toMatch(/\n\s+at |node_modules|\.[jt]s:\d|a-token-that/);
  expect(text.length).toBeLessThan(4_000);
  SHAPES.find(([paths]) => paths.test(route.pattern))?.[1](response.headers.get('content-type') ?? '', text, status);
  return status;
}

const takesBody = ({ method }: Route): boolean => ['POST', 'PUT', 'PATCH'].includes(method);
/** What needs no body makes something of the id alone. */
const eachStatus = async (which: (route: Route) => boolean, asking: Asking, name?: string): Promise<Record<string, number>> =>
  Object.fromEntries(
    await Promise.all(
      routes.filter(which).map(async (route) => {
        const response = await ask(route.method, filled(route.pattern, name), asking);
        return [`${route.method} ${route.pattern}`, await statusOf(route, response)] as const;
      }),
    ),
  );

test('every protocol is in the table', () => {
  expect(routes.length).toBeGreaterThan(50);
  for (const path of [
    '/v1/conversations/:id/messages',
    '/v1/responses',
    '/v1/chat/completions',
    '/v1/messages',
    '/api/chat',
    '/mcp',
    '/a2a',
    '/agui',
    '/auth/code',
  ])
    expect(routes.map(({ pattern }) => pattern)).toContain(path);
});

test.each([
  ['no token', null],
  ['a wrong token', 'wrong-wrong-wrong-wrong-wrong'],
])('with %s nothing opens', async (_what, token) => {
  for (const route of routes.filter(({ pattern }) => !OPEN.includes(pattern))) {
    const response = await ask(route.method, filled(route.pattern), { token, to: gateway() });
    const { method, pattern } = route;
    expect({ method, pattern, status: await statusOf(route, response) }).toEqual({ method, pattern, status: 401 });
  }
});

test.each([
  ['broken JSON', '{"text":'],
  ['an array', '[1]'],
  ['null', 'null'],
  ['a string', '"x"'],
  ['JSON that is 100,000 deep', '['.repeat(100_000) + ']'.repeat(100_000)],
  ['fields of wrong types', '{"text":1,"messages":{},"input":7,"model":[],"method":3,"jsonrpc":2,"id":{},"stream":"x","params":[]}'],
  ['fields that are not known', '{"unknown_field":{"a":1},"__proto__":{"polluted":1}}'],
])('%s is no fault, and is not taken for a message', async (_what, body) => {
  const before = world.api.hits.length;
  await eachStatus(takesBody, { body });
  expect(world.api.hits).toHaveLength(before);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});

test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', '\u00ff'])(
  'a body of type %j is no fault',
  async (type) => {
    await eachStatus(takesBody, { body: '{"unknown_field":1}', headers: { 'content-type': type } });
  },
);

test('10 MB are refused everywhere but where they may be', async () => {
  const body = 'x'.repeat(11 * 1024 * 1024);
  // One after the other: all at once they are half a gigabyte, which a busy machine does not read while somebody waits.
  for (const route of routes.filter(takesBody)) {
    const response = await ask(route.method, filled(route.pattern), { body });
    expect([route.pattern, await statusOf(route, response)]).toEqual([route.pattern, 413]);
  }
});

test.each([
  '..%2f..%2fetc%2fpasswd',
  '__proto__',
  '%00',
  'x'.repeat(5_000),
  '%F0%9F%92%A9',
  '%E0%A4%A',
  '*',
  'resp_AAAA',
  'memory:default',
])('the absurd id at %# is no fault', async (name) => {
  await eachStatus(({ pattern }) => pattern.includes(':'), { body: '{}' }, name);
});

test('invented cursors, and those of another conversation, are no fault', async () => {
  for (const cursor of [foreign, '1-1', '999999999999999-999999999999999', '$', '__proto__', '\u00ff', 'x'.repeat(5_000)]) {
    await eachStatus(({ method }) => method === 'GET', { headers: { 'last-event-id': cursor } });
  }
  const response = { method: 'GET', pattern: '/v1/responses/:id' };
  for (const after of ['-1', '1e9', 'x', '999999999999999999999', foreign]) {
    await statusOf(response, await ask('GET', `${filled(response.pattern)}?stream=true&starting_after=${encodeURIComponent(after)}`));
  }
});

test('a method that a path does not have is refused', async () => {
  const paths = [...new Set(routes.map(({ pattern }) => pattern))];
  for (const pattern of paths) {
    const known = routes.filter((route) => route.pattern === pattern).map(({ method }) => method);
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((one) => !known.includes(one))) {
      const status = await statusOf({ method, pattern }, await ask(method, filled(pattern)));
      expect({ method, pattern, isRefused: [404, 405].includes(status) }).toEqual({ method, pattern, isRefused: true });
    }
  }
});
