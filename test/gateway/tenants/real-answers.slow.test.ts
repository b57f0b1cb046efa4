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
  ...['ALL /*', 'GET /', 'GET /healthz', 'GET /readyz', 'GET /openapi.json', 'GET /v1/me', 'POST /v1/messages/count_tokens', 'ALL /mcp'],
  ...['POST /auth/code', 'POST /auth/logout', 'GET /auth/login', 'GET /auth/callback', 'GET /.well-known/agent-card.json'],
  ...['GET /a2a', 'GET /a2a/:agent'],
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
  ...['POST /v1/search', 'POST /v1/search/open'],
  ...['POST /v1/attachments', 'GET /v1/attachments/:ref', 'GET /v1/attachments/:ref/content'],
  ...['GET /v1/models', 'GET /v1/models/:model', 'POST /v1/chat/completions', 'POST /v1/responses', 'POST /v1/messages', 'POST /api/chat'],
  ...['POST /a2a', 'POST /a2a/', 'POST /a2a/:agent', 'POST /a2a/:agent/', 'GET /a2a/:agent/.well-known/agent-card.json', 'POST /agui'],
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
/** Of Temporal, since they were last counted. */
const calls: string[] = [];

beforeAll(async () => {
  world = await startWorld({
    agent: { approvals: [{ tool: 'write_file', policy: 'ask' }] },
    answer: (request) => {
      const said = saidIn(request).at(-1) ?? '';
      return said === `write ${SECRET}` ? callTool('write_file', { path: `${SECRET}.txt`, content: SECRET }) : text(`You said: ${said}`);
    },
  });
  app = tenantGateway(world);
  countCalls();
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

function countCalls(): void {
  const service = world.temporal.connection.workflowService as unknown as Record<string, unknown>;
  for (const [name, real] of Object.entries(Object.getPrototypeOf(service) as object).concat(Object.entries(service))) {
    if (typeof real !== 'function' || !/^[a-z]/.test(name) || name === 'rpcCall') continue;
    service[name] = (...args: unknown[]): unknown => {
      calls.push(name);
      return (real as (...args: unknown[]) => unknown).apply(service, args);
    };
  }
}

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
      calls.length = 0;
      const { status, text: said } = await ask(
        app,
        'globex',
        method,
        fill(path, id),
        NEEDS[route] ?? (method === 'GET' ? {} : { body: {} }),
      );
      // Of two looks at once either may be the first to find nothing.
      return {
        status,
        calls: calls.splice(0).sort(),
        text: said.replaceAll(id, 'ID').replace(/cannot [a-z ]* ID:/, 'cannot do it to ID:'),
      };
    };
    const expected = await inWords(never);
    if (expected.status !== (NOTHING_RUNS.has(route) ? 204 : 404)) wrong.push(`${route}: ${expected.status} ${expected.text}`);
    for (const id of named) {
      const answer = await inWords(id);
      if (JSON.stringify(answer) !== JSON.stringify(expected))
        wrong.push(`${route} ${id}: ${answer.status} ${answer.text} by ${String(answer.calls)}, not ${String(expected.calls)}`);
      if (answer.text.includes(SECRET) || HIDDEN.test(answer.text)) wrong.push(`${route} ${id} tells: ${answer.text}`);
    }
  }
  expect(wrong).toEqual([]);
  expect([await world.client.history(hidden), await world.client.history(operators)]).toEqual(before);
});

