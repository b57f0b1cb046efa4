/** Signing in at an identity provider, by a browser that follows what it is told, over real HTTP. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSign, generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { MutableResponse, MutableToken, OAuth2Server } from 'oauth2-mock-server' with { 'resolution-mode': 'import' };
import { watchAuthFile } from '../../../src/gateway/access/auth-file.js';
import { createEntrance } from '../../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../../src/gateway/index.js';
import { spentInMemory, TENANT_KEY } from '../../support/tenants.js';
import { waitFor } from '../../support/wait-for.js';
import { unreachedClient } from '../../support/fake-client.js';

let provider: OAuth2Server;
let dir: string;
let file: string;
let gateway: ServedGateway;
let other: ServedGateway;
let claims: Record<string, unknown>;
const logged: string[] = [];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-sign-in-'));
  file = join(dir, 'auth.json');
  const { OAuth2Server: Provider } = await import('oauth2-mock-server');
  provider = new Provider();
  await provider.issuer.keys.generate('RS256');
  await provider.start(0, '127.0.0.1');
  provider.service.on('beforeTokenSigning', (token: MutableToken) => Object.assign(token.payload, claims));
  await writeAuth();
  [gateway, other] = [await serve(), await serve({ trustedProxies: ['127.0.0.0/8'], hosts: ['perdura.example'] })];
});
beforeEach(() => {
  claims = { org: 'acme', roles: ['operator'] };
  logged.splice(0);
});
afterAll(async () => {
  await Promise.all([gateway.close(), other.close(), provider.stop()]);
  await rm(dir, { recursive: true, force: true });
});

const jwt = (): object => ({ issuer: provider.issuer.url, audience: 'api', tenantClaim: 'org', roleClaim: 'roles' });
const writeAuth = (auth: object = { jwt: jwt(), oidc: { clientId: 'perdura', clientSecretEnv: 'SECRET' } }): Promise<void> =>
  writeFile(file, JSON.stringify(auth));

const spent = spentInMemory();

function serve(more: object = {}): Promise<ServedGateway> {
  const log = (line: string): void => void logged.push(line);
  const entrance = createEntrance({
    auth: watchAuthFile(file, log),
    secrets: ['the-same-in-both-gateways'],
    variables: { SECRET: 'of-the-client' },
    spent,
    log,
  });
  return serveGateway({ client: unreachedClient().client, tenantKey: TENANT_KEY, port: 0, ...entrance, log, accessLog: log, ...more });
}

interface Visit {
  readonly status: number;
  readonly location: string;
  readonly cookies: readonly string[];
  readonly body: string;
}

/** As a browser goes there, one step. */
async function visit(url: string, cookie = '', headers: Record<string, string> = {}): Promise<Visit> {
  const response = await fetch(url, { redirect: 'manual', headers: { ...(cookie && { cookie }), ...headers } });
  return {
    status: response.status,
    location: response.headers.get('location') ?? '',
    cookies: response.headers.getSetCookie(),
    body: await response.text(),
  };
}

/** At once: the provider's hook does not wait. */
function signedAnew(token: string, key: KeyObject): string {
  const text = token.split('.').slice(0, 2).join('.');
  return `${text}.${createSign('sha256').update(text).sign(key, 'base64url')}`;
}

const cookieIn = ({ cookies }: Visit, name: string): string =>
  (cookies.find((cookie) => cookie.startsWith(`${name}=`) && !cookie.includes('Max-Age=0')) ?? '').split(';')[0] ?? '';

/** To the provider and back: where it came back to, with what it carried. */
async function toProvider(path = '/auth/login'): Promise<{ readonly begun: Visit; readonly back: string; readonly carried: string }> {
  const begun = await visit(`${gateway.url}${path}`);
  expect(begun.status).toBe(302);
  const { location } = await visit(begun.location);
  return { begun, back: location, carried: cookieIn(begun, 'perdura-sign-in') };
}

const me = async (cookie: string): Promise<[number, unknown]> => {
  const response = await fetch(`${gateway.url}/v1/me`, { headers: { cookie } });
  return [response.status, await response.json()];
};

