/** Browsers: a link's code becomes a cookie, which opens for pages of the gateway itself, and for nobody else. */
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGateway } from '../../../src/gateway/app.js';
import { hashOf, watchAuthFile } from '../../../src/gateway/access/auth-file.js';
import { createEntrance, type Entrance } from '../../../src/gateway/access/entrance.js';
import { createSeal } from '../../../src/platform/seal.js';
import { recordSpentInFolder, type SpentRecord } from '../../../src/gateway/access/spent.js';
import type { GatewayApp } from '../../../src/gateway/context.js';
import { TENANT_KEY } from '../../support/tenants.js';
import { unreachedClient } from '../../support/fake-client.js';

const TOKEN = 'a-token-that-only-tests-have';
const SAME = { 'sec-fetch-site': 'same-origin', origin: 'http://localhost' };
const logged: string[] = [];

interface Stand {
  readonly app: GatewayApp;
  readonly entrance: Entrance;
}

interface StandOptions {
  readonly token?: string;
  readonly file?: string;
  readonly spent?: SpentRecord;
}

const log = (line: string): void => void logged.push(line);

/** Each as after a start: it knows what is in the folder, and nothing else. */
function stand({ token = TOKEN, file, spent = recordSpentInFolder(join(dir, 'spent'), log) }: StandOptions = {}): Stand {
  const entrance = createEntrance({
    ...(file === undefined ? {} : { auth: watchAuthFile(file, log) }),
    token,
    secrets: [TOKEN],
    spent,
    log,
  });
  const app = createGateway({
    client: unreachedClient().client,
    tenantKey: TENANT_KEY,
    ...entrance,
    origins: ['http://app.localhost:3000'],
    log,
    accessLog: log,
  });
  return { app, entrance };
}

