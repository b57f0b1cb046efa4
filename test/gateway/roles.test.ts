/**
 * docs/reference/roles.md has the table of operations by role and by whose a conversation is. Here each of its rows is tried, on each route
 * of each protocol: a route without a row, or one that does otherwise, fails. Behind the gateway stands a fake that notes what reaches it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PerduraClient } from '../../src/client.js';
import { taskName } from '../../src/gateway/a2a/task.js';
import { parseAuthFile } from '../../src/gateway/access/auth-file.js';
import type { Principal } from '../../src/gateway/access/principal.js';
import { createEntrance } from '../../src/gateway/access/entrance.js';
import { principalOfClaims } from '../../src/gateway/access/provider.js';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { fakeInstallation, type Call } from '../support/fake-client.js';
import { NAMING, post, requestsOf, rpc, said, TURN, user, type Request } from '../support/route-requests.js';
import { ask, spentInMemory } from '../support/tenants.js';

const CALL = `${TURN}/c1`;
const HASH = 'f'.repeat(64);
const PRINCIPALS: Readonly<Record<string, Principal>> = {
  'a-user': { name: 'ada', role: 'user' },
  'a-user-of-scopes': { name: 'ben', role: 'user', scopes: ['ben', 'team-*'] },
  'an-operator': { name: 'olga', role: 'operator' },
  'an-admin': { name: 'root', role: 'admin' },
};
/** What each is to the user ada. */
const CONVERSATIONS = { own: 'begun-by-ada', shared: 'begun-by-bob', others: 'in-a-scope' } as const;
type Whose = keyof typeof CONVERSATIONS;
const common = { tenant: null, publicId: null, title: '' };

const { client: told, calls } = fakeInstallation({
  conversations: [
    { ...common, id: CONVERSATIONS.own, owner: 'ada' },
    { ...common, id: CONVERSATIONS.shared, owner: 'bob' },
    { ...common, id: CONVERSATIONS.others, owner: 'ada', scope: 'boss' },
    { ...common, id: 'bens', owner: 'somebody', scope: 'ben' },
    { ...common, id: 'teams', scope: 'team-blue' },
  ],
});
const AGENT = { model: 'anthropic/small', models: ['anthropic/small', 'openai/small'], limits: { maxCostUsd: 5 } };

const { browsers } = createEntrance({ secrets: ['a-secret-that-only-tests-have'], spent: spentInMemory() });

function gateway(client: PerduraClient): GatewayApp {
  return createGateway({
    client,
    browsers,
    page: false,
    authenticate: (token) => Promise.resolve(PRINCIPALS[token]),
    agents: () => Promise.resolve(['default']),
    describeAgent: (name) => Promise.resolve({ name, config: AGENT, tools: [], servers: [], system: '' }),
    addToDataset: async (of, id, _turn, to) => ({ ...to, id, cases: (await of.history(id)).length, isNew: true }),
    requestsPerMinute: 1_000_000,
  });
}

const app = gateway(told);
const routes = [...new Set(app.routes.map(({ method, path }) => `${method} ${path}`))].filter((route) => route !== 'ALL /*');

interface Row {
  readonly operation: string;
  readonly routes: readonly string[];
  /** Of own, shared, others’, operator, admin. */
  readonly may: readonly boolean[];
}

