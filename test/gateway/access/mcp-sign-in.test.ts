/** The gateway's side of signing in at MCP servers: pages for browsers without a token, and the calls that wait go on. */
import { createGateway } from '../../../src/gateway/app.js';
import type { McpSignIn } from '../../../src/gateway/access/mcp-sign-in.js';
import { oneToken } from '../../../src/gateway/access/entrance.js';
import type { PerduraClient } from '../../../src/client.js';

const VISITED = { server: '<b>x', host: 'mcp.example.com', owner: 'the scope ada', conversation: 'conv-1' };
const decided: unknown[] = [];
const waiting = [
  { tool: 'mcp_sign_in', arguments: { server: '<b>x' }, via: 'conv-1', callId: 'call_1', hash: 'h' },
  { tool: 'mcp_sign_in', arguments: { server: 'other' }, via: 'conv-1', callId: 'call_2', hash: 'h' },
  { tool: 'write_file', arguments: { server: '<b>x' }, via: 'conv-1', callId: 'call_3', hash: 'h' },
];
const client = {
  approvals: () => Promise.resolve(waiting),
  decide: (id: string, decision: object) => Promise.resolve(void decided.push([id, decision])),
} as unknown as PerduraClient;
const signIn: McpSignIn = {
  begin: (ticket) =>
    ticket === 'broken'
      ? Promise.reject(new Error('cannot sign in at mcp.example.com: it is away'))
      : Promise.resolve(ticket === 'good' ? { ...VISITED, location: new URL('https://auth.example.com/a?b="c"&d') } : undefined),
  finish: (answer) => Promise.resolve(answer.get('state') === 'good' ? VISITED : undefined),
  document: { client_id: 'https://perdura.example.com/oauth/mcp/client.json' },
};
const app = createGateway({ client, authenticate: oneToken('a token that is long enough to be one'), page: false, mcpSignIn: signIn });
const get = async (path: string) => {
  const response = await app.request(path, { headers: { host: 'localhost' } });
  return { status: response.status, text: await response.text(), headers: response.headers };
};

test('the link of an approval shows where it leads, with the host of the authorization server, and runs nothing', async () => {
  const { status, text, headers } = await get('/oauth/mcp/begin?for=good');
  expect(status).toBe(200);
  expect(text).toContain('asks you to sign in at auth.example.com, for the scope ada.');
  expect(text).toContain('href="https://auth.example.com/a?b=%22c%22&#38;d"');
  expect(text).not.toContain('<b>');
  expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(headers.get('referrer-policy')).toBe('no-referrer');
  expect(headers.get('cache-control')).toBe('no-store');
});

test('what was not made here is refused in words, as is what goes wrong', async () => {
  expect(await get('/oauth/mcp/begin?for=forged')).toMatchObject({ status: 400, text: expect.stringContaining('was not made here') });
  expect(await get('/oauth/mcp/callback?state=forged&code=1')).toMatchObject({ status: 400, text: expect.stringContaining('begin again') });
  expect(await get('/oauth/mcp/begin?for=broken')).toMatchObject({ status: 503, text: expect.stringContaining('it is away') });
  expect(decided).toEqual([]);
});

test('who comes back signed in lets the call go on that waits for that server, and no other', async () => {
  const { status, text } = await get('/oauth/mcp/callback?state=good&code=1');
  expect([status, text.includes('signed in at the MCP server')]).toEqual([200, true]);
  expect(decided).toEqual([['conv-1', { callId: 'call_1', decision: 'approve', hash: 'h' }]]);
});

test('authorization servers read who this client is', async () => {
  expect(JSON.parse((await get('/oauth/mcp/client.json')).text)).toEqual(signIn.document);
});