let dir: string;
let app: GatewayApp;
let entrance: Entrance;
beforeEach(async () => {
  logged.splice(0);
  dir = await mkdtemp(join(tmpdir(), 'perdura-browsers-'));
  ({ app, entrance } = stand());
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const ask = (method: string, path: string, headers: Record<string, string> = {}, to = app, body?: string): Promise<Response> =>
  Promise.resolve(
    to.request(`http://localhost${path}`, { method, headers: { host: 'localhost', ...headers }, ...(body !== undefined && { body }) }),
  );
const code = (value: unknown, headers: Record<string, string> = SAME, to = app): Promise<Response> =>
  ask('POST', '/auth/code', { 'content-type': 'application/json', ...headers }, to, JSON.stringify({ code: value }));
const newCode = async (of = entrance): Promise<string> => (await of.browsers.createCode()) ?? '';
const signOut = (cookie: string, to = app): Promise<Response> => ask('POST', '/auth/logout', { cookie, ...SAME }, to);
const cookieOf = (response: Response): string => (response.headers.getSetCookie()[0] ?? '').split(';')[0] ?? '';
const me = (headers: Record<string, string>, to = app): Promise<Response> => ask('GET', '/v1/me', headers, to);
const change = (headers: Record<string, string>): Promise<Response> => ask('DELETE', '/v1/no-such-route', headers);

async function signedIn(): Promise<string> {
  const response = await code(await newCode());
  expect(response.status).toBe(200);
  return cookieOf(response);
}

test('a code becomes a cookie that no script and no other site has, and that opens as the token does', async () => {
  const response = await code(await newCode());
  expect(await response.json()).toEqual({ name: 'the token of this gateway', role: 'admin' });
  expect(response.headers.getSetCookie()).toEqual([
    expect.stringMatching(/^perdura=[\w-]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/),
  ]);
  expect(await (await me({ cookie: cookieOf(response) })).json()).toEqual({ name: 'the token of this gateway', role: 'admin' });
  expect(logged.join('\n')).not.toContain(cookieOf(response).slice(8));
});

test('a code opens once, of all gateways of a machine at once in one, never again after a start, and for a minute', async () => {
  const used = await newCode();
  const gateways = [app, stand().app, stand().app];
  const statuses = await Promise.all(Array.from({ length: 12 }, async (_, at) => (await code(used, SAME, gateways[at % 3])).status));
  expect(statuses.sort()).toEqual([200, ...Array.from({ length: 11 }, () => 401)]);
  expect((await code(used, SAME, stand().app)).status).toBe(401);
  const old = await newCode();
  const later = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 60_001);
  try {
    expect((await code(old)).status).toBe(401);
  } finally {
    later.mockRestore();
  }
});

test('what was sealed for something else, by another key, or changed, opens nothing', async () => {
  const cookie = (await signedIn()).slice('perdura='.length);
  const sealed = await newCode();
  const foreign = createEntrance({ token: TOKEN, secrets: ['another-secret'], spent: recordSpentInFolder(join(dir, 'spent')) });
  const flipped = `${sealed.slice(0, -4)}${sealed.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`;
  for (const wrong of [cookie, await newCode(foreign), flipped, sealed.slice(0, 20), 'x', TOKEN])
    expect((await code(wrong)).status).toBe(401);
  for (const wrong of [
    sealed,
    TOKEN,
    '',
    cookie.slice(0, -1),
    createSeal(['another'], 'gateway-session').close({ sid: 'x', by: { token: 'x' } }, 60),
  ]) {
    expect((await me({ cookie: `perdura=${wrong}` })).status).toBe(401);
  }
});

test('a code is no cookie and a cookie is no code, whatever stands in them', () => {
  const uses = ['gateway-code', 'gateway-session', 'gateway-sign-in', 'state', 'tenant-ids'] as const;
  for (const use of uses) {
    const sealed = createSeal([TOKEN], use).close({ some: 'thing' }, 60);
    expect(uses.filter((other) => createSeal([TOKEN], other).open(sealed) !== undefined)).toEqual([use]);
  }
});

test.each([{}, { code: 1 }, { code: 'x'.repeat(2_000) }, { code: '' }, { code: 'x', more: 1 }, [], null])(
  '%j is no body of /auth/code',
  async (body) => {
    const response = await ask('POST', '/auth/code', { 'content-type': 'application/json', ...SAME }, app, JSON.stringify(body));
    expect([response.status, response.headers.get('content-type')]).toEqual([400, 'application/problem+json']);
  },
);

test('wrong codes are counted as wrong tokens are', async () => {
  const statuses: number[] = [];
  for (let at = 0; at < 32; at += 1) statuses.push((await code(`wrong${at}`)).status);
  expect(statuses.slice(29)).toEqual([401, 429, 429]);
  expect((await me({ authorization: 'Bearer wrong' })).status).toBe(429);
  expect((await me({ authorization: `Bearer ${TOKEN}` })).status).toBe(200);
  expect((await code(await newCode())).status).toBe(200);
});

const ELSEWHERE: readonly [string, Record<string, string>][] = [
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
  ['another site without an origin', { 'sec-fetch-site': 'cross-site' }],
  ['another port of this machine', { 'sec-fetch-site': 'same-site', origin: 'http://localhost:3000' }],
  ['another port, which a browser without Sec-Fetch names', { origin: 'http://localhost:3000' }],
  ['a page that may send tokens', { 'sec-fetch-site': 'same-site', origin: 'http://app.localhost:3000' }],
  ['a page without an origin', { origin: 'null' }],
  ['a liar about its site', { 'sec-fetch-site': 'same-origin', origin: 'http://evil.example' }],
];

test.each(ELSEWHERE)('from %s a cookie reads nothing and changes nothing', async (_what, headers) => {
  const cookie = await signedIn();
  expect((await me({ cookie, ...headers })).status).toBe(403);
  expect((await change({ cookie, ...headers })).status).toBe(403);
  expect((await ask('POST', '/auth/logout', { cookie, ...headers })).status).toBe(403);
  expect((await code(await newCode(), headers)).status).toBe(403);
  expect((await me({ cookie })).status).toBe(200);
});

test('to change something a browser must say that a page of this gateway asks', async () => {
  const cookie = await signedIn();
  for (const headers of [{}, { 'sec-fetch-site': 'none' }] as Record<string, string>[]) {
    expect((await change({ cookie, ...headers })).status).toBe(403);
    expect((await me({ cookie, ...headers })).status).toBe(200);
  }
  for (const headers of [SAME, { origin: 'http://localhost' }, { 'sec-fetch-site': 'same-origin' }] as Record<string, string>[]) {
    expect((await change({ cookie, ...headers })).status).toBe(404);
  }
  // A token needs none of that.
  expect((await change({ authorization: `Bearer ${TOKEN}` })).status).toBe(404);
});

test('where a token is sent the cookie does not count', async () => {
  const cookie = await signedIn();
  expect((await me({ cookie, authorization: 'Bearer wrong' })).status).toBe(401);
  expect((await me({ cookie, 'x-api-key': 'wrong' })).status).toBe(401);
});

test('who signs out is out, with a copy of the cookie too; others stay', async () => {
  const [one, other] = [await signedIn(), await signedIn()];
  const response = await ask('POST', '/auth/logout', { cookie: one, ...SAME });
  expect([response.status, response.headers.getSetCookie()]).toEqual([204, [expect.stringContaining('perdura=; Max-Age=0; Path=/')]]);
  expect((await me({ cookie: one })).status).toBe(401);
  expect((await me({ cookie: other })).status).toBe(200);
  expect((await ask('POST', '/auth/logout', SAME)).status).toBe(204);
  // In the other gateways of this machine, and after a start.
  expect((await me({ cookie: one }, stand().app)).status).toBe(401);
  expect((await me({ cookie: other }, stand().app)).status).toBe(200);
});

test('while it cannot be looked up whether a browser has signed out, or a code was used, nothing of them opens; a token does', async () => {
  const cookie = await signedIn();
  const [unused, there] = [await newCode(), join(dir, 'spent')];
  await rename(there, join(dir, 'aside'));
  await writeFile(there, 'no folder');
  expect(await (await me({ cookie })).json()).toMatchObject({
    status: 503,
    detail: expect.stringMatching(/^cannot look up whether this browser has signed out now: .* try again, or send a token$/),
  });
  expect([(await code(unused)).status, (await signOut(cookie)).status]).toEqual([503, 503]);
  await expect(newCode()).rejects.toMatchObject({ problem: { status: 503 } });
  expect((await me({ authorization: `Bearer ${TOKEN}` })).status).toBe(200);
  expect(logged.filter((line) => line.includes('the record of used codes and sign-outs is in the folder'))).toHaveLength(1);
  await rm(there);
  await rename(join(dir, 'aside'), there);
  expect([(await me({ cookie })).status, (await code(unused)).status]).toEqual([200, 200]);
});

test('a browser that is refused a sign-out keeps its cookie, to try again', async () => {
  const cookie = await signedIn();
  const record = recordSpentInFolder(join(dir, 'spent'));
  const full = stand({ spent: { ...record, spend: () => Promise.reject(new Error('no space is left')) } }).app;
  const response = await signOut(cookie, full);
  expect([response.status, response.headers.getSetCookie()]).toEqual([500, []]);
});

test('where the record was lost nothing that was given away before opens again', async () => {
  const [cookie, out, used, unused] = [await signedIn(), await signedIn(), await newCode(), await newCode()];
  await signOut(out);
  await code(used);
  await rm(join(dir, 'spent'), { recursive: true });
  const again = stand();
  for (const one of [cookie, out]) {
    expect([(await me({ cookie: one })).status, (await me({ cookie: one }, again.app)).status]).toEqual([401, 401]);
  }
  for (const one of [used, unused]) expect((await code(one, SAME, again.app)).status).toBe(401);
  expect((await code(await newCode(again.entrance), SAME, again.app)).status).toBe(200);
  // A folder that somebody made empty is lost too.
  await rm(join(dir, 'spent'), { recursive: true });
  await mkdir(join(dir, 'spent'));
  expect((await me({ cookie })).status).toBe(401);
});

test('any gateway with the same key takes the cookie, until twelve hours have passed', async () => {
  const cookie = await signedIn();
  expect((await me({ cookie }, stand().app)).status).toBe(200);
  const later = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 12 * 3600_000 + 1);
  try {
    expect((await me({ cookie })).status).toBe(401);
  } finally {
    later.mockRestore();
  }
});

