/** Every route of every protocol, asked by one tenant for what is another's, or the operator's: it is not there. */
import { randomUUID } from 'node:crypto';
import { createTenantIds } from '../../../src/gateway/tenants/ids.js';
import type { GatewayApp } from '../../../src/gateway/context.js';
import { callTool, text } from '../../support/provider-apis/reply.js';
import { saidIn } from '../../support/echo-model.js';
import { ask, TENANT_KEY, tenantGateway, type Asked } from '../../support/tenants.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

jest.setTimeout(300_000);

const SECRET = 'swordfish';
const HIDDEN = /t-[0-9a-f]{12}-/;
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

/** What a route needs to be asked well. Those that are not here need nothing, and a new one that needs something fails until it is. */
const NEEDS: Readonly<Record<string, Asked>> = {
  'POST /v1/conversations/:id/queue': { body: { op: 'clear' } },
  'POST /v1/conversations/:id/dispatch': { body: { type: 'ticket.updated' } },
  'POST /v1/conversations/:id/messages': { body: { text: 'what is the word?' } },
  'POST /v1/conversations/:id/attachments': { bytes: PNG, headers: { 'content-type': 'image/png' } },
  'POST /v1/conversations/:id/decide': { body: { callId: 'turn_0002/c1', decision: 'approve' } },
  'POST /v1/conversations/:id/fork': { body: { at: 'turn_0001' } },
  'POST /v1/conversations/:id/rewind': { body: { to: 'turn_0001' } },
  'POST /v1/conversations/:id/edit': { body: { text: 'what was the word?' } },
  'PATCH /v1/conversations/:id': { body: { title: 'mine now' } },
  'PUT /v1/conversations/:id/breakpoints': { body: { onError: true } },
};
/** Nothing runs there, as of an id that nobody has. */
const NOTHING_RUNS = new Set(['GET /api/chat/:id/stream']);
/** About no conversation, agent or scope. */
const ABOUT_NOTHING = [
  ...['ALL /*', 'GET /', 'GET /healthz', 'GET /readyz', 'GET /openapi.json', 'GET /v1/me', 'GET /.well-known/agent-card.json'],
  ...['POST /v1/messages/count_tokens', 'ALL /mcp'],
];
const MEMORY_ROUTES = [
  ...['blame', 'changes', 'diff', 'facts', 'history'].map((what) => `GET /v1/memory/:scope/${what}`),
  'POST /v1/memory/:scope/forget/preview',
];
/** Tests below have them. */
const ELSEWHERE = [
  ...['GET /metrics', 'POST /v1/conversations', 'GET /v1/conversations', 'GET /v1/agents', 'GET /v1/usage', 'GET /v1/events'],
  ...['GET /v1/workers', 'GET /v1/failures', 'GET /v1/findings', 'GET /v1/agents/:agent'],
  ...MEMORY_ROUTES,
  ...['GET /v1/approvals', 'GET /v1/memory/:scope', 'POST /v1/memory/:scope/forget', 'POST /v1/memory/:scope/review', 'POST /mcp'],
  ...['GET /v1/models', 'GET /v1/models/:model', 'POST /v1/chat/completions', 'POST /v1/responses', 'POST /v1/messages', 'POST /api/chat'],
];

/** Routes that are wrong, of which the rest need not be asked: a stream that is not refused takes its time. */
const ENOUGH = 4;

let world: World;
let app: GatewayApp;
/** Acme's, by its own name, by the one that Temporal knows, and by the response of its turn; and the operator's. */
const acme = `plan-${randomUUID()}`;
const hidden = createTenantIds('acme', TENANT_KEY).toWorkflowId(acme);
const operators = `house-${randomUUID()}`;
let response = '';

beforeAll(async () => {
  world = await startWorld({
    agent: { approvals: [{ tool: 'write_file', policy: 'ask' }] },
    answer: (request) => {
      const said = saidIn(request).at(-1) ?? '';
      return said === `write ${SECRET}` ? callTool('write_file', { path: `${SECRET}.txt`, content: SECRET }) : text(`You said: ${said}`);
    },
  });
  app = tenantGateway(world);
  for (const [token, id] of [
    ['acme', acme],
    ['/admin', operators],
  ] as const) {
    const sent = await ask(app, token, 'POST', `/v1/conversations/${id}/messages`, {
      body: { text: `the word is ${SECRET}`, start: { title: SECRET } },
    });
    expect(sent.json).toMatchObject({ text: `You said: the word is ${SECRET}` });
    await ask(app, token, 'POST', `/v1/conversations/${id}/messages?mode=enqueue`, { body: { text: `write ${SECRET}` } });
    await waitFor(
      () => ask(app, token, 'GET', `/v1/conversations/${id}/approvals`),
      (answer) => answer.text.includes(SECRET),
    );
  }
  const made = await ask(app, 'acme', 'POST', '/v1/responses', { body: { model: 'default', input: `remember ${SECRET}` } });
  response = (made.json as { id: string }).id;
});
afterAll(() => world.close());

