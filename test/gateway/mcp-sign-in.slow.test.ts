/** A person who is asked to sign in at an MCP server: from a model's call to its answer, by a real worker, gateway and authorization server. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSignInVisits } from '../../src/tools/mcp/sign-in/visits.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../src/gateway/index.js';
import { latestResults, resultText } from '../support/echo-model.js';
import { startGuardedServer, type GuardedServer } from '../support/guarded-mcp-server.js';
import { serversOf } from '../support/mcp.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { runsOf } from '../support/run-chain.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const SECRETS = ['a secret of this test that is long enough'] as const;
const TOKEN = 'a-token-that-only-tests-have';
/** Where the links lead: nobody listens there, and the browser of this test goes to the gateway instead. */
const PUBLIC_URL = 'http://127.0.0.1:1';

let guarded: GuardedServer;
let world: World;
let served: ServedGateway;
const prompts: unknown[] = [];

beforeAll(async () => {
  guarded = await startGuardedServer();
  const mcp = { mcpServers: { guarded: { type: 'http', url: guarded.url } } };
  world = await startWorld({
    mcp,
    signIn: { secrets: SECRETS, publicUrl: PUBLIC_URL },
    answer: (request) => {
      prompts.push(request);
      const results = latestResults(request).map(resultText);
      if (results.length === 0) return callTool('mcp_sign_in', { server: 'guarded' });
      if (results[0]?.includes('signed in')) return callTool('mcp__guarded__look', {});
      return text(`It says: ${results.join()}`);
    },
  });
  const [server] = serversOf(mcp.mcpServers);
  const mcpSignIn = createSignInVisits({
    ...{ store: world.store.signIns, secrets: SECRETS, publicUrl: PUBLIC_URL },
    findServer: () => Promise.resolve(server),
  });
  served = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), mcpSignIn, port: 0, version: '1' });
});
afterAll(async () => {
  await served.close();
  await world.close();
  await guarded.close();
});

/** Bytes of payloads as text. */
function readable(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, readable(one)]));
}

async function browse(address: string): Promise<{ readonly status: number; readonly page: string }> {
  const { pathname, search } = new URL(address);
  const response = await fetch(`${served.url}${pathname}${search}`);
  return { status: response.status, page: await response.text() };
}

test('a model asks for it, a person follows the link, and the turn goes on with the tools of the server; its tokens stand nowhere', async () => {
  const id = world.id();
  await world.client.start(id);
  const answered = world.client.send(id, 'look');
  const [waiting] = await waitFor(
    () => world.client.approvals(id),
    (all) => all.length > 0,
  );
  expect(waiting).toMatchObject({ tool: 'mcp_sign_in', arguments: { server: 'guarded' } });
  const link = /http\S+$/.exec(waiting?.why ?? '')?.[0] ?? '';

  const begun = await browse(link);
  expect([begun.status, begun.page.includes('Go on only if you expect this.')]).toEqual([200, true]);
  const there = /href="([^"]+)"/.exec(begun.page)?.[1]?.replaceAll('&#38;', '&') ?? '';
  const back = (await fetch(there, { redirect: 'manual' })).headers.get('location') ?? '';
  expect(back.startsWith(`${PUBLIC_URL}/oauth/mcp/callback?`)).toBe(true);
  expect(await browse(back)).toMatchObject({ status: 200, page: expect.stringContaining('You are signed in') });
  expect(await browse(back)).toMatchObject({ status: 503, page: expect.stringContaining('finished already') });

  const answer = await answered;
  expect(answer).toMatchObject({ stopReason: 'end', toolCalls: 2, text: expect.stringContaining('It says: looked with') });
  expect(guarded.calls).toHaveLength(1);

  const files = await readdir(world.dir, { recursive: true, withFileTypes: true });
  const stored = await Promise.all(files.filter((one) => one.isFile()).map((one) => readFile(join(one.parentPath, one.name), 'utf8')));
  const history = JSON.stringify((await runsOf(world, id)).map((events) => events.map((event) => readable(event))));
  expect(guarded.given.length).toBeGreaterThan(0);
  for (const token of guarded.given)
    for (const where of [answer.text, history, JSON.stringify(prompts), ...stored]) expect(where).not.toContain(token);
  expect(history).toContain('mcp__guarded__look');
});