test('a user of no tenant sees nothing of tenants, and its own', async () => {
  const raw = `raw-${randomUUID()}`;
  const begun = await world.client.send(raw, `the word is ${SECRET}`, { start: { tenant: 'acme', title: SECRET } });
  expect(begun.stopReason).toBe('end');
  const wrong: string[] = [];
  for (const route of ofOne()) {
    if (wrong.length >= ENOUGH) break;
    const [method = '', path = ''] = route.split(' ');
    const isResponse = path.startsWith('/v1/responses');
    const nameOf = (id: string): string => (isResponse ? `resp_${Buffer.from(`${id}:turn_0001`).toString('base64url')}` : id);
    const inWords = async (id: string) => {
      const asked = NEEDS[route] ?? (method === 'GET' ? {} : { body: {} });
      const { status, text: said } = await ask(app, '/user', method, fill(path, nameOf(id)), asked);
      return JSON.stringify([
        status,
        said
          .replaceAll(id, 'ID')
          .replaceAll(nameOf(id), 'ID')
          .replace(/cannot [a-z ]* ID:/, 'cannot do it to ID:'),
      ]);
    };
    const expected = await inWords(`no-${randomUUID()}`);
    for (const id of [hidden, raw]) {
      const answer = await inWords(id);
      if (answer !== expected) wrong.push(`${route} ${id}: ${answer}, not ${expected}`);
    }
  }
  expect(wrong).toEqual([]);
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_conversations', arguments: {} } };
  const headers = { accept: 'application/json, text/event-stream' };
  for (const own of [
    await ask(app, '/user', 'GET', '/v1/conversations?limit=500'),
    await ask(app, '/user', 'POST', '/mcp', { body: call, headers }),
  ]) {
    expect([own.status, HIDDEN.test(own.text), own.text.includes(acme), own.text.includes(raw)]).toEqual([200, false, false, false]);
    expect(own.text).toContain(operators);
  }
  expect((await ask(app, '/user', 'GET', `/v1/conversations/${operators}/entries`)).text).toContain(SECRET);
});

test('a fork of a tenant’s conversation that its tenant could not reach is refused, with what to say', async () => {
  const body = { at: 'turn_0001' };
  const blind = await ask(app, '/admin', 'POST', `/v1/conversations/${hidden}/fork`, { body });
  expect([blind.status, blind.json]).toMatchObject([
    409,
    { detail: expect.stringContaining(`?tenant=acme and the id that it has there, ${acme}`) },
  ]);
  const seeing = await ask(app, '/admin', 'POST', `/v1/conversations/${acme}/fork?tenant=acme`, { body });
  expect(seeing.status).toBeLessThan(300);
  const { id } = seeing.json as { id: string };
  expect((await ask(app, 'acme', 'GET', `/v1/conversations/${id}/entries`)).status).toBe(200);
});

test('it takes as long to find nothing, whether another has it or nobody', async () => {
  const never = `no-${randomUUID()}`;
  const took = new Map<string, number[]>([never, acme, hidden, operators].map((id) => [id, []]));
  for (let round = 0; round < 40; round += 1) {
    for (const [id, times] of took) {
      const began = performance.now();
      expect((await ask(app, 'globex', 'GET', `/v1/conversations/${id}/entries`)).status).toBe(404);
      times.push(performance.now() - began);
    }
  }
  const medianOf = (times: readonly number[]): number => [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? NaN;
  const [nobodys = NaN, ...others] = [...took.values()].map(medianOf);
  for (const other of others) expect(Math.max(other / nobodys, nobodys / other)).toBeLessThan(2.5);
});

test('its own tenant has it by its name, and not by the one that Temporal knows', async () => {
  const seen = ['', '/status', '/entries', '/approvals', '/context', '/queue', '/memory', '/items', '/branches', '/turns', '/tree'];
  const understood = [
    '/turns/turn_0001/timeline',
    '/turns/turn_0001/why',
    '/context/chunks',
    '/context/chunks/chunk_1',
    '/context/changes',
  ];
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
  expect(other.text).not.toMatch(new RegExp(`t-[0-9a-f]{12}-|acme|house|${SECRET}|${acme}`));
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
      ...['blame', 'changes', 'diff', 'facts?all=true', 'history'].map(
        (what) => ['GET', `/v1/memory/${scope}/${what}`, undefined] as const,
      ),
      ['POST', `/v1/memory/${scope}/forget/preview`, { text: `The word is ${SECRET}.` }],
      ['POST', `/v1/memory/${scope}/forget`, { text: `The word is ${SECRET}.` }],
      ['POST', `/v1/memory/${scope}/review`, { id: 'prop_0001', decision: 'accept' }],
      ['POST', '/v1/search', { scope, question: `What is the word, ${SECRET}?` }],
      ['POST', '/v1/search', { scope, question: SECRET, conversation: acme }],
      ['POST', '/v1/search/open', { scope, at: 'fact/sem_0001' }],
    ] as const) {
      const answer = await ask(app, 'globex', method, path, { body });
      expect(answer.text.replace(/"detail":.*/, '')).not.toContain(SECRET);
      if (scope.includes('.')) expect([path, answer.status]).toEqual([path, 400]);
    }
  }
  expect((await world.store.facts.list(key)).facts).toHaveLength(1);
  const own = await ask(app, 'acme', 'POST', '/v1/search', { body: { question: 'What is the word?' } });
  const hits = (own.json as { hits: { address: string; conversation: string; text: string }[] }).hits;
  expect(hits).toContainEqual(expect.objectContaining({ kind: 'fact', text: fact.fact, conversation: acme }));
  expect(own.text).not.toContain(hidden);
  const said = await ask(app, 'acme', 'POST', '/v1/search', { body: { question: SECRET, conversation: acme, kinds: ['user'] } });
  const [first] = (said.json as { hits: typeof hits }).hits;
  expect(first).toMatchObject({ conversation: acme, text: expect.stringContaining(SECRET) });
  const opened = await ask(app, 'acme', 'POST', '/v1/search/open', { body: { at: first?.address } });
  expect(opened.text).toContain(SECRET);
  expect((await ask(app, 'globex', 'POST', '/v1/search/open', { body: { at: first?.address } })).json).toMatchObject({ hits: [] });
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

