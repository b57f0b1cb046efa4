/** Tokens of an identity provider: a real one over HTTP, and what a stranger or a mistaken client makes in its name. */
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { JWK, JWTPayload } from 'jose' with { 'resolution-mode': 'import' };
import type { OAuth2Server } from 'oauth2-mock-server' with { 'resolution-mode': 'import' };
import { parseAuthFile, type JwtSettings } from '../../../src/gateway/access/auth-file.js';
import { createJwtVerifier, loadJose, principalOfClaims, type JwtVerifier } from '../../../src/gateway/access/provider.js';

type Claims = Record<string, unknown>;
type Key = Awaited<ReturnType<typeof newKeys>>['privateKey'];
const AUDIENCE = 'perdura';
const USER = { sub: 'ada', aud: AUDIENCE, org: 'acme', roles: ['staff', 'ops'] };
const logged: string[] = [];
const inFiveMinutes = (): number => Math.floor(Date.now() / 1000) + 300;

const settingsOf = (jwt: object): JwtSettings => {
  const all = { audience: AUDIENCE, tenantClaim: 'org', roleClaim: 'roles', roles: { staff: 'user', ops: 'operator' }, ...jwt };
  return parseAuthFile(JSON.stringify({ jwt: all }), 'auth.json').jwt as JwtSettings;
};
const newKeys = async (alg: string) => (await loadJose()).generateKeyPair(alg, { extractable: true });
const signed = async (
  claims: JWTPayload,
  header: { readonly alg: string; readonly [name: string]: unknown },
  key: Key | Uint8Array,
): Promise<string> => new (await loadJose()).SignJWT(claims).setProtectedHeader(header).sign(key);
const findVerifier = (jwt: object): JwtVerifier => createJwtVerifier(settingsOf(jwt), (line) => logged.push(line));
beforeEach(() => logged.splice(0));