const routes = (): string[] => [...new Set(app.routes.map(({ method, path }) => `${method} ${path}`))];
/** What is asked of these stands in the body of a request, in each protocol's own shape. */
const IN_BODY = / \/(?:a2a(?:\/|$)|agui$)/;
const ofOne = (): string[] =>
  routes().filter((route) => !ABOUT_NOTHING.includes(route) && !ELSEWHERE.includes(route) && !IN_BODY.test(route));

function fill(path: string, id: string): string {
  const filled: Readonly<Record<string, string>> = {
    ':id': id,
    ':turn': 'turn_0001',
    ':messageId': 'm1',
    ':item': 'mem_1',
    ':chunk': 'chunk_1',
    ':position': '1',
    ':scope': 'default',
  };
  return path.replace(/:\w+/g, (name) => encodeURIComponent(filled[name] ?? name));
}

test('each route is of one conversation, or named as another', () => {
  for (const route of ofOne()) expect(route).toContain('/:id');
  expect(ofOne().length).toBeGreaterThan(35);
  expect(routes()).toEqual(expect.arrayContaining([...ABOUT_NOTHING, ...ELSEWHERE, ...NOTHING_RUNS, ...Object.keys(NEEDS)]));
});

test('another’s conversation is as one that there is not, by any id', async () => {
  const before = [await world.client.history(hidden), await world.client.history(operators)];
  const wrong: string[] = [];
  for (const route of ofOne()) {
    if (wrong.length >= ENOUGH) break;
    const [method = '', path = ''] = route.split(' ');
    const isResponse = path.startsWith('/v1/responses');
    const never = isResponse ? `resp_${Buffer.from(`no-${randomUUID()}:turn_0001`).toString('base64url')}` : `no-${randomUUID()}`;
    const named = isResponse ? [response, `resp_${Buffer.from(`${hidden}:turn_0001`).toString('base64url')}`] : [acme, hidden, operators];
    const inWords = async (id: string) => {
      const { status, text: said } = await ask(
        app,
        'globex',
        method,
        fill(path, id),
        NEEDS[route] ?? (method === 'GET' ? {} : { body: {} }),
      );
      // Of two looks at once either may be the first to find nothing.
      return { status, text: said.replaceAll(id, 'ID').replace(/cannot [a-z ]* ID:/, 'cannot do it to ID:') };
    };
    const expected = await inWords(never);
    if (expected.status !== (NOTHING_RUNS.has(route) ? 204 : 404)) wrong.push(`${route}: ${expected.status} ${expected.text}`);
    for (const id of named) {
      const answer = await inWords(id);
      if (JSON.stringify(answer) !== JSON.stringify(expected)) wrong.push(`${route} ${id}: ${answer.status} ${answer.text}`);
      if (answer.text.includes(SECRET) || HIDDEN.test(answer.text)) wrong.push(`${route} ${id} tells: ${answer.text}`);
    }
  }
  expect(wrong).toEqual([]);
  expect([await world.client.history(hidden), await world.client.history(operators)]).toEqual(before);
});

test('its own tenant has it by its name, and not by the one that Temporal knows', async () => {
  const seen = ['', '/status', '/entries', '/approvals', '/context', '/queue', '/memory', '/items', '/branches', '/turns', '/tree'];
  const understood = ['/turns/turn_0001/timeline', '/turns/turn_0001/why', '/context/chunks', '/context/chunks/chunk_1', '/context/changes'];
  for (const path of [...seen, ...understood, '/moments', '/moments/2']) {
    const own = await ask(app, 'acme', 'GET', `/v1/conversations/${acme}${path}`);
    expect([path, own.status]).toEqual([path, 200]);
    expect(own.text).not.toContain(hidden);
    expect((await ask(app, 'acme', 'GET', `/v1/conversations/${hidden}${path}`)).status).toBe(404);
    expect((await ask(app, '/admin', 'GET', `/v1/conversations/${hidden}${path}`)).status).toBe(200);
  }
  expect((await ask(app, 'acme', 'GET', `/v1/conversations/${acme}`)).json).toMatchObject({
    id: acme,
    scope: 'default',
    status: { scope: 'default', tenant: 'acme' },
  });
  expect((await ask(app, 'acme', 'GET', `/v1/responses/${response}`)).text).toContain(SECRET);
});

