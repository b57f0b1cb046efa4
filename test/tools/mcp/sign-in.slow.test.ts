/** Signing in at an MCP server over HTTP: a real server and a small authorization server on loopback, a worker's tools, and a browser. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFileStore } from '../../../src/stores/file/index.js';
import type { Store } from '../../../src/stores/store.js';
import { createServerTools, type ServerTools } from '../../../src/tools/mcp/server-tools.js';
import { createSignIns } from '../../../src/tools/mcp/sign-in/sign-ins.js';
import { createSignInVisits, type SignInVisits } from '../../../src/tools/mcp/sign-in/visits.js';
import type { Tool } from '../../../src/tools/tool.js';
import { startGuardedServer, type GuardedServer } from '../../support/guarded-mcp-server.js';
import { named, run, said, serversOf } from '../../support/mcp.js';

const SECRETS = ['a secret of this test that is long enough'] as const;
const PUBLIC_URL = 'http://127.0.0.1:7280';

let server: GuardedServer;
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
  server = await startGuardedServer();
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
