/** A token that is revoked closes what it has open, in every protocol; what was begun with it goes on. */
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createGateway } from '../../../src/gateway/app.js';
import { hashOf, watchAuthFile } from '../../../src/gateway/access/auth-file.js';
import { createEntrance } from '../../../src/gateway/access/entrance.js';
import type { GatewayApp } from '../../../src/gateway/context.js';
import { gate, text, type Gate } from '../../support/provider-apis/reply.js';
import { ask, spentInMemory, TENANT_KEY } from '../../support/tenants.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const KEPT = 'a-token-that-is-kept-by-acme';
const tokenOf = (name: string): string => `a-token-of-acme-for-${name}`;

let world: World;
let app: GatewayApp;
let held: Gate;
/** At who holds a token. */
let looks = 0;
const names = ['native', 'waiting', 'openai', 'anthropic', 'ai-sdk', 'ag-ui', 'a2a', 'mcp'];

beforeAll(async () => {
  world = await startWorld({ answer: () => ({ ...text('one, and what comes after all that: two'), hold: held }) });
  await allow([KEPT, ...names.map(tokenOf)]);
  const entrance = createEntrance({
    auth: watchAuthFile(join(world.dir, 'auth.json'), () => undefined),
    ...{ secrets: [TENANT_KEY] as const, spent: spentInMemory() },
  });
  const authenticate: typeof entrance.authenticate = (token) => {
    looks += 1;
    return entrance.authenticate(token);
  };
  app = createGateway({
    client: world.client,
    ...entrance,
    authenticate,
    tenantKey: TENANT_KEY,
    agents: async () => ['default'],
    lookAgainMs: 100,
  });
});
beforeEach(() => (held = gate({ chars: 3 })));
afterAll(() => world.close());

async function allow(tokens: readonly string[]): Promise<void> {
  const created = '2026-01-01T00:00:00Z';
  const rows = tokens.map((token, at) => ({ name: `t${at}`, hash: hashOf(token), role: 'admin', tenant: 'acme', created }));
  const file = join(world.dir, 'auth.json');
  await writeFile(`${file}.new`, JSON.stringify({ tokens: rows }));
  await rename(`${file}.new`, file);
}

const input = { role: 'user', content: 'count' };
const OPEN: readonly (readonly [name: string, path: string, body: object, ends: RegExp, headers?: Record<string, string>])[] = [
  ['native', '/v1/conversations/native/messages', { text: 'count', start: {} }, /event: error\ndata: .*"status":401/, { accept: 'text/event-stream' }],
  ['waiting', '/v1/conversations/waiting/messages?wait=60', { text: 'count', start: {} }, /"status":401/],
  ['openai', '/v1/responses', { model: 'default', input: 'count', conversation: 'openai', stream: true }, /revoked/],
  ['anthropic', '/v1/messages', { model: 'default', max_tokens: 9, messages: [input], stream: true }, /revoked/],
  ['ai-sdk', '/api/chat', { id: 'ai-sdk', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'count' }] }] }, /"type":"error".*revoked/],
  ['ag-ui', '/agui', { threadId: 'ag-ui', runId: 'r', messages: [{ id: 'm', ...input }] }, /"RUN_ERROR".*revoked/],
  [
    'a2a',
    '/a2a',
    {
      ...{ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage' },
      params: { message: { messageId: 'm', contextId: 'a2a', role: 'ROLE_USER', parts: [{ text: 'count' }] } },
    },
    /revoked/,
    { 'a2a-version': '1.0' },
  ],
]; // prettier-ignore

test.each(OPEN.map((open) => ({ name: open[0], open })))('$name: what is open ends, and its turn goes on', async ({ open }) => {
  const [name, path, body, ends, headers = {}] = open;
  const answering = ask(app, tokenOf(name), 'POST', path, { body, headers });
  await held.reached;
  await allow([KEPT, ...names.filter((other) => other !== name).map(tokenOf)]);
  const { text: answer } = await answering;
  expect(answer).toMatch(ends);
  expect(answer).not.toContain(': two');
  expect((await ask(app, tokenOf(name), 'GET', '/v1/me')).status).toBe(401);
  held.release();
  if (name === 'anthropic') return;
  const entries = await waitFor(
    () => ask(app, KEPT, 'GET', `/v1/conversations/${name}/entries`),
    ({ text: all }) => all.includes('all that: two'),
  );
  expect(entries.status).toBe(200);
});

test('a token that is kept keeps what is open, however often it is looked at', async () => {
  const answering = ask(app, KEPT, 'POST', '/v1/conversations/kept/messages', {
    ...{ body: { text: 'count', start: {} }, headers: { accept: 'text/event-stream' } },
  });
  await held.reached;
  const before = looks;
  await waitFor(
    () => looks,
    (now) => now >= before + 5,
  );
  held.release();
  expect((await answering).text).toContain('event: turn-finished');
});
