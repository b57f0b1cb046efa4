/** An install without the protocol's library: its routes say which package brings it, and nothing else is touched. */
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { createGateway } from '../../../src/gateway/app.js';
import type { PerduraClient } from '../../../src/client.js';

jest.mock('@a2a-js/sdk', () => {
  throw Object.assign(new Error("Cannot find module '@a2a-js/sdk'"), { code: 'MODULE_NOT_FOUND' });
});

test('the card and the endpoint name the package', async () => {
  const token = 'a-token-that-only-tests-have';
  const app = createGateway({ client: {} as PerduraClient, authenticate: oneToken(token) });
  const headers = { host: 'localhost', authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const card = await app.request('http://localhost/.well-known/agent-card.json', { headers });
  expect([card.status, await card.json()]).toMatchObject([501, { detail: expect.stringContaining('npm install @a2a-js/sdk@1') }]);
  const call = await app.request('http://localhost/a2a', { method: 'POST', headers, body: '{}' });
  expect([call.status, await call.json()]).toMatchObject([
    501,
    { jsonrpc: '2.0', error: { message: expect.stringContaining('@a2a-js/sdk') } },
  ]);
  expect((await app.request('http://localhost/healthz', { headers })).status).toBe(200);
});