test.each([
  'GET /v1/conversations',
  'GET /v1/approvals',
  'GET /v1/failures',
  'GET /v1/usage?by=conversation',
  'GET /v1/usage?by=scope',
  'GET /v1/agents',
  'GET /v1/models',
])('%s has a tenant’s own alone', async (route) => {
  const [method = '', path = ''] = route.split(' ');
  const [own, other, all] = [
    await ask(app, 'acme', method, path),
    await ask(app, 'globex', method, path),
    await ask(app, '/admin', method, path),
  ];
  expect([own.status, other.status, all.status]).toEqual([200, 200, 200]);
  expect(own.text).not.toMatch(/t-[0-9a-f]{12}-|acme\.|house-/);
  expect(other.text).not.toMatch(new RegExp(`t-[0-9a-f]{12}-|acme|house|${SECRET}|plan-`));
  if (/conversations|conversation$|approvals/.test(path)) expect(own.text).toContain(acme);
});

test('what is about all of the installation is not there for a tenant', async () => {
  expect((await ask(app, 'globex', 'GET', '/metrics')).status).toBe(404);
  expect((await ask(app, '/admin', 'GET', '/metrics')).status).toBe(200);
  for (const path of ['/v1/workers', '/v1/findings']) {
    expect([path, (await ask(app, 'globex', 'GET', path)).status]).toEqual([path, 404]);
    expect([path, (await ask(app, '/admin', 'GET', path)).status]).toEqual([path, 200]);
  }
  expect((await ask(app, 'globex', 'GET', '/v1/agents/house')).status).toBe(404);
  expect((await ask(app, 'acme', 'GET', '/v1/agents/house')).json).toMatchObject({ name: 'house' });
  expect((await ask(app, 'globex', 'GET', '/v1/models/house')).status).toBe(404);
  expect((await ask(app, 'acme', 'GET', '/v1/models/house')).status).toBe(200);
});

test('a scope of that name is the tenant’s own, and a whole name is none', async () => {
  const key = await world.client.key(hidden);
  expect(key.scope).toBe('acme.default');
  const fact = { ts: 1, fact: `The word is ${SECRET}.`, tags: [], confidence: 1, salience: 1 };
  await world.store.facts.add(key, 'batch', [fact], { conversation: hidden, turn_ids: ['turn_0001'] });
  const seen = await ask(app, 'acme', 'GET', '/v1/memory/default');
  expect(seen.json).toMatchObject({ facts: [{ fact: fact.fact, source: { conversation: acme } }] });
  for (const scope of ['default', 'acme.default', 'acme', 'globex.default']) {
    for (const [method, path, body] of [
      ['GET', `/v1/memory/${scope}`, undefined],
      ...['blame', 'changes', 'diff', 'facts?all=true', 'history'].map((what) => ['GET', `/v1/memory/${scope}/${what}`, undefined] as const),
      ['POST', `/v1/memory/${scope}/forget/preview`, { text: `The word is ${SECRET}.` }],
      ['POST', `/v1/memory/${scope}/forget`, { text: `The word is ${SECRET}.` }],
      ['POST', `/v1/memory/${scope}/review`, { id: 'prop_0001', decision: 'accept' }],
    ] as const) {
      const answer = await ask(app, 'globex', method, path, { body });
      expect(answer.text.replace(/"detail":.*/, '')).not.toContain(SECRET);
      if (scope.includes('.')) expect([path, answer.status]).toEqual([path, 400]);
    }
  }
  expect((await world.store.facts.list(key)).facts).toHaveLength(1);
});

test('several live streams in one: another’s is refused, and gives no event away', async () => {
  for (const id of [acme, hidden, operators]) {
    const answer = await ask(app, 'globex', 'GET', `/v1/events?conversation=${id}`, {
      headers: { 'last-event-id': Buffer.from(JSON.stringify([[id, '0']])).toString('base64url') },
    });
    expect(answer.status).toBe(404);
    expect(answer.text).not.toContain(SECRET);
  }
});

