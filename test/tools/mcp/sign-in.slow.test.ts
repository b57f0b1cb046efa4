/** Signing in at an MCP server over HTTP: a real server and a small authorization server on loopback, a worker's tools, and a browser. */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFileStore } from '../../../src/stores/file/index.js';
import type { Store } from '../../../src/stores/store.js';
import { createServerTools, type ServerTools } from '../../../src/tools/mcp/server-tools.js';
import { createSignIns } from '../../../src/tools/mcp/sign-in/sign-ins.js';
import { createSignInVisits, type SignInVisits } from '../../../src/tools/mcp/sign-in/visits.js';
import type { Tool } from '../../../src/tools/tool.js';
import { aTool, named, run, said, serversOf } from '../../support/mcp.js';

const SECRETS = ['a secret of this test that is long enough'] as const;
const PUBLIC_URL = 'http://127.0.0.1:7280';

/** An MCP server that wants a token, and beside it the authorization server that gives one. */
interface Guarded {
  readonly url: string;
  /** The token that came with each call of a tool. */
  readonly calls: string[];
  /** Each refresh token that was shown, whether or not it was good. */
  readonly refreshed: string[];
  readonly given: string[];
  /** From now on no token that was given opens. */
  expire(): void;
  /** From now on no refresh token is taken. */
  revoke(): void;
  /** From now on a call needs this scope. */
  need(scope: string): void;
  /** From now on a sign-in gives this scope, whatever was asked for. */
  grant(scope: string): void;
  /** Authorization servers that its metadata names, in place of its own. */
  name(server: string): void;
  close(): Promise<void>;
}