test('a user comes back signed in, with the role and the tenant of the provider’s claims', async () => {
  const { begun, back, carried } = await toProvider('/auth/login?to=/some/page?x=1');
  const asked = new URL(begun.location).searchParams;
  expect(Object.fromEntries(asked)).toEqual({
    client_id: 'perdura',
    redirect_uri: `${gateway.url}/auth/callback`,
    response_type: 'code',
    scope: 'openid',
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
  });
  expect(begun.cookies).toEqual([expect.stringMatching(/^perdura-sign-in=[\w-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/)]);
  const done = await visit(back, carried);
  expect([done.status, done.location]).toEqual([303, '/some/page?x=1']);
  expect(done.cookies.find((cookie) => cookie.startsWith('perdura='))).toMatch(/; HttpOnly; SameSite=Strict$/);
  expect(done.cookies.find((cookie) => cookie.startsWith('perdura-sign-in='))).toContain('Max-Age=0');
  expect(await me(cookieIn(done, 'perdura'))).toEqual([200, { name: 'user:johndoe', role: 'operator', tenant: 'acme' }]);
  // Neither the code nor the state stands in a log.
  for (const secret of [new URL(back).searchParams.get('code'), asked.get('state')]) expect(logged.join('\n')).not.toContain(secret);
});

test('an answer to another browser, or to none, opens nothing', async () => {
  const [mine, theirs] = [await toProvider(), await toProvider()];
  for (const [back, carried, status] of [
    [mine.back, theirs.carried, 403],
    [mine.back, '', 400],
    [mine.back, 'perdura-sign-in=invented', 400],
    [mine.back.replace(/state=[^&]+/, 'state=x'), mine.carried, 403],
    [mine.back.replace(/code=[^&]+/, 'code=x'), mine.carried, 403],
    [`${gateway.url}/auth/callback`, mine.carried, 403],
    [`${gateway.url}/auth/callback?error=access_denied&state=x`, mine.carried, 403],
  ] as const) {
    const visited = await visit(back, carried);
    expect([visited.status, visited.cookies.some((cookie) => cookie.startsWith('perdura='))]).toEqual([status, false]);
    expect(JSON.parse(visited.body)).toMatchObject({ status });
  }
});

test('an answer counts once: the provider does not take its code again', async () => {
  const { back, carried } = await toProvider();
  expect((await visit(back, carried)).status).toBe(303);
  expect((await visit(back, carried)).status).toBe(403);
});

test.each<[string, Record<string, unknown>]>([
  ['of another sign-in', { nonce: 'another' }],
  ['for another client', { aud: 'another' }],
  ['of another issuer', { iss: 'https://evil.example' }],
  ['that has ended', { exp: 1_000_000 }],
])('a token %s opens nothing', async (_what, wrong) => {
  claims = { ...claims, ...wrong };
  const { back, carried } = await toProvider();
  expect((await visit(back, carried)).status).toBe(403);
});

test('a user without a role or a tenant is told so, and is not in', async () => {
  for (const [wrong, words] of [
    [{ org: 'acme' }, 'no role here'],
    [{ roles: ['user'] }, 'no tenant here'],
  ] as const) {
    claims = wrong;
    const { back, carried } = await toProvider();
    const { status, body, cookies } = await visit(back, carried);
    expect([status, body, cookies.some((cookie) => cookie.startsWith('perdura='))]).toEqual([403, expect.stringContaining(words), false]);
  }
});

test.each(['//evil.example', 'https://evil.example', '/\\evil.example', '/x\n', 'javascript:alert(1)', '', `/${'x'.repeat(600)}`])(
  'a person does not end at %j',
  async (to) => {
    const { status, location } = await visit(`${gateway.url}/auth/login?to=${encodeURIComponent(to)}`);
    expect([status, location]).toEqual([400, '']);
  },
);

test('behind a trusted proxy that speaks TLS all is https: the way back, and cookies that only https has', async () => {
  const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'perdura.example' };
  const begun = await visit(`${other.url}/auth/login`, '', headers);
  expect(new URL(begun.location).searchParams.get('redirect_uri')).toBe('https://perdura.example/auth/callback');
  expect(begun.cookies[0]).toMatch(/^__Host-perdura-sign-in=.*; Secure; SameSite=Lax$/);
  const { location } = await visit(begun.location);
  const back = `${other.url}/auth/callback${new URL(location).search}`;
  const done = await visit(back, cookieIn(begun, '__Host-perdura-sign-in'), headers);
  const cookie = cookieIn(done, '__Host-perdura');
  expect(done.cookies.find((one) => one.startsWith('__Host-perdura='))).toMatch(/; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
  const asking = async (more: Record<string, string>): Promise<number> =>
    (await fetch(`${other.url}/v1/me`, { headers: { cookie, ...headers, ...more } })).status;
  expect(await asking({ origin: 'https://perdura.example' })).toBe(200);
  expect(await asking({ origin: 'http://perdura.example' })).toBe(403);
});

test('a provider that is away is 503, at both ends', async () => {
  const { back, carried } = await toProvider();
  provider.service.once('beforeResponse', (answer: { statusCode: number; body: object }) =>
    Object.assign(answer, { statusCode: 502, body: {} }),
  );
  expect((await visit(back, carried)).status).toBe(503);
  await writeAuth({ jwt: { ...jwt(), issuer: 'http://127.0.0.1:1' }, oidc: { clientId: 'perdura' } });
  const alone = await serve();
  try {
    const { status, body } = await visit(`${alone.url}/auth/login`);
    expect([status, JSON.parse(body)]).toEqual([
      503,
      expect.objectContaining({ detail: 'the identity provider 127.0.0.1:1 does not answer; try again' }),
    ]);
  } finally {
    await alone.close();
    await writeAuth();
  }
});

test('a token that another key has signed opens nothing, although it comes from where tokens come from', async () => {
  const { back, carried } = await toProvider();
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  provider.service.once('beforeResponse', (answer: MutableResponse) => {
    const body = answer.body as { id_token: string };
    answer.body = { ...body, id_token: signedAnew(body.id_token, privateKey) };
  });
  expect((await visit(back, carried)).status).toBe(403);
});

test('users are out when the file no longer has the provider', async () => {
  const { back, carried } = await toProvider();
  const cookie = cookieIn(await visit(back, carried), 'perdura');
  expect((await me(cookie))[0]).toBe(200);
  await writeAuth({ jwt: jwt() });
  await waitFor(
    () => me(cookie),
    ([status]) => status === 401,
  );
  await writeAuth();
});