test('another’s reference is as one that never was, in every protocol, also where both have sent the same file', async () => {
  const send = async (token: string) =>
    (await ask(app, token, 'POST', '/v1/attachments', { bytes: PNG, headers: { 'content-type': 'image/png' } })).json as { ref: string };
  const [acmes, admins] = [await send('acme'), await send('/admin')];
  const never = `att_${'0'.repeat(32)}`;
  const named = (ref: string) =>
    [
      ['GET', `/v1/attachments/${ref}`, undefined],
      ['GET', `/v1/attachments/${ref}/content`, undefined],
      ['POST', `/v1/conversations/${randomUUID()}/messages`, { text: 'look', images: [{ ref }], start: {} }],
      [
        'POST',
        '/v1/chat/completions',
        { model: 'default', messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: ref } }] }] },
      ],
      ['POST', '/v1/responses', { model: 'default', input: [{ role: 'user', content: [{ type: 'input_image', file_id: ref }] }] }],
      [
        'POST',
        '/v1/messages',
        {
          model: 'default',
          max_tokens: 9,
          messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: ref } }] }],
        },
      ],
      [
        'POST',
        '/api/chat',
        { id: randomUUID(), messages: [{ id: 'm', role: 'user', parts: [{ type: 'file', mediaType: 'image/png', url: ref }] }] },
      ],
      [
        'POST',
        '/agui',
        {
          ...{ threadId: randomUUID(), runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} },
          messages: [{ id: 'm', role: 'user', content: [{ type: 'image', source: { type: 'url', value: ref } }] }],
        },
      ],
      [
        'POST',
        '/a2a',
        {
          ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
          params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ url: ref }] } },
        },
      ],
    ] as const;
  const answers = async (token: string, ref: string): Promise<string[]> => {
    const all: string[] = [];
    for (const [method, path, body] of named(ref)) {
      const headers: Record<string, string> = path === '/a2a' ? { 'a2a-version': '1.0' } : {};
      const { status, text: said } = await ask(app, token, method, path, { ...(body && { body }), headers });
      all.push(
        `${status} ${said
          .replaceAll(ref, 'REF')
          .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
          .replace(/"timestamp":[^,}]*/g, '')}`,
      );
    }
    return all;
  };
  const expected = await answers('globex', never);
  expect(expected.filter((one) => !one.includes('no attachment'))).toEqual([]);
  expect(await answers('globex', acmes.ref)).toEqual(expected);
  expect(await answers('globex', admins.ref)).toEqual(expected);
  expect(await answers('/admin', acmes.ref)).toEqual(await answers('/admin', never));
  const globexs = await send('globex');
  expect(new Set([acmes.ref, admins.ref, globexs.ref]).size).toBe(3);
  expect(await answers('globex', acmes.ref)).toEqual(expected);
  expect((await ask(app, 'globex', 'GET', `/v1/attachments/${globexs.ref}`)).status).toBe(200);
});

