/**
 * Every route of every protocol, asked by one tenant for what is another's, or the operator's: it is not there. Behind the gateway stands a
 * fake that has these conversations and notes which of them are looked into; the table is made of `app.routes`, so that a route which is
 * added is asked too, or fails the first test.
 */
import type { PerduraClient } from '../../../src/client.js';
import { createTenantIds } from '../../../src/client/tenants/names.js';
import { createClientOfNoTenant, createTenantClient } from '../../../src/client/tenants/client.js';
import { taskName } from '../../../src/gateway/a2a/task.js';
import { publicCallId } from '../../../src/gateway/core/client-calls.js';
import { responseId } from '../../../src/gateway/openai/responses.js';
import { fakeInstallation } from '../../support/fake-client.js';
import { NAMING, PNG, post, requestsOf, rpc, said, TURN, user, type Request } from '../../support/route-requests.js';
import { ask, TENANT_KEY, tenantGateway } from '../../support/tenants.js';

const SECRET = 'swordfish';

/** Acme's, by its own name and by the one that Temporal knows; one that a program has begun for acme; and the operator's. */
const acme = 'plan-of-acme';
const hidden = createTenantIds('acme', TENANT_KEY).toWorkflowId(acme);
const raw = 'raw-of-acme';
const operators = 'house-of-operators';
const never = 'nobodys';
const [acmes, nones, lost] = ['a', 'b', 'c'].map((digit) => `att_${digit.repeat(32)}`) as [string, string, string];

const { client, calls, opened, scopes } = fakeInstallation({
  conversations: [
    { id: hidden, tenant: 'acme', publicId: acme, title: SECRET },
    { id: raw, tenant: 'acme', publicId: null, title: SECRET },
    { id: operators, tenant: null, publicId: null, title: 'of nobody' },
  ],
  uploads: new Map([
    [acmes, 'acme'],
    [nones, null],
  ]),
});
const app = tenantGateway({ client });
const routes = [...new Set(app.routes.map(({ method, path }) => `${method} ${path}`))];

/** About no conversation: lists, which a test below asks, and what is of nobody. */
const ABOUT_NONE = [
  ...['ALL /*', 'GET /', 'GET /healthz', 'GET /readyz', 'GET /openapi.json', 'GET /v1/me', 'POST /v1/messages/count_tokens', 'ALL /mcp'],
  ...['POST /auth/code', 'POST /auth/logout', 'GET /auth/login', 'GET /auth/callback', 'GET /.well-known/agent-card.json'],
  ...['GET /a2a', 'GET /a2a/:agent', 'GET /a2a/:agent/.well-known/agent-card.json', 'POST /v1/conversations'],
];
const LISTS = ['/v1/conversations', '/v1/approvals', '/v1/failures', '/v1/usage', '/v1/agents', '/v1/models', '/v1/scopes'].map(
  (path) => `GET ${path}`,
);
const OF_AGENTS = ['GET /v1/agents/:agent', 'GET /v1/models/:model'];
const OF_ALL = ['/metrics', '/v1/workers', '/v1/findings'].map((path) => `GET ${path}`);
const OF_UPLOADS = ['POST /v1/attachments', 'GET /v1/attachments/:ref', 'GET /v1/attachments/:ref/content'];
const OF_SCOPES = [
  ...['', '/blame', '/changes', '/diff', '/facts', '/history'].map((what) => `GET /v1/memory/:scope${what}`),
  ...['/forget', '/forget/preview', '/review'].map((what) => `POST /v1/memory/:scope${what}`),
  ...['POST /v1/search', 'POST /v1/search/open'],
];
/** It writes into the project of the installation's operator, so no tenant gets that far. */
const OF_THE_PROJECT = 'POST /v1/conversations/:id/turns/:turn/dataset';
const ofOne = routes.filter((route) => route.includes('/:id'));