test('another’s response is no previous one, and another’s history is not gone on with', async () => {
  for (const path of ['/v1/responses'] as const) {
    const answer = await ask(app, 'globex', 'POST', path, { body: { model: 'default', input: 'and?', previous_response_id: response } });
    expect([answer.status, answer.text.includes(SECRET)]).toEqual([404, false]);
  }
  const first = { role: 'user', content: `hello, ${SECRET}` };
  const said = async (token: string, messages: readonly object[], path: string) =>
    ask(app, token, 'POST', path, { body: { model: 'default', max_tokens: 99, messages } });
  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    const begun = await said('acme', [first], path);
    expect(begun.status).toBe(200);
    const more = [first, { role: 'assistant', content: `You said: ${first.content}` }, { role: 'user', content: `more on ${path}` }];
    const listed = async (token: string) =>
      ((await ask(app, token, 'GET', '/v1/conversations?limit=500')).json as { conversations: object[] }).conversations.length;
    const before = await waitFor(
      () => listed('acme'),
      (count) => count > 0,
    );
    expect((await said('acme', more, path)).status).toBe(200);
    const others = await listed('globex');
    expect((await said('globex', more, path)).status).toBe(200);
    // Acme goes on where it was; globex has a conversation of its own.
    await waitFor(
      () => listed('globex'),
      (count) => count > others,
    );
    expect(await listed('acme')).toBe(before);
  }
});

test('an attachment’s hash opens nothing elsewhere', async () => {
  const kept = await ask(app, 'acme', 'POST', `/v1/conversations/${acme}/attachments`, {
    bytes: PNG,
    headers: { 'content-type': 'image/png' },
  });
  expect(kept.status).toBe(201);
  const own = `pictures-${randomUUID()}`;
  const start = (await ask(app, 'globex', 'POST', `/v1/conversations/${own}/messages`, { body: { text: 'hello', start: {} } })).status;
  expect(start).toBe(200);
  const asked = world.api.hits.length;
  await ask(app, 'globex', 'POST', `/v1/conversations/${own}/messages`, { body: { text: 'look', images: [kept.json] } });
  expect(JSON.stringify(world.api.hits.slice(asked).map(({ body }) => body))).not.toContain(PNG.toString('base64'));
});

test('MCP: tools and resources have a tenant’s own alone', async () => {
  const call = async (token: string, method: string, params: object): Promise<string> => {
    const headers = { accept: 'application/json, text/event-stream' };
    return (await ask(app, token, 'POST', '/mcp', { body: { jsonrpc: '2.0', id: 1, method, params }, headers })).text;
  };
  expect(await call('acme', 'resources/read', { uri: `conversation://${acme}` })).toContain(SECRET);
  for (const id of [acme.replace('plan', 'plans'), hidden, operators]) {
    const tools = [
      ...['get_status', 'get_history', 'interrupt_conversation', 'list_approvals'].map((name) => [name, { conversation: id }] as const),
      ['send_message', { conversation: id, text: 'what is the word?', wait_seconds: 1 }],
      ['decide_approval', { conversation: id, call_id: 'turn_0002/c1', hash: 'x', decision: 'approve' }],
    ] as const;
    for (const [name, given] of tools) {
      const answer = await call('globex', 'tools/call', { name, arguments: given });
      expect([name, answer.includes('"isError":true'), answer.includes(SECRET)]).toEqual([name, true, false]);
    }
    expect(await call('globex', 'resources/read', { uri: `conversation://${id}` })).not.toContain(SECRET);
  }
  for (const [name, given] of [
    ['list_conversations', {}],
    ['list_approvals', {}],
    ['read_memory', { scope: 'default' }],
    ['search_memory', { scope: 'default', query: SECRET }],
  ] as const) {
    const answer = await call('globex', 'tools/call', { name, arguments: given });
    expect([name, new RegExp(`t-[0-9a-f]{12}-|house-|word is ${SECRET}`).test(answer)]).toEqual([name, false]);
  }
  expect(await call('globex', 'resources/list', {})).not.toMatch(/t-[0-9a-f]{12}-|house-/);
});

test('what begins with another’s id begins anew', async () => {
  const chat = { id: acme, messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'what is the word?' }] }] };
  const begun = [
    await ask(app, 'globex', 'POST', '/v1/conversations', { body: { id: acme } }),
    await ask(app, 'globex', 'POST', '/api/chat', { body: chat }),
    await ask(app, 'globex', 'POST', '/v1/responses', { body: { model: 'default', conversation: acme, input: 'what is the word?' } }),
    await ask(app, 'globex', 'POST', '/api/chat', { body: { ...chat, id: hidden } }),
  ];
  for (const answer of begun) {
    expect(answer.status).toBeLessThan(300);
    expect(answer.text).not.toContain(SECRET);
  }
  expect(begun[0]?.json).toEqual({ id: acme, attached: false });
  const entries = await ask(app, 'globex', 'GET', `/v1/conversations/${acme}/entries`);
  expect(entries.text).toContain('what is the word?');
  expect(entries.text).not.toContain(SECRET);
  expect((await ask(app, 'acme', 'GET', `/v1/conversations/${acme}/entries`)).text).not.toContain('what is the word?');
});