test('an upload is of its tenant, or of those of none, and of nobody else', async () => {
  const kept = async (token: string): Promise<string> => {
    const answer = await ask(app, token, 'POST', '/v1/attachments', { bytes: PNG, headers: { 'content-type': 'image/png' } });
    expect([token, answer.status]).toEqual([token, 201]);
    return (answer.json as { ref: string }).ref;
  };
  const statusFor = async (token: string, ref: string): Promise<number> => (await ask(app, token, 'GET', `/v1/attachments/${ref}`)).status;
  const [own, none, users] = [await kept('acme'), await kept('/admin'), await kept('/user')];
  expect(users).toBe(none);
  const seen = await Promise.all(
    ['acme', 'globex', '/admin', '/user'].map(async (who) => [await statusFor(who, own), await statusFor(who, none)]),
  );
  expect(seen).toEqual([[200, 404], [404, 404], [404, 200], [404, 200]]); // prettier-ignore
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
    ['search_memory', { scope: 'default', question: SECRET }],
    ['open_memory', { scope: 'default', at: 'memory/line 1' }],
  ] as const) {
    const answer = await call('globex', 'tools/call', { name, arguments: given });
    expect([name, new RegExp(`t-[0-9a-f]{12}-|house-|word is ${SECRET}`).test(answer)]).toEqual([name, false]);
  }
  expect(await call('globex', 'resources/list', {})).not.toMatch(/t-[0-9a-f]{12}-|house-/);
});

test('A2A: a task, a context or an agent of another is as one that there is not', async () => {
  const taskOf = (context: string): string => Buffer.from(`${context}:turn_0002`).toString('base64url');
  const rpc = async (token: string, method: string, params: object, at = '/a2a') =>
    ask(app, token, 'POST', at, { body: { jsonrpc: '2.0', id: 1, method, params }, headers: { 'a2a-version': '1.0' } });
  const said = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: `approve ${'0'.repeat(12)}` }] };
  expect((await rpc('acme', 'GetTask', { id: taskOf(acme) })).text).toContain(SECRET);
  for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask', 'SendMessage', 'SendStreamingMessage']) {
    const answers = [`no-${randomUUID()}`, acme, hidden, operators].map(async (id) => {
      const asked = method.startsWith('Send') ? { message: { ...said, taskId: taskOf(id) } } : { id: taskOf(id) };
      const { status, text: answer } = await rpc('globex', method, asked);
      // What is refused late comes in the stream that has begun by then.
      return {
        status,
        answer: answer
          .replaceAll(id, 'ID')
          .replace(/^data: /, '')
          .trim(),
      };
    });
    const [never, ...named] = await Promise.all(answers);
    expect([method, never?.answer]).toEqual([method, expect.stringContaining('TASK_NOT_FOUND')]);
    expect([method, named]).toEqual([method, [never, never, never]]);
  }
  for (const id of [`no-${randomUUID()}`, acme, hidden, operators]) {
    expect((await rpc('globex', 'ListTasks', { contextId: id })).json).toMatchObject({ result: { tasks: [], totalSize: 0 } });
  }
  expect((await rpc('acme', 'ListTasks', {})).text).toContain(taskOf(acme));
  expect((await rpc('globex', 'ListTasks', {})).text).not.toContain(SECRET);
  const agents = ['house', 'nobody'];
  for (const [method, path] of [
    ['GET', (agent: string) => `/a2a/${agent}/.well-known/agent-card.json`],
    ['POST', (agent: string) => `/a2a/${agent}`],
    ['POST', (agent: string) => `/a2a/${agent}/`],
  ] as const) {
    const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: said } };
    const asked = method === 'GET' ? {} : { body, headers: { 'a2a-version': '1.0' } };
    const [others, none] = await Promise.all(
      agents.map(async (agent) => {
        const { status, text: answer } = await ask(app, 'globex', method, path(agent), asked);
        return { status, answer: answer.replaceAll(agent, 'AGENT') };
      }),
    );
    expect(others).toEqual(none);
  }
  expect((await ask(app, 'acme', 'GET', '/a2a/house/.well-known/agent-card.json')).status).toBe(200);
});