/** What a request brings, and what it does below the gateway, without the id that it names. */
async function inWords(token: string, { method, path, ...asked }: Request, id: string): Promise<object> {
  calls.length = 0;
  const { status, text } = await ask(app, token, method, path, asked);
  const names = [
    responseId(id, TURN),
    taskName(id, TURN).task,
    publicCallId(id, `${TURN}/c1`),
    publicCallId(id, `${TURN}/c1`, 'toolu_'),
    id,
  ];
  let shown = text.replace(/"(timestamp|created(_at)?)":[^,}]*/g, '');
  for (const name of names) shown = shown.replaceAll(name, 'ID');
  shown = shown.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID').replace(/req_[0-9a-f]{32}/g, 'REQUEST');
  // Of two looks at once either may be the first to find nothing.
  return { status, calls: calls.map((call) => call.method).sort(), shown: shown.replace(/cannot [a-z ]* ID:/, 'cannot do it to ID:') };
}

const walked = [...ofOne, ...Object.keys(NAMING)];
/** For a user of none it is looked up whose it is: those looks are not compared. */
const each = async (token: string, ids: readonly string[]): Promise<void> => {
  const comparable = (answers: readonly object[]): object[] =>
    token.startsWith('/') ? answers.map((one) => ({ ...one, calls: [] })) : [...answers];
  for (const route of walked) {
    const expected: object[] = [];
    for (const request of requestsOf(route, never)) expected.push(await inWords(token, request, never));
    for (const id of ids) {
      const answers: object[] = [];
      for (const request of requestsOf(route, id)) answers.push(await inWords(token, request, id));
      expect({ route, id, answers: comparable(answers) }).toEqual({ route, id, answers: comparable(expected) });
      expect(JSON.stringify(answers)).not.toMatch(/swordfish|t-[0-9a-f]{12}-/);
    }
  }
};

beforeEach(() => {
  opened.length = 0;
  scopes.length = 0;
});

test('each route is walked below, or named as one that is about no conversation', () => {
  const named = [...walked, ...ABOUT_NONE, ...LISTS, ...OF_AGENTS, ...OF_ALL, ...OF_UPLOADS, ...OF_SCOPES];
  expect(routes.filter((route) => !named.includes(route))).toEqual([]);
  expect(named.filter((route) => !routes.includes(route))).toEqual([]);
  expect(ofOne.length).toBeGreaterThan(40);
});

test('by these requests its own tenant reaches it', async () => {
  for (const route of walked) {
    opened.length = 0;
    for (const request of requestsOf(route, acme)) await inWords('acme', request, acme);
    const reaches = opened.some((one) => one.endsWith(` ${hidden}`));
    expect({ route, reaches }).toEqual({ route, reaches: route !== OF_THE_PROJECT });
    expect(opened.filter((one) => !one.endsWith(` ${hidden}`))).toEqual([]);
  }
});

test('by another’s tenant nothing is looked into, and it is answered as an id that nobody has', async () => {
  await each('globex', [acme, hidden, raw, operators]);
  expect(opened).toEqual([]);
});

test('by a user of no tenant nothing of tenants is looked into but whose it is', async () => {
  await each('/user', [hidden]);
  expect(opened).toEqual([]);
  for (const route of ofOne) for (const request of requestsOf(route, raw)) await inWords('/user', request, raw);
  expect(new Set(opened)).toEqual(new Set([`describe ${raw}`]));
});

test('a sub-agent is decided for by its own tenant alone', async () => {
  const decide = (token: string, id: string) =>
    ask(app, token, 'POST', `/v1/conversations/${id}/decide`, {
      body: { callId: 'turn_0002/c1', decision: 'approve', conversation: `${acme}:turn_0001:1` },
    });
  await decide('globex', 'own');
  expect(opened).toEqual([]);
  await decide('acme', acme);
  expect(opened).toEqual([`decide ${hidden}:turn_0001:1`, `decide ${hidden}`]);
});

test('who may name a tenant: an operator of none', async () => {
  for (const token of ['/user', 'globex', 'globex/user']) {
    expect((await ask(app, token, 'GET', `/v1/conversations/${acme}/status?tenant=acme`)).status).toBe(403);
  }
  expect(opened).toEqual([]);
  await ask(app, '/operator', 'GET', `/v1/conversations/${acme}/status?tenant=acme`);
  expect(opened).toContain(`status ${hidden}`);
});