test('a cookie of a token that no longer opens opens nothing', async () => {
  const cookie = await signedIn();
  expect((await me({ cookie }, stand({ token: 'another-token-of-the-gateway' }).app)).status).toBe(401);
});

describe('with a file of PERDURA_AUTH', () => {
  test('a token’s tenant and role are what `/v1/me` says, and what a route needs', async () => {
    const file = join(dir, 'auth.json');
    const tokens = ['user-of-acme', 'operator-of-acme', 'operator'].map((name) => {
      const [role = '', , tenant] = name.split('-');
      return { name, hash: hashOf(`token-of-the-${name}`), role, ...(tenant && { tenant }), created: '2026-01-01T00:00:00Z' };
    });
    await writeFile(file, JSON.stringify({ tokens }));
    const both = stand({ file }).app;
    const headers = (name: string): Record<string, string> => ({ authorization: `Bearer token-of-the-${name}` });
    expect(await (await me(headers('user-of-acme'), both)).json()).toEqual({ name: 'user-of-acme', role: 'user', tenant: 'acme' });
    const metrics = async (name: string): Promise<number> => (await ask('GET', '/metrics', headers(name), both)).status;
    // Metrics are of the whole installation, which no tenant sees.
    expect([await metrics('user-of-acme'), await metrics('operator-of-acme'), await metrics('operator')]).toEqual([404, 404, 200]);
    const login = await ask('GET', '/auth/login', {}, both);
    expect([login.status, await login.json()]).toEqual([
      404,
      expect.objectContaining({ detail: expect.stringContaining('PERDURA_AUTH names one') }),
    ]);
  });
});

describe('pages of other origins', () => {
  const preflight = (origin: string): Promise<Response> =>
    ask('OPTIONS', '/v1/me', { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' });

  test('that are named: the question beforehand needs no token, and an error can be read too; cookies are not for them', async () => {
    const origin = 'http://app.localhost:3000';
    const response = await preflight(origin);
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([204, origin]);
    expect(response.headers.get('access-control-allow-headers')).toBe('authorization');
    expect(response.headers.get('access-control-allow-credentials')).toBeNull();
    const refused = await me({ origin, authorization: 'Bearer wrong' });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, origin]);
  });

  test.each(['http://evil.example', 'null', 'http://app.localhost:3001'])('%s is told nothing', async (origin) => {
    const response = await preflight(origin);
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect([response.status, await response.text()]).toEqual([403, expect.not.stringContaining('app.localhost')]);
  });
});

test('what stands at the root needs no token, and says what this is', async () => {
  expect(await (await ask('GET', '/')).json()).toMatchObject({ name: 'Perdura', described: '/openapi.json' });
});