test('AG-UI: another’s thread is as one that there is not', async () => {
  const resume = async (threadId: string): Promise<string> => {
    const body = { threadId, runId: 'r1', messages: [], resume: [{ interruptId: 'turn_0002/c1', status: 'cancelled' }] };
    return (await ask(app, 'globex', 'POST', '/agui', { body })).text.replaceAll(threadId, 'THREAD');
  };
  const never = await resume(`no-${randomUUID()}`);
  expect(never).toContain('RUN_ERROR');
  for (const id of [acme, hidden, operators]) expect(await resume(id)).toBe(never);
});

test('what begins with another’s id begins anew', async () => {
  const chat = { id: acme, messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'what is the word?' }] }] };
  const begun = [
    await ask(app, 'globex', 'POST', '/v1/conversations', { body: { id: acme } }),
    await ask(app, 'globex', 'POST', '/api/chat', { body: chat }),
    await ask(app, 'globex', 'POST', '/v1/responses', { body: { model: 'default', conversation: acme, input: 'what is the word?' } }),
    await ask(app, 'globex', 'POST', '/api/chat', { body: { ...chat, id: hidden } }),
    await ask(app, 'globex', 'POST', '/agui', {
      body: { threadId: acme, runId: 'r1', messages: [{ id: 'm2', role: 'user', content: 'and what is the word now?' }] },
    }),
    await ask(app, 'globex', 'POST', '/a2a', {
      body: {
        ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
        params: { message: { messageId: 'm3', contextId: acme, role: 'ROLE_USER', parts: [{ text: 'tell me the word' }] } },
      },
      headers: { 'a2a-version': '1.0' },
    }),
  ];
  for (const answer of begun) {
    expect(answer.status).toBeLessThan(300);
    expect(answer.text).not.toContain(SECRET);
  }
  expect(begun[0]?.json).toEqual({ id: acme, attached: false });
  const entries = await ask(app, 'globex', 'GET', `/v1/conversations/${acme}/entries`);
  for (const said of ['what is the word?', 'and what is the word now?', 'tell me the word']) expect(entries.text).toContain(said);
  expect(entries.text).not.toContain(SECRET);
  expect((await ask(app, 'acme', 'GET', `/v1/conversations/${acme}/entries`)).text).not.toContain('what is the word?');
});

test('memory that a deleted conversation has left names it no more', async () => {
  const id = `gone-${randomUUID()}`;
  const of = (token: string, method: string, path: string, body?: object) => ask(app, token, method, path, body && { body });
  await of('acme', 'POST', `/v1/conversations/${id}/messages`, { text: 'hello', start: {} });
  const key = await world.client.key(createTenantIds('acme', TENANT_KEY).toWorkflowId(id));
  const fact = { ts: 2, fact: 'It was said.', tags: [], confidence: 1, salience: 1 };
  await world.store.facts.add(key, 'gone', [fact], { conversation: key.conversation, turn_ids: ['turn_0001'] });
  expect((await of('acme', 'GET', '/v1/memory/default')).text).toContain(id);
  await of('acme', 'POST', `/v1/conversations/${id}/close`, { memory: false });
  await waitFor(
    () => of('acme', 'GET', `/v1/conversations/${id}`),
    ({ json }) => (json as { state?: string }).state !== 'running',
  );
  const deleted = await of('acme', 'DELETE', `/v1/conversations/${id}`);
  expect([deleted.status, HIDDEN.test(deleted.text)]).toEqual([200, false]);
  const left = await waitFor(
    () => of('acme', 'GET', '/v1/memory/default'),
    ({ text: all }) => !all.includes(id),
  );
  expect(left.text).toContain('(deleted)');
});