const table = readFileSync(join(__dirname, '../../docs/reference/roles.md'), 'utf8')
  .split('\n')
  .flatMap((line): Row[] => {
    const [, operation = '', named = '', ...cells] = line.split('|').map((cell) => cell.trim());
    const may = cells.slice(0, 5).map((cell) => (cell === 'yes' || cell === 'no' ? cell === 'yes' : undefined));
    const found = [...named.matchAll(/`([A-Z]+ [^`]+)`/g)].map(([, route = '']) =>
      route.replace('…', '/v1/conversations').replace(/\{(\w+)\}/g, ':$1'),
    );
    return found.length === 0 ? [] : [{ operation, routes: found, may: may as boolean[] }];
  });

/** Decisions have a row of their own. */
const isDecision = ({ body }: Request): boolean => JSON.stringify(body ?? '').includes('decide_approval');
const isOfOne = (route: string): boolean => route.includes('/:id') || NAMING[route] !== undefined;
const REFUSALS = /may not use|another user began|needs the role|chosen by an operator|an operator may/;

interface Tried {
  /** It reached more than the look at whose it is. */
  readonly isDone: boolean;
  readonly status: number;
  readonly text: string;
}

async function attempt(token: string, { method, path, ...asked }: Request): Promise<Tried> {
  calls.length = 0;
  const { status, text } = await ask(app, token, method, path, asked);
  return { isDone: calls.some((call) => call.method !== 'describe'), status, text };
}

test('each route stands in one row of the table, and each row is one of yes and no', () => {
  const named = table.flatMap((row) => row.routes);
  expect([...named].sort()).toEqual([...routes].sort());
  expect(table.filter(({ may }) => may.length !== 5 || may.includes(undefined as never))).toEqual([]);
});

test.each(table)('$operation: as the table says, for each role and whose it is', async ({ routes: all, may }) => {
  const [own, shared, others, operator, admin] = may;
  const cells = [
    ['a-user', 'own', own],
    ['a-user', 'shared', shared],
    ['a-user', 'others', others],
    ['an-operator', 'others', operator],
    ['an-admin', 'others', admin],
  ] as const;
  for (const route of all.filter(isOfOne)) {
    for (const [token, whose, isAllowed] of cells) {
      for (const request of requestsOf(route, CONVERSATIONS[whose]).filter((one) => !isDecision(one))) {
        const { isDone, status, text } = await attempt(token, request);
        const isRefused = status === 403 || REFUSALS.test(text);
        const seen = { route, whose, token, body: request.body, isDone, ...(!isDone && { isRefused }) };
        expect(seen).toEqual({ ...seen, isDone: isAllowed, ...(isAllowed === false && { isRefused: true }) });
      }
    }
  }
  // Of no conversation: the role alone decides.
  for (const route of all.filter((one) => !isOfOne(one) && !one.endsWith(' /v1/conversations'))) {
    const [method = '', path = ''] = route.replace('ALL', 'GET').split(' ');
    const roles = [
      ['a-user', own],
      ['an-operator', operator],
      ['an-admin', admin],
    ] as const;
    // What any may needs one token.
    for (const [token, isAllowed] of may.includes(false) ? roles : roles.slice(0, 1)) {
      const { status } = await ask(app, token, method, path.replace(/:\w+/g, 'default'), {
        headers: { origin: 'http://localhost' },
        ...(method !== 'GET' && { body: {} }),
      });
      expect([route, token, status === 403]).toEqual([route, token, !isAllowed]);
    }
  }
});

describe('lists and starts', () => {
  const listed = async (token: string): Promise<string[]> => {
    const { json } = await ask(app, token, 'GET', '/v1/conversations');
    return (json as { conversations: { id: string }[] }).conversations.map(({ id }) => id).sort();
  };

  test('a list has what its reader may see, in each protocol that lists', async () => {
    expect(await listed('a-user')).toEqual([CONVERSATIONS.own, CONVERSATIONS.shared].sort());
    expect(await listed('a-user-of-scopes')).toEqual(['bens', 'teams']);
    expect((await listed('an-operator')).length).toBe(5);
    const list = rpc('/mcp', 'tools/call', { name: 'list_conversations', arguments: {} });
    expect((await attempt('a-user', list)).text).not.toContain(CONVERSATIONS.others);
    expect((await attempt('an-operator', list)).text).toContain(CONVERSATIONS.others);
    calls.length = 0;
    await attempt('a-user', rpc('/a2a', 'ListTasks', {}));
    expect(calls.filter(({ given }) => given[0] === CONVERSATIONS.others)).toEqual([]);
  });

  const starts = (start: object): Request[] => [
    post('/v1/conversations', { id: 'new', ...start }),
    post('/v1/conversations/new/messages', { text: 'hello', start }),
    post('/api/chat', { id: 'new', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'hello' }] }], ...start }),
    post('/agui', { threadId: 'new', runId: 'r', messages: [{ id: 'm', ...user }], forwardedProps: { perdura: start } }),
  ];
  const startOf = (): Call['given'][number] => calls.find(({ method }) => method === 'start')?.given[1];

  test.each([
    ['a scope of others', { scope: 'boss' }],
    ['a model that agent.json does not name', { model: 'anthropic/huge' }],
  ])('a user starts nothing with %s, in any protocol', async (_what, start) => {
    for (const request of starts(start)) {
      const { text } = await attempt('a-user', request);
      expect([request.path, startOf(), REFUSALS.test(text)]).toEqual([request.path, undefined, true]);
      await attempt('an-operator', request);
      expect([request.path, startOf()]).toEqual([request.path, expect.objectContaining(start)]);
    }
  });

  test('what a user starts is its own, in its scope, within the limits of agent.json', async () => {
    for (const request of starts({ model: 'openai/small' })) {
      await attempt('a-user', request);
      expect([request.path, startOf()]).toEqual([request.path, expect.objectContaining({ owner: 'ada', model: 'openai/small' })]);
      await attempt('a-user-of-scopes', request);
      expect(startOf()).toMatchObject({ owner: 'ben', scope: 'ben' });
    }
    await attempt('a-user', post('/v1/conversations', { id: 'new', budget: {} }));
    expect(startOf()).toMatchObject({ budget: { within: 'agent' } });
    await attempt('a-user', post('/v1/conversations', { id: 'new', budget: { maxCostUsd: 100 } }));
    expect(startOf()).toMatchObject({ budget: { maxCostUsd: 100, within: 'agent' } });
    await attempt('an-operator', post('/v1/conversations', { id: 'new', budget: { maxCostUsd: 100 } }));
    expect(startOf()).toEqual({ budget: { maxCostUsd: 100 } });
    const statusOf = async (start: object) => (await attempt('a-user', post('/v1/conversations', start))).status;
    for (const mode of ['stepping', 'auto']) expect(await statusOf({ id: 'new', mode })).toBe(403);
    expect(await statusOf({ id: CONVERSATIONS.others })).toBe(403);
    expect(await statusOf({ id: CONVERSATIONS.shared })).toBe(201);
  });

  test('a conversation is moved to no scope of others, by a fork or a new life', async () => {
    for (const [path, body] of [
      ['fork', { at: TURN, scope: 'boss' }],
      ['resume', { scope: 'boss' }],
    ] as const) {
      const { status } = await attempt('a-user', post(`/v1/conversations/${CONVERSATIONS.own}/${path}`, body));
      expect([path, status, calls.some(({ method }) => method === path)]).toEqual([path, 403, false]);
    }
    await attempt('a-user', post(`/v1/conversations/${CONVERSATIONS.shared}/fork`, { at: TURN }));
    const begun = { owner: 'ada', model: null, budget: { within: 'agent' }, latestLifeOnly: true };
    expect(calls.find(({ method }) => method === 'fork')?.given[1]).toMatchObject(begun);
    // Another agent, or a budget, changes it.
    expect((await attempt('a-user', post(`/v1/conversations/${CONVERSATIONS.shared}/resume`, { budget: {} }))).status).toBe(403);
  });
});

test('a user’s scopes are its own whoever began what is in them, and no other is seen', async () => {
  const decide = (id: string) => attempt('a-user-of-scopes', post(`/v1/conversations/${id}/decide`, { callId: CALL, decision: 'approve' }));
  for (const id of ['bens', 'teams']) expect([id, (await decide(id)).isDone]).toEqual([id, true]);
  for (const id of Object.values(CONVERSATIONS)) expect([id, (await decide(id)).status]).toEqual([id, 403]);
  const start = post('/v1/conversations', { id: 'new', scope: 'default' });
  expect((await attempt('a-user-of-scopes', start)).status).toBe(403);
  expect((await attempt('a-user-of-scopes', { ...start, body: { id: 'new', scope: 'team-red' } })).status).toBe(201);
});

const patch = (id: string, body: object): Request => ({ method: 'PATCH', path: `/v1/conversations/${id}`, body });

test('of its own conversation a user lowers the budget, chooses among the agent’s models, and leaves the mode', async () => {
  const tried = async (body: object) => {
    const { status } = await attempt('a-user', patch(CONVERSATIONS.own, { title: 'mine', ...body }));
    return [status === 403, calls.filter(({ method }) => method !== 'describe').map(({ method, given }) => [method, given[1]])];
  };
  expect(await tried({ budget: {} })).toEqual([false, [['raiseBudget', { within: 'agent' }]]]);
  expect(await tried({ budget: { maxTokens: 9 } })).toEqual([false, [['raiseBudget', { maxTokens: 9, within: 'agent' }]]]);
  expect(await tried({ model: 'openai/small' })).toEqual([false, [['setModel', 'openai/small']]]);
  expect(await tried({ model: null })).toEqual([false, [['setModel', null]]]);
  expect(await tried({ model: 'openai/huge' })).toEqual([true, []]);
  for (const mode of ['stepping', 'auto']) expect(await tried({ mode })).toEqual([true, []]);
  await attempt('an-operator', patch(CONVERSATIONS.own, { budget: {} }));
  expect(calls.map(({ given }) => given[1])).toEqual([{}]);
});

describe('decisions, in each protocol', () => {
  const decided: string[] = [];
  const waiting = (kind: 'approval' | 'client-tool') => {
    const status = { turn: 1, phase: 'waiting-for-person', pendingApprovals: 1, queued: 0 };
    const call = { callId: CALL, turnId: TURN, kind, tool: 'client__look', target: '', hash: HASH };
    const pending = { ...call, askedIn: 1, askedAt: 0, expiresAt: 9e15 };
    return gateway({
      ...told,
      status: async () => status as never,
      history: async () => [],
      approvals: async (id: string) => [{ ...pending, conversation: id, via: id }],
      decide: async (id: string) => {
        decided.push(id);
        return { callId: CALL, decision: 'approve' as const };
      },
    });
  };
  const person = waiting('approval');
  const tool = waiting('client-tool');
  const answer = { callId: CALL, decision: 'approve', hash: HASH };
  const requests: readonly (readonly [name: string, app: GatewayApp, request: (id: string) => Request])[] = [
    ['native', person, (id) => post(`/v1/conversations/${id}/decide`, answer)],
    [
      'AG-UI',
      person,
      (id) => {
        const resume = [{ interruptId: CALL, status: 'resolved', payload: { approved: true } }];
        return post('/agui', { threadId: id, runId: 'r', messages: [], resume });
      },
    ],
    [
      'AI SDK',
      person,
      (id) => {
        const part = { type: 'tool-look', toolCallId: CALL, state: 'approval-responded', input: {}, approval: { id: 'a', approved: true } };
        const asked = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'x' }] };
        return post('/api/chat', { id, messages: [asked, { id: TURN, role: 'assistant', parts: [part] }] });
      },
    ],
    [
      'A2A',
      person,
      (id) => {
        const message = { ...said, parts: [{ data: answer }], taskId: taskName(id, TURN).task };
        return rpc('/a2a', 'SendMessage', { message });
      },
    ],
    [
      'MCP',
      person,
      (conversation) =>
        rpc('/mcp', 'tools/call', { name: 'decide_approval', arguments: { conversation, call_id: CALL, hash: HASH, decision: 'approve' } }),
    ],
    ...(['/v1/responses', '/v1/chat/completions', '/v1/messages'] as const).map(
      (path) => [path, tool, (id: string) => (NAMING[`POST ${path}`]?.(id) ?? []).at(-1) ?? post(path, {})] as const,
    ),
  ];

  test.each(requests)('%s: of its own conversations alone for a user', async (name, to, request) => {
    const tried = async (token: string, whose: Whose) => {
      decided.length = 0;
      const id = CONVERSATIONS[whose];
      const { method, path, ...asked } = request(id);
      const { text } = await ask(to, token, method, path, asked);
      return { isDecided: decided.includes(id), isRefused: REFUSALS.test(text) };
    };
    const done = { isDecided: true, isRefused: false };
    const refused = { isDecided: false, isRefused: true };
    const byUser = [await tried('a-user', 'own'), await tried('a-user', 'shared'), await tried('a-user', 'others')];
    expect([name, ...byUser]).toEqual([name, done, refused, refused]);
    expect([name, await tried('an-operator', 'shared')]).toEqual([name, done]);
  });
});

test('of a shared conversation a user reads no memory of others', async () => {
  const fact = (conversation: string) => ({ id: conversation, fact: conversation, source: { conversation, turn_ids: [] }, batch: null });
  const change = { kind: 'compacted', text: 'secret', beforeText: 'secret', afterText: 'secret' };
  const remembering = gateway({
    ...told,
    memory: async () => ({ episodes: [], facts: [fact(CONVERSATIONS.own), fact('of-others')], skipped: 0 }) as never,
    chunk: async (_id: string, chunk: string) => ({ id: chunk, text: 'secret' }) as never,
    contextChanges: async () => ({ changes: [change], complete: true, problems: [] }) as never,
  });
  const read = async (token: string, id: string, what: string): Promise<string> =>
    (await ask(remembering, token, 'GET', `/v1/conversations/${id}/${what}`)).text;
  expect(await read('a-user', CONVERSATIONS.own, 'memory')).not.toContain('of-others');
  expect(await read('a-user', CONVERSATIONS.own, 'memory')).toContain(CONVERSATIONS.own);
  for (const what of ['context/chunks/memory', 'context/changes']) {
    expect([what, await read('a-user', CONVERSATIONS.own, what)]).toEqual([what, expect.not.stringContaining('secret')]);
    expect([what, await read('an-operator', CONVERSATIONS.own, what)]).toEqual([what, expect.stringContaining('secret')]);
    expect([what, await read('a-user-of-scopes', 'bens', what)]).toEqual([what, expect.stringContaining('secret')]);
  }
  expect(await read('a-user-of-scopes', 'bens', 'memory')).toContain('of-others');
});

describe('where scopes come from', () => {
  const row = { name: 'ada', hash: `sha256:${'0'.repeat(64)}`, created: '2026-01-01T00:00:00Z' };
  const file = (more: object) => () => parseAuthFile(JSON.stringify({ tokens: [{ ...row, ...more }] }), 'auth.json').tokens[0];

  test('the row of a token: for users alone, and as names or beginnings', () => {
    expect(file({ role: 'user', scopes: ['ada', 'team-*', '*'] })()).toMatchObject({ scopes: ['ada', 'team-*', '*'] });
    for (const scopes of [[], ['a b'], ['*x'], ['acme.ada'], ['']]) expect(file({ role: 'user', scopes })).toThrow('scopes');
    for (const role of ['operator', 'admin']) expect(file({ role, scopes: ['ada'] })).toThrow('limits a user');
  });

  test('a claim of the provider: names alone, and no user without one', () => {
    const settings = { roles: { staff: 'user', ops: 'operator' }, roleClaim: 'roles', scopesClaim: 'sub' } as never;
    expect(principalOfClaims({ sub: 'ada', roles: 'staff' }, settings)).toEqual({ name: 'user:ada', role: 'user', scopes: ['ada'] });
    expect(principalOfClaims({ sub: 'ada', roles: 'ops' }, settings)).toEqual({ name: 'user:ada', role: 'operator' });
    for (const sub of ['*', 'ada*', 'acme.ada']) {
      expect(() => principalOfClaims({ sub, roles: 'staff' }, settings)).toThrow('no scope here');
    }
  });
});