describe('of a provider that describes itself', () => {
  let provider: OAuth2Server;
  let verifier: JwtVerifier;
  beforeAll(async () => {
    const { OAuth2Server: Provider } = await import('oauth2-mock-server');
    provider = new Provider();
    await provider.issuer.keys.generate('RS256', { kid: 'first' });
    await provider.start(0, '127.0.0.1');
    verifier = findVerifier({ issuer: provider.issuer.url });
  });
  afterAll(() => provider.stop());

  const token = (claims: Claims = USER, header: Claims = {}, expiresIn = 300): Promise<string> =>
    provider.issuer.buildToken({
      kid: 'first',
      expiresIn,
      scopesOrTransform: (given, payload) => {
        Object.assign(given, header);
        Object.assign(payload, claims);
      },
    });

  test('a user has the highest of the roles, and the tenant that the claim names', async () => {
    expect(await verifier.principalOf(await token())).toEqual({ name: 'user:ada', role: 'operator', tenant: 'acme' });
    expect(await verifier.principalOf(await token({ ...USER, aud: ['other', AUDIENCE], roles: 'staff' }))).toMatchObject({ role: 'user' });
    expect(verifier.looksLike(await token())).toBe(true);
  });

  test.each<[string, Claims, Claims, number]>([
    ['of another audience', { aud: 'other' }, {}, 300],
    ['of no audience', { aud: undefined }, {}, 300],
    ['of another issuer', { iss: 'https://evil.example' }, {}, 300],
    ['of an issuer with a slash more', { iss: 'http://localhost/' }, {}, 300],
    ['that has ended', {}, {}, -31],
    ['that has no end', { exp: undefined }, {}, 300],
    ['that begins later', { nbf: Math.floor(Date.now() / 1000) + 100 }, {}, 300],
    ['of nobody', { sub: undefined }, {}, 300],
    ['of a key that there is not', {}, { kid: 'unknown' }, 300],
  ])('one %s opens nothing', async (_what, claims, header, expiresIn) => {
    expect(await verifier.principalOf(await token({ ...USER, ...claims }, header, expiresIn))).toBeUndefined();
    expect(logged).toEqual([]);
  });

  test('a clock that is half a minute wrong is forgiven', async () => {
    expect(await verifier.principalOf(await token(USER, {}, -20))).toBeDefined();
  });

  test.each<[string, Claims, string]>([
    ['without a tenant', { org: undefined }, 'belongs to no tenant here'],
    ['with a tenant that is none', { org: '../acme' }, 'belongs to no tenant here'],
    ['with many tenants', { org: ['acme', 'beta'] }, 'belongs to no tenant here'],
    ['with the roles of others', { roles: ['admin'] }, 'has no role here'],
    ['with a role by the name of what all objects have', { roles: ['constructor', '__proto__'] }, 'has no role here'],
    ['whose name would write into a log', { sub: 'ada\n200 OK' }, 'no subject that can be used'],
  ])('a user %s is known, and may do nothing', async (_what, claims, words) => {
    await expect(verifier.principalOf(await token({ ...USER, ...claims }))).rejects.toMatchObject({
      problem: { status: 403, message: expect.stringContaining(words) },
    });
  });

  test('what a secret both sides could know has signed, or nothing, opens nothing', async () => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { ...USER, iss: provider.issuer.url ?? '', exp: now + 300, iat: now };
    // The public key, which everybody has, as the secret.
    const publicKey = Buffer.from(JSON.stringify(provider.issuer.keys.toJSON()[0]));
    const byPublicKey = await signed(claims, { alg: 'HS256', kid: 'first' }, publicKey);
    const byOwnKey = await signed(claims, { alg: 'RS256', kid: 'first' }, (await newKeys('RS256')).privateKey);
    const [header, payload] = (await token()).split('.');
    const unsigned = new (await loadJose()).UnsecuredJWT(claims).encode();
    for (const made of [unsigned, `${unsigned}x`, byPublicKey, byOwnKey, `${header}.${payload}.AAAA`]) {
      expect(await verifier.principalOf(made)).toBeUndefined();
    }
    // A key that comes along with the token is not looked at.
    const { publicKey: theirs, privateKey: own } = await newKeys('ES256');
    const jwk = await (await loadJose()).exportJWK(theirs);
    expect(await verifier.principalOf(await signed(claims, { alg: 'ES256', kid: 'first', jwk }, own))).toBeUndefined();
  });

  test('only what looks like one, and not beyond 8 KiB, is read as one', async () => {
    const huge = await token({ ...USER, more: 'x'.repeat(9_000) });
    for (const other of [huge, 'pk_aaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'eyJ.eyJ', 'a.b.c', '']) expect(verifier.looksLike(other)).toBe(false);
  });

  test('an algorithm that the file leaves out opens nothing', async () => {
    expect(await findVerifier({ issuer: provider.issuer.url, algorithms: ['ES256'] }).principalOf(await token())).toBeUndefined();
  });
});

describe('keys by an address of their own', () => {
  const issuer = 'https://id.example';
  let server: Server;
  let jwksUri: string;
  let keys: JWK[] = [];
  let status = 200;
  let asked = 0;
  beforeAll(async () => {
    server = createServer((_request, response) => {
      asked += 1;
      response.writeHead(status, { 'content-type': 'application/json' }).end(status === 200 ? JSON.stringify({ keys }) : '<html>');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    jwksUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  });
  beforeEach(() => {
    [keys, status, asked] = [[], 200, 0];
  });
  afterAll(() => server.close());

  async function signer(kid: string): Promise<(claims?: Claims) => Promise<string>> {
    const { publicKey, privateKey } = await newKeys('ES256');
    keys = [{ ...(await (await loadJose()).exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }];
    return (claims = {}) => signed({ iss: issuer, exp: inFiveMinutes(), ...USER, ...claims }, { alg: 'ES256', kid }, privateKey);
  }

  test('are asked for once, and again for a key that is not known, but not for each of them', async () => {
    const old = await signer('old');
    const verifier = findVerifier({ issuer, jwksUri });
    for (let at = 0; at < 5; at += 1) expect(await verifier.principalOf(await old())).toBeDefined();
    expect(asked).toBe(1);
    const unknown = await signer('new');
    const later = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 31_000);
    try {
      expect(await verifier.principalOf(await unknown())).toBeDefined();
      expect(asked).toBe(2);
      // The old key is no longer there, and to look for it again has to wait.
      for (let at = 0; at < 5; at += 1) expect(await verifier.principalOf(await old())).toBeUndefined();
      expect(asked).toBe(2);
    } finally {
      later.mockRestore();
    }
  });

  test.each([404, 500])(
    'that answer %i make it 503, not "wrong token"; they are left alone for a moment, and then it goes on',
    async (answered) => {
      const sign = await signer('one');
      status = answered;
      const verifier = findVerifier({ issuer, jwksUri });
      for (let at = 0; at < 20; at += 1) {
        await expect(verifier.principalOf(await sign())).rejects.toMatchObject({
          problem: { status: 503, message: 'the identity provider id.example does not answer; try again', retryAfter: 5 },
        });
      }
      expect(asked).toBe(1);
      expect(logged.join()).not.toContain('eyJ');
      // A token of somebody else is wrong all the same.
      expect(await verifier.principalOf(await sign({ iss: 'https://evil.example' }))).toBeUndefined();
      status = 200;
      const later = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 2_001);
      try {
        expect(await verifier.principalOf(await sign())).toMatchObject({ name: 'user:ada' });
      } finally {
        later.mockRestore();
      }
    },
  );

  test('of a provider that is not there, and of one that describes another issuer, it is 503 too', async () => {
    const sign = await signer('one');
    await expect(findVerifier({ issuer, jwksUri: 'http://127.0.0.1:1/keys' }).principalOf(await sign())).rejects.toMatchObject({
      problem: { status: 503 },
    });
    const other = `http://127.0.0.1:${new URL(jwksUri).port}`;
    const token = await signed({ ...USER, iss: other, exp: inFiveMinutes() }, { alg: 'ES256' }, (await newKeys('ES256')).privateKey);
    await expect(findVerifier({ issuer: other }).principalOf(token)).rejects.toMatchObject({ problem: { status: 503 } });
  });
});

test('claims deep inside, words in one text, and a role for all others', () => {
  const settings = settingsOf({
    issuer: 'https://id.example',
    roleClaim: ['realm_access', 'roles'],
    tenantClaim: 'https://perdura.example/tenant',
    defaultRole: 'user',
  });
  const claims = { sub: 'ada', 'https://perdura.example/tenant': 'acme' };
  expect(principalOfClaims({ ...claims, realm_access: { roles: ['ops'] } }, settings)).toMatchObject({ role: 'operator' });
  expect(principalOfClaims({ ...claims, realm_access: { roles: 'x ops' } }, settings)).toMatchObject({ role: 'operator' });
  expect(principalOfClaims({ ...claims, realm_access: null }, settings)).toEqual({ name: 'user:ada', role: 'user', tenant: 'acme' });
});