async function guarded(): Promise<Guarded> {
  const [{ Server }, { StreamableHTTPServerTransport }, types] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/index.js'),
    import('@modelcontextprotocol/sdk/server/streamableHttp.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  const [calls, refreshed, given]: string[][] = [[], [], []];
  const codes = new Map<string, { readonly challenge: string; readonly scope: string; readonly redirect: string }>();
  const open = new Map<string, string>();
  const refreshTokens = new Map<string, string>();
  let needed = '';
  let granted: string | undefined;
  let other: string | undefined;
  let origin = '';
  const give = (scope: string): object => {
    const [access, refresh] = [`access-${randomUUID()}`, `refresh-${randomUUID()}`];
    open.set(access, scope);
    refreshTokens.set(refresh, scope);
    given?.push(access, refresh);
    return { access_token: access, token_type: 'Bearer', expires_in: 60, refresh_token: refresh, scope };
  };
  const token = (form: URLSearchParams): object | undefined => {
    if (form.get('grant_type') === 'refresh_token') {
      const shown = form.get('refresh_token') ?? '';
      refreshed?.push(shown);
      const scope = refreshTokens.get(shown);
      // Good once.
      refreshTokens.delete(shown);
      return scope === undefined ? undefined : give(scope);
    }
    const code = codes.get(form.get('code') ?? '');
    codes.delete(form.get('code') ?? '');
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    return code?.challenge === challenge && code.redirect === form.get('redirect_uri') ? give(granted ?? code.scope) : undefined;
  };
  const json = (response: ServerResponse, status: number, body: object): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', origin);
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString();
    if (url.pathname === '/.well-known/oauth-protected-resource/mcp')
      return json(response, 200, { resource: `${origin}/mcp`, authorization_servers: [other ?? origin] });
    if (url.pathname === '/.well-known/oauth-authorization-server')
      return json(response, 200, {
        ...{ issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` },
        ...{ registration_endpoint: `${origin}/register`, response_types_supported: ['code'], code_challenge_methods_supported: ['S256'] },
        token_endpoint_auth_methods_supported: ['none'],
      });
    if (url.pathname === '/register') return json(response, 201, { ...(JSON.parse(body) as object), client_id: randomUUID() });
    if (url.pathname === '/token') {
      const answer = token(new URLSearchParams(body));
      return json(response, answer ? 200 : 400, answer ?? { error: 'invalid_grant', error_description: `canary ${body}` });
    }
    if (url.pathname === '/authorize') {
      const code = randomUUID();
      const redirect = url.searchParams.get('redirect_uri') ?? '';
      codes.set(code, { challenge: url.searchParams.get('code_challenge') ?? '', scope: url.searchParams.get('scope') ?? '', redirect });
      const back = new URL(redirect);
      back.search = new URLSearchParams({ code, state: url.searchParams.get('state') ?? '' }).toString();
      return void response.writeHead(302, { location: back.href }).end();
    }
    if (url.pathname !== '/mcp') return void response.writeHead(404).end();
    const shown = request.headers.authorization?.replace('Bearer ', '') ?? '';
    const scope = open.get(shown);
    const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
    if (scope === undefined) return void response.writeHead(401, { 'www-authenticate': `Bearer ${metadata}, scope="read"` }).end();
    const message = (body === '' ? {} : JSON.parse(body)) as { readonly method?: string };
    if (message.method === 'tools/call' && !needed.split(' ').every((one) => one === '' || scope.split(' ').includes(one)))
      return void response
        .writeHead(403, { 'www-authenticate': `Bearer error="insufficient_scope", scope="${needed}", ${metadata}` })
        .end();
    const server = new Server({ name: 'guarded', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: [aTool('look') as never] }));
    server.setRequestHandler(types.CallToolRequestSchema, () => {
      calls?.push(shown);
      // A hostile server says what it was shown.
      return { content: [{ type: 'text', text: `looked with ${shown}` }] };
    });
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    await transport.handleRequest(request, response, body === '' ? undefined : message);
  };
  const http: HttpServer = createServer((request, response) => {
    if (request.method !== 'POST' && request.url === '/mcp') return void response.writeHead(405).end();
    serve(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return {
    ...{ url: `${origin}/mcp`, calls: calls ?? [], refreshed: refreshed ?? [], given: given ?? [] },
    expire: () => open.clear(),
    revoke: () => refreshTokens.clear(),
    need: (scope) => (needed = scope),
    grant: (scope) => (granted = scope),
    name: (server) => (other = server),
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

let server: Guarded;
let dir: string;
let store: Store;
let visits: SignInVisits;
const lines: string[] = [];
const workers: ServerTools[] = [];

const servers = () => serversOf({ guarded: { type: 'http', url: server.url } });
const aWorker = (secrets: readonly [string] | undefined = SECRETS): ServerTools => {
  const signIns = createSignIns({ store: store.signIns, secrets, publicUrl: PUBLIC_URL });
  const made = createServerTools({ pins: store.pins, variables: {}, version: '0', log: (line) => lines.push(line), signIns });
  workers.push(made);
  return made;
};
const offered = (worker: ServerTools, scope: string, turn?: string) =>
  worker.of({ namespace: 'default', agent: 'ada', scope, servers: servers(), taken: [] }, { patienceMs: 8_000, ...(turn && { turn }) });
/** What a model is shown in one turn. */
const offer = async (worker: ServerTools, scope = 'ada'): Promise<readonly Tool[]> => (await offered(worker, scope, `life/${scope}`)).tools;
const shown = async (worker: ServerTools, scope?: string): Promise<string[]> => (await offer(worker, scope)).map(({ name }) => name);
const look = async (worker: ServerTools, scope?: string) => run(named(await offer(worker, scope), 'mcp__guarded__look'));
/** What the person is asked, and where the link leads. */
const asks = async (worker: ServerTools, scope?: string): Promise<string> => {
  const tool = named(await offer(worker, scope), 'mcp_sign_in');
  return (await tool.examine?.({ server: 'guarded' }, { workspace: dir, conversation: 'conv-1' }))?.asks?.why ?? '';
};
const browse = async (why: string): Promise<URLSearchParams> => {
  const begun = await visits.begin(/for=([\w-]+)$/.exec(why)?.[1] ?? '');
  if (begun === undefined) throw new Error(`no link: ${why}`);
  const there = await fetch(begun.location, { redirect: 'manual' });
  return new URL(there.headers.get('location') ?? '').searchParams;
};
const signIn = async (worker: ServerTools, scope = 'ada') => {
  await visits.finish(await browse(await asks(worker, scope)));
  return run(named((await offered(worker, scope)).tools, 'mcp_sign_in'), { server: 'guarded' });
};
const everythingStored = async (): Promise<string> => {
  const files = await readdir(dir, { recursive: true, withFileTypes: true });
  return (await Promise.all(files.filter((one) => one.isFile()).map((one) => readFile(join(one.parentPath, one.name), 'utf8')))).join('\n');
};

beforeEach(async () => {
  server = await guarded();
  dir = await mkdtemp(join(tmpdir(), 'perdura-sign-in-'));
  store = createFileStore({ dir });
  lines.length = 0;
  const given = { store: store.signIns, secrets: SECRETS, publicUrl: PUBLIC_URL };
  visits = createSignInVisits({ ...given, findServer: ({ server: name }) => Promise.resolve(servers().find((one) => one.name === name)) });
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.close()));
  await store.close();
  await server.close();
  await rm(dir, { recursive: true, force: true });
});

const everyToken = /(?:access|refresh)-[0-9a-f-]{36}/;

test('a server that wants a token offers a sign-in, with a link, and after it its tools in the same turn; no token is shown or stored open', async () => {
  const worker = aWorker();
  expect(await shown(worker)).toEqual(['mcp_sign_in']);
  const host = new URL(server.url).host;
  const why = await asks(worker);
  expect(why).toContain(`sign in at ${host} for the scope ada: ${PUBLIC_URL}/oauth/mcp/begin?for=`);
  expect(why.length).toBeLessThan(500);
  expect(said(await signIn(worker))).toBe('A person has signed in at the MCP server guarded. Its tools can be called now.');
  expect(await shown(worker)).toEqual(['mcp__guarded__look']);
  expect(said(await look(worker))).toBe('looked with [redacted]');
  expect(server.calls).toEqual([server.given[0]]);
  const stored = await everythingStored();
  expect(stored).toContain('"sealed"');
  for (const text of [stored, lines.join('\n')]) expect(text).not.toMatch(everyToken);
  expect(lines).toEqual([
    `MCP server guarded: a person has to sign in at ${host}`,
    `MCP server guarded: a person has to sign in at ${host} for the scope ada: perdura mcp sign-in ada guarded`,
  ]);
});

test('a call that is approved before anybody has signed in ends in words that say who has to sign in where', async () => {
  const worker = aWorker();
  await offer(worker);
  const ended = await run(named(await offer(worker), 'mcp_sign_in'), { server: 'guarded' });
  expect(ended).toEqual({
    ok: false,
    error: expect.stringContaining('No person has signed in yet: a person has to sign in at 127.0.0.1:'),
  });
});

test('a token that has expired in mid-turn is renewed, and the call is repeated once', async () => {
  const worker = aWorker();
  await offer(worker);
  await signIn(worker);
  await look(worker);
  server.expire();
  expect((await look(worker)).ok).toBe(true);
  expect(server.calls).toEqual([server.given[0], server.given[2]]);
  expect(server.refreshed).toEqual([server.given[1]]);
});

test('of two workers that renew at once one sends the refresh token, and both go on with what it got', async () => {
  const [one, other] = [aWorker(), aWorker()];
  await offer(one);
  await signIn(one);
  await Promise.all([look(one), look(other)]);
  server.expire();
  expect((await Promise.all([look(one), look(other), look(one)])).map(({ ok }) => ok)).toEqual([true, true, true]);
  expect(server.refreshed).toEqual([server.given[1]]);
  server.expire();
  expect((await look(other)).ok).toBe(true);
  expect(server.refreshed).toEqual([server.given[1], server.given[3]]);
});

test('a refresh token that is refused asks a person anew, and nothing of the refusal is shown', async () => {
  const worker = aWorker();
  await offer(worker);
  await signIn(worker);
  await look(worker);
  server.expire();
  server.revoke();
  const ended = said(await look(worker));
  expect(ended).toContain('did not run: a person has to sign in at 127.0.0.1:');
  expect(ended).toContain('Call mcp_sign_in with the server guarded');
  expect(await shown(worker)).toEqual(['mcp__guarded__look', 'mcp_sign_in']);
  expect([ended, ...lines].join()).not.toContain('canary');
  await signIn(worker);
  expect((await look(worker)).ok).toBe(true);
});

test('a scope that is missing is asked for once: a server that refuses in spite of it is told to the model', async () => {
  const worker = aWorker();
  await offer(worker);
  await signIn(worker);
  server.need('write');
  expect(said(await look(worker))).toContain('Call mcp_sign_in');
  const why = await asks(worker);
  const begun = await visits.begin(/for=([\w-]+)$/.exec(why)?.[1] ?? '');
  expect(begun?.location.searchParams.get('scope')).toBe('read write');
  await signIn(worker);
  expect((await look(worker)).ok).toBe(true);
  // From now on it gives no more than it has given.
  server.grant('read write');
  server.need('admin');
  expect(said(await look(worker))).toContain('Call mcp_sign_in');
  await signIn(worker);
  expect(said(await look(worker))).not.toContain('Call mcp_sign_in');
  expect(await shown(worker)).toEqual(['mcp__guarded__look']);
});

test('scopes and tenants have each their own token, and none is used for another', async () => {
  const worker = aWorker();
  await offer(worker, 'acme.ada');
  await signIn(worker, 'acme.ada');
  expect((await look(worker, 'acme.ada')).ok).toBe(true);
  for (const other of ['ada', 'umbra.ada', 'acme.bob']) expect(await shown(worker, other)).toContain('mcp_sign_in');
  expect(await asks(worker, 'umbra.ada')).toContain('for the scope ada of the tenant umbra');
  await signIn(worker, 'umbra.ada');
  await look(worker, 'umbra.ada');
  expect(server.calls).toEqual([server.given[0], server.given[2]]);
  expect((await look(worker, 'acme.bob')).ok).toBe(false);
});

test('what a browser brings back counts once, and only as it was begun', async () => {
  const worker = aWorker();
  await offer(worker);
  const back = await browse(await asks(worker));
  const forged = new URLSearchParams({ code: back.get('code') ?? '', state: 'x'.repeat(200) });
  expect(await visits.finish(forged)).toBeUndefined();
  // The link of the approval is no state.
  const ticket = /for=([\w-]+)$/.exec(await asks(worker))?.[1] ?? '';
  expect(await visits.finish(new URLSearchParams({ code: back.get('code') ?? '', state: ticket }))).toBeUndefined();
  expect(await visits.finish(back)).toMatchObject({ server: 'guarded', owner: 'the scope ada', conversation: 'conv-1' });
  await expect(visits.finish(back)).rejects.toThrow('this sign-in was finished already');
  const again = await browse(`for=${ticket}`);
  again.set('code', back.get('code') ?? '');
  await expect(visits.finish(again)).rejects.toThrow('gave no token: invalid_grant');
});

test('without PERDURA_SECRET nothing is kept: the server is down, in words that say what to set', async () => {
  const signIns = createSignIns({ store: store.signIns, publicUrl: PUBLIC_URL });
  const worker = createServerTools({ pins: store.pins, variables: {}, version: '0', log: (line) => lines.push(line), signIns });
  workers.push(worker);
  await offer(worker);
  expect(lines.join()).toContain('PERDURA_SECRET is not set: tokens are only kept sealed with a key of it');
  expect(await everythingStored()).not.toContain('sealed');
});

test('another secret opens nothing of the store: a person signs in anew', async () => {
  const worker = aWorker();
  await offer(worker);
  await signIn(worker);
  expect(await shown(aWorker(['another secret that is as long as the first one']))).toContain('mcp_sign_in');
});

test('metadata that leads elsewhere than the public internet, or where the server itself is, is not followed', async () => {
  const worker = aWorker();
  await offer(worker);
  server.name('http://10.0.0.1:9/');
  await expect(browse(await asks(worker))).rejects.toThrow('its host is not on the public internet');
  server.name('https://169.254.169.254');
  await expect(browse(await asks(worker))).rejects.toThrow('its host is not on the public internet');
});
