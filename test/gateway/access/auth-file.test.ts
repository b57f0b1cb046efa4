/** The file of PERDURA_AUTH: what it may say, what it refuses in words, and that a change counts without a restart. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashOf, parseAuthFile, readAuthFile, watchAuthFile } from '../../../src/gateway/access/auth-file.js';
import { createEntrance } from '../../../src/gateway/access/entrance.js';
import { spentInMemory } from '../../support/tenants.js';

const CREATED = '2026-01-01T00:00:00Z';
const [ACME, BETA] = ['pk_acme-acme-acme-acme-acme', 'pk_beta-beta-beta-beta-beta'];
const row = (token: string, more: object = {}): object => ({ name: 'one', hash: hashOf(token), role: 'user', created: CREATED, ...more });
const jwt = { issuer: 'https://id.example', audience: 'perdura', roleClaim: 'roles' };

let dir: string;
let path: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-auth-'));
  path = join(dir, 'auth.json');
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test('an empty object lets nobody in, and has its defaults', () => {
  expect(parseAuthFile('{}', path)).toEqual({ tokens: [], session: { hours: 12 } });
});

test.each<[string, object, string]>([
  ['a role', { tokens: [row(ACME, { role: 'root' })] }, 'tokens[0].role: one of user, operator, admin'],
  ['a tenant', { tokens: [row(ACME), row(BETA, { name: 'two', tenant: '../x' })] }, 'tokens[1].tenant: a name of a tenant'],
  ['a token in place of its hash', { tokens: [row(ACME, { hash: ACME })] }, 'tokens[0].hash: sha256: and 64'],
  ['a name twice', { tokens: [row(ACME), row(BETA)] }, 'tokens[1].name: another token is called one'],
  ['a name as users of a provider have', { tokens: [row(ACME, { name: 'user:x' })] }, 'tokens[0].name: letters'],
  ['a time', { tokens: [row(ACME, { expires: 'tomorrow' })] }, 'tokens[0].expires: a time such as'],
  ['a field that is not known', { tokens: [row(ACME, { expire: CREATED })] }, 'tokens[0]: Unrecognized key'],
  ['http to another machine', { jwt: { ...jwt, issuer: 'http://id.example' } }, 'jwt.issuer: an https: address'],
  ['keys by http', { jwt: { ...jwt, jwksUri: 'http://id.example/keys' } }, 'jwt.jwksUri: an https: address'],
  ['no algorithm', { jwt: { ...jwt, algorithms: ['none'] } }, 'jwt.algorithms[0]: one of RS256'],
  ['a shared secret', { jwt: { ...jwt, algorithms: ['HS256'] } }, 'jwt.algorithms[0]: one of RS256'],
  ['no audience', { jwt: { issuer: jwt.issuer, roleClaim: 'roles' } }, 'jwt.audience: '],
  ['a role for nobody', { jwt: { issuer: jwt.issuer, audience: 'x' } }, 'jwt.roleClaim: without it, or "defaultRole"'],
  ['signing in nowhere', { oidc: { clientId: 'x' } }, 'oidc: needs "jwt" beside it'],
  ['a secret in place of its variable', { jwt, oidc: { clientId: 'x', clientSecretEnv: 's3cr3t!' } }, 'oidc.clientSecretEnv: the name of'],
  ['no object', [], 'Invalid input'],
])('%s is refused by the name of the field', (_what, value, words) => {
  const text = JSON.stringify(value);
  expect(() => parseAuthFile(text, '/etc/auth.json')).toThrow('/etc/auth.json, which PERDURA_AUTH names, cannot be used: ');
  expect(() => parseAuthFile(text, '/etc/auth.json')).toThrow(words);
  expect(() => parseAuthFile(text, '/etc/auth.json')).not.toThrow(ACME);
});

test('what is no JSON is not shown, and what is not there is made by a command', async () => {
  expect(() => parseAuthFile(`{"tokens": ${ACME}`, path)).toThrow(/is not JSON$/);
  await expect(readAuthFile(path)).rejects.toThrow('ENOENT; `perdura admin token create` makes it');
});

describe('a file that changes', () => {
  let now = 0;
  const logged: string[] = [];
  const write = async (value: unknown): Promise<void> => {
    await writeFile(`${path}.new`, typeof value === 'string' ? value : JSON.stringify(value));
    await rename(`${path}.new`, path);
    now += 1_001;
  };
  const open = () =>
    createEntrance({
      auth: watchAuthFile(
        path,
        (line) => logged.push(line),
        () => now,
      ),
      secrets: ['a-secret-of-tests'],
      spent: spentInMemory(),
    });
  beforeEach(() => logged.splice(0));

  test('a token opens with its role and tenant, until it is taken out; one that has ended does not', async () => {
    await write({ tokens: [row(ACME, { tenant: 'acme' }), row(BETA, { name: 'two', role: 'admin', expires: '2026-01-02T00:00:00Z' })] });
    const { authenticate } = open();
    expect(await authenticate(ACME)).toEqual({ name: 'one', role: 'user', tenant: 'acme' });
    expect(await authenticate(BETA)).toBeUndefined();
    for (const wrong of ['', ACME.slice(0, -1), `${ACME}x`, hashOf(ACME)]) expect(await authenticate(wrong)).toBeUndefined();
    await write({ tokens: [row(BETA, { name: 'two', role: 'operator' })] });
    expect(await authenticate(ACME)).toBeUndefined();
    expect(await authenticate(BETA)).toEqual({ name: 'two', role: 'operator' });
    expect(logged).toEqual([`${path} has changed and counts from now on`]);
  });

  test.each(['utf8', 'utf16le'] as const)('one that an editor has saved in %s with a mark counts', async (encoding) => {
    await writeFile(path, Buffer.from(`\ufeff${JSON.stringify({ tokens: [row(ACME)] })}`, encoding));
    expect(await open().authenticate(ACME)).toMatchObject({ name: 'one' });
  });

  test('while it cannot be used, what it said before counts, and the log says why, once', async () => {
    await write({ tokens: [row(ACME)] });
    const { authenticate } = open();
    expect(await authenticate(ACME)).toBeDefined();
    await write('{"tokens": [');
    for (let at = 0; at < 3; at += 1, now += 1_001) expect(await authenticate(ACME)).toBeDefined();
    expect(logged).toEqual([expect.stringContaining('is not JSON; what it said before counts until it can be used')]);
    await write({ tokens: [] });
    expect(await authenticate(ACME)).toBeUndefined();
  });

  test('beside it the one token opens only where it was given', async () => {
    await write({ tokens: [row(ACME)] });
    const own = 'pk_own-own-own-own-own-own-own';
    expect(await open().authenticate(own)).toBeUndefined();
    const auth = watchAuthFile(path, () => undefined);
    const both = createEntrance({ auth, token: own, secrets: [own], spent: spentInMemory() });
    expect(await both.authenticate(own)).toMatchObject({ role: 'admin' });
    expect(await both.authenticate(ACME)).toMatchObject({ role: 'user' });
  });
});
