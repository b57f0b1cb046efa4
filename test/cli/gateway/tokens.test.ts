/** `perdura admin token`: what it makes, shows and takes away, and what it refuses to do. */
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hashOf, idOf } from '../../../src/gateway/access/auth-file.js';
import { runPerdura, type Ran } from '../../support/run-perdura.js';

let dir: string;
let file: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-tokens-'));
  file = join(dir, 'auth.json');
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const run = (args: readonly string[], env: Record<string, string> = { PERDURA_AUTH: file }): Promise<Ran> =>
  runPerdura({ dir, taskQueue: 'none' }, ['admin', 'token', ...args], { env });
const json = async (args: readonly string[]): Promise<unknown> => JSON.parse((await run([...args, '-o', 'json'])).stdout) as unknown;
const kept = async (): Promise<{ tokens: { name: string; hash: string }[] }> =>
  JSON.parse(await readFile(file, 'utf8')) as { tokens: { name: string; hash: string }[] };

test('a token is printed once, and kept as its hash in a file that only its owner reads', async () => {
  const { code, stdout, stderr } = await run(['create', '--scope', 'acme', '--name', 'ci', '--expires', '90d']);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^pk_[\w-]{32}\n$/)]);
  expect(stderr).toMatch(/ci opens as user of acme until \d{4}-.*this is the only time that it is shown/);
  const token = stdout.trim();
  expect((await kept()).tokens).toEqual([
    { name: 'ci', hash: hashOf(token), role: 'user', tenant: 'acme', created: expect.any(String), expires: expect.any(String) },
  ]);
  expect(await readFile(file, 'utf8')).not.toContain(token);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const days = (Date.parse(((await json(['list'])) as { expires: string }[])[0]?.expires ?? '') - Date.now()) / 86_400_000;
  // clock: the expiry of a token, in days
  expect(days).toBeGreaterThan(89.9);
  expect((await run(['list'])).stdout).toMatch(/ID +NAME +ROLE +TENANT +CREATED +EXPIRES\n[0-9a-f]{12} +ci +user +acme/);
});

test('for programs: made, listed and revoked as JSON, by name and by id', async () => {
  const made = (await json(['create', '--tenant', 'acme', '--role', 'operator'])) as { token: string; name: string; id: string };
  expect(made).toEqual({
    token: expect.stringMatching(/^pk_/),
    id: idOf(hashOf(made.token)),
    name: `acme-${made.id.slice(0, 6)}`,
    role: 'operator',
    tenant: 'acme',
    created: expect.any(String),
  });
  await run(['create', '--role', 'admin', '--name', 'root']);
  expect(await json(['list'])).toMatchObject([{ name: made.name }, { name: 'root', role: 'admin' }]);
  expect(await json(['revoke', made.id])).toEqual({ revoked: made.name });
  expect(await json(['revoke', 'root'])).toEqual({ revoked: 'root' });
  expect(await json(['list'])).toEqual([]);
});

test('all else in the file stays, and a link to it stays a link', async () => {
  const real = join(dir, 'real.json');
  await writeFile(
    real,
    JSON.stringify({ session: { hours: 1 }, jwt: { issuer: 'https://id.example', audience: 'x', defaultRole: 'user' } }),
  );
  await symlink(real, file);
  expect((await run(['create', '--name', 'one'])).code).toBe(0);
  expect(JSON.parse(await readFile(real, 'utf8'))).toEqual({
    session: { hours: 1 },
    jwt: { issuer: 'https://id.example', audience: 'x', defaultRole: 'user' },
    tokens: [expect.objectContaining({ name: 'one' })],
  });
});

test('of many that are made at once none is lost', async () => {
  const made = await Promise.all(Array.from({ length: 4 }, (_, at) => run(['create', '--name', `one-${at}`])));
  expect(made.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  expect((await kept()).tokens).toHaveLength(4);
});

test.each<[string, string[], number, RegExp]>([
  ['a tenant that is none', ['create', '--scope', 'Acme/..'], 2, /A tenant has up to 39 small letters/],
  ['two tenants', ['create', '--scope', 'acme', '--tenant', 'beta'], 2, /--scope and --tenant name the same thing/],
  ['a role that is none', ['create', '--role', 'root'], 2, /Allowed choices are user, operator, admin/],
  ['an end that is over', ['create', '--expires', '2020-01-01'], 2, /a date that is to come/],
  ['an end that is none', ['create', '--expires', 'soon'], 2, /Write when it ends: 90d/],
  ['a name that is none', ['create', '--name', 'user:x'], 2, /tokens\[0\]\.name: letters/],
  ['a token that there is not', ['revoke', 'nobody'], 4, /no token in .*auth.json is called nobody: `perdura admin token list`/],
])('%s is refused in words, and nothing is written', async (_what, args, code, words) => {
  const ran = await run(args);
  expect([ran.code, ran.stdout]).toEqual([code, '']);
  expect(ran.stderr).toMatch(words);
  await expect(stat(file)).rejects.toThrow('ENOENT');
});

test('a name that another has is refused, and a file that cannot be used is not overwritten', async () => {
  await run(['create', '--name', 'one']);
  const twice = await run(['create', '--name', 'one']);
  expect([twice.code, twice.stdout, twice.stderr]).toEqual([2, '', expect.stringContaining('another token is called one')]);
  await writeFile(file, '{"tokens": [');
  expect(await run(['create'])).toMatchObject({ code: 2, stderr: expect.stringContaining('is not JSON') });
  expect(await readFile(file, 'utf8')).toBe('{"tokens": [');
});

test('without PERDURA_AUTH it says what to set', async () => {
  for (const args of [['create'], ['list'], ['revoke', 'x']]) {
    expect(await run(args, {})).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('set it, such as PERDURA_AUTH=.perdura/auth.json'),
    });
  }
});

test('a link has its code where no server sees it, and there is none where the one token does not open', async () => {
  expect((await run(['link', '--url', 'http://0.0.0.0:7281/perdura'], {})).stdout).toMatch(
    /^http:\/\/127\.0\.0\.1:7281\/perdura\/#code=[\w-]{80,}\n$/,
  );
  await run(['create']);
  expect(await run(['link'])).toMatchObject({ code: 2, stderr: expect.stringContaining('only its tokens and users open') });
});