test('a fork of a tenant’s conversation that its tenant could not reach is refused, with what to say', async () => {
  const { status, json } = await ask(app, '/admin', 'POST', `/v1/conversations/${hidden}/fork`, { body: { at: TURN } });
  const words = `?tenant=acme and the id that it has there, ${acme}`;
  expect([status, json]).toMatchObject([409, { detail: expect.stringContaining(words) }]);
  expect(opened).toEqual([`describe ${hidden}`]);
});

test.each([...LISTS, 'GET /v1/conversations?text=plan', 'GET /v1/usage?by=conversation', 'GET /v1/usage?by=scope'])(
  '%s has a tenant’s own alone',
  async (route) => {
    const [method = '', path = ''] = route.split(' ');
    const answers = await Promise.all(['acme', 'globex', '/user', '/admin'].map((token) => ask(app, token, method, path)));
    const [own, other, user, all] = answers.map(({ text }) => text);
    expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 403)).toEqual([]);
    expect(own).not.toMatch(/t-[0-9a-f]{12}-|acme\.|of-operators/);
    expect(other).not.toMatch(/t-[0-9a-f]{12}-|acme|house|of-operators|swordfish/);
    expect(user).not.toMatch(/t-[0-9a-f]{12}-|acme|swordfish/);
    if (/conversation|approvals/.test(path)) expect([own?.includes(acme), all?.includes(hidden)]).toEqual([true, true]);
  },
);

test('what is about all of the installation is not there for a tenant, and agents are a tenant’s own', async () => {
  for (const path of OF_ALL.map((route) => route.slice(4))) {
    const statuses = await Promise.all(['globex', 'acme', '/admin'].map(async (token) => (await ask(app, token, 'GET', path)).status));
    expect([path, statuses]).toEqual([path, [404, 404, 200]]);
  }
  for (const path of ['/v1/agents', '/v1/models', '/a2a'].map(
    (of) => `${of}/house${of === '/a2a' ? '/.well-known/agent-card.json' : ''}`,
  )) {
    const statuses = await Promise.all(['globex', 'acme'].map(async (token) => (await ask(app, token, 'GET', path)).status));
    expect([path, statuses]).toEqual([path, [404, 200]]);
  }
  for (const path of ['/a2a/house', '/a2a/house/']) {
    const { text } = await ask(app, 'globex', 'POST', path, rpc(path, 'SendMessage', { message: said }));
    const other = await ask(app, 'globex', 'POST', path.replace('house', 'nobody'), rpc(path, 'SendMessage', { message: said }));
    expect(text.replaceAll('house', 'NAME')).toBe(other.text.replaceAll('nobody', 'NAME'));
  }
});

test('a scope of that name is the tenant’s own, and a whole name is none', async () => {
  const bodies: Record<string, object> = { forget: { text: 'x' }, preview: { text: 'x' }, review: { id: 'prop_0001', decision: 'accept' } };
  const statusesOf = async (token: string, scope: string): Promise<number[]> => {
    const statuses: number[] = [];
    for (const route of OF_SCOPES) {
      const [method = '', path = ''] = route.split(' ');
      const search = path.endsWith('/open') ? { scope, at: 'fact/sem_0001' } : { scope, question: 'what is the word?', conversation: acme };
      const body = path.startsWith('/v1/search') ? search : bodies[path.split('/').at(-1) ?? ''];
      statuses.push((await ask(app, token, method, path.replace(':scope', scope), { ...(body && { body }) })).status);
    }
    for (const name of ['read_memory', 'search_memory', 'open_memory']) {
      const given = { scope, question: 'what is the word?', at: 'memory/line 1' };
      const request = rpc('/mcp', 'tools/call', { name, arguments: given });
      await ask(app, token, 'POST', '/mcp', request);
    }
    return statuses;
  };
  expect(new Set(await statusesOf('globex', 'default'))).toEqual(new Set([200]));
  expect(new Set(scopes)).toEqual(new Set(['globex.default']));
  expect(scopes.length).toBeGreaterThan(OF_SCOPES.length);
  for (const scope of ['acme.default', 'globex.default']) {
    scopes.length = 0;
    expect(new Set(await statusesOf('globex', scope))).toEqual(new Set([400]));
    expect(scopes).toEqual([]);
  }
  expect(opened).toEqual([]);
});

