/** Tenants on a real worker and store: each has its own by its own names, and nothing of what was said shows elsewhere (every-route.test.ts). */
import { randomUUID } from 'node:crypto';
import { createTenantIds } from '../../../src/client/tenants/names.js';
import type { GatewayApp } from '../../../src/gateway/context.js';
import { callTool, text } from '../../support/provider-apis/reply.js';
import { saidIn } from '../../support/echo-model.js';
import { begunSince, listedIds } from '../../support/listed-ids.js';
import { ask, TENANT_KEY, tenantGateway } from '../../support/tenants.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const SECRET = 'swordfish';
const GLOBEX = createTenantIds('globex', TENANT_KEY).prefix;
const HIDDEN = /t-[0-9a-f]{12}-/;
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

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
      // Behind what is known of all conversations, a first message has its day.
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
    const before = await listedIds(world.client);
    for (const token of ['acme', 'globex']) expect((await said(token, more, path)).status).toBe(200);
    // Acme goes on where it was; globex has a conversation of its own.
    const begunBy = (await begunSince(world.client, before)).map((id) => id.slice(0, GLOBEX.length));
    expect(begunBy).toEqual([GLOBEX]);
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