test('another’s reference is as one that never was, in every protocol', async () => {
  const file = (of: string) => ({ role: 'user', content: [{ type: 'file', file: { file_id: of } }] });
  const image = (source: object) => ({ ...user, content: [{ type: 'image', source }] });
  const requests = (ref: string): Request[] => [
    { method: 'GET', path: `/v1/attachments/${ref}` },
    { method: 'GET', path: `/v1/attachments/${ref}/content` },
    post('/v1/conversations/new/messages', { text: 'look', images: [{ ref }], start: {} }),
    post('/v1/chat/completions', { model: 'default', messages: [file(ref)] }),
    post('/v1/responses', { model: 'default', input: [{ role: 'user', content: [{ type: 'input_image', file_id: ref }] }] }),
    post('/v1/messages', { model: 'default', max_tokens: 9, messages: [image({ type: 'file', file_id: ref })] }),
    post('/api/chat', { id: 'new', messages: [{ id: 'm', role: 'user', parts: [{ type: 'file', mediaType: 'image/png', url: ref }] }] }),
    post('/agui', { threadId: 'new', runId: 'r', messages: [{ id: 'm', ...image({ type: 'url', value: ref }) }] }),
    rpc('/a2a', 'SendMessage', { message: { ...said, parts: [{ url: ref }] } }),
  ];
  const answers = async (token: string, ref: string): Promise<object[]> => {
    const all: object[] = [];
    for (const request of requests(ref)) all.push(await inWords(token, request, ref));
    return all;
  };
  const expected = await answers('globex', lost);
  expect(expected.filter((one) => !JSON.stringify(one).includes('no attachment'))).toEqual([]);
  expect(await answers('globex', acmes)).toEqual(expected);
  expect(await answers('globex', nones)).toEqual(expected);
  expect(await answers('/admin', acmes)).toEqual(await answers('/admin', lost));
  const statuses = async (ref: string) =>
    Promise.all(['acme', 'globex', '/admin', '/user'].map(async (who) => (await ask(app, who, 'GET', `/v1/attachments/${ref}`)).status));
  expect([await statuses(acmes), await statuses(nones)]).toEqual([
    [200, 404, 404, 404],
    [404, 404, 200, 200],
  ]);
});

test('a file is sent in the name of who sends it', async () => {
  for (const token of ['acme', '/admin']) {
    calls.length = 0;
    await ask(app, token, 'POST', '/v1/attachments', { bytes: PNG, headers: { 'content-type': 'image/png' } });
    const options = calls.find(({ method }) => method === 'upload')?.given[1] as { tenant?: string };
    expect(options.tenant).toBe(token === 'acme' ? 'acme' : undefined);
  }
});

test.each([
  ['a tenant', () => createTenantClient(client, 'globex', TENANT_KEY), [acme, hidden, raw, operators]],
  ['those of none', () => createClientOfNoTenant(client), [hidden, raw]],
] as const)('no method of the client of %s looks into another’s', async (_who, made, ids) => {
  const own = made() as unknown as Record<string, ((...given: unknown[]) => unknown) | string>;
  const methods = Object.keys(client).filter((name) => typeof client[name as keyof PerduraClient] === 'function');
  expect(Object.keys(own).sort()).toEqual(Object.keys(client).sort());
  for (const id of ids) {
    // Its first argument is a number of bytes.
    for (const method of methods.filter((name) => name !== 'scope' && name !== 'checkRoomForFiles')) {
      const act = own[method];
      if (typeof act !== 'function') continue;
      const answer = await (async () => {
        const made = act(id, { at: TURN, to: TURN, text: 'x', conversation: id });
        return method === 'watch' ? (made as AsyncGenerator).next() : made;
      })().catch((error: unknown) => String(error));
      expect([method, JSON.stringify(answer) ?? '']).toEqual([method, expect.not.stringContaining(SECRET)]);
    }
  }
  expect(opened.filter((one) => one !== `describe ${raw}` && ids.some((id) => one.endsWith(` ${id}`)))).toEqual([]);
});
