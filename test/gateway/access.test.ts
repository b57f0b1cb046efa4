/** Who gets in: tokens and their file, hosts and origins. */
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHosts } from '../../src/gateway/access/proxies.js';
import { mayAct } from '../../src/gateway/access/principal.js';
import { keptToken, oneToken, TOKEN_PATTERN } from '../../src/gateway/access/entrance.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-token-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test('many starts at once have one token, in a file that only its owner reads, and leave nothing else', async () => {
  const path = join(dir, 'state', 'token');
  for (let round = 0; round < 50; round += 1) {
    const one = join(dir, `round-${round}`);
    expect(new Set(await Promise.all(Array.from({ length: 12 }, () => keptToken(one)))).size).toBe(1);
  }
  const tokens = await Promise.all(Array.from({ length: 40 }, () => keptToken(path)));
  expect(new Set(tokens).size).toBe(1);
  expect(tokens[0]).toMatch(TOKEN_PATTERN);
  expect((await readFile(path, 'utf8')).trim()).toBe(tokens[0]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(join(dir, 'state'))).toEqual(['token']);
});

test('a kept token is used again, and its file is closed to others', async () => {
  const path = join(dir, 'token');
  await writeFile(path, 'a-token-that-somebody-wrote-here\n');
  await chmod(path, 0o644);
  expect(await keptToken(path)).toBe('a-token-that-somebody-wrote-here');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test.each(['', 'short', `${'x'.repeat(30)} with spaces`])('a file that holds %j opens nothing, and names what to do', async (content) => {
  const path = join(dir, 'token');
  await writeFile(path, content);
  await expect(keptToken(path)).rejects.toThrow('remove it, and one is made');
});

test('one token opens, and no other: neither its beginning nor more than it', async () => {
  const token = 'a-token-that-only-tests-have';
  const authenticate = oneToken(token);
  expect(await authenticate(token)).toMatchObject({ role: 'admin' });
  for (const wrong of ['', token.slice(0, -1), `${token}x`, token.toUpperCase(), '\0']) expect(await authenticate(wrong)).toBeUndefined();
});

test('a role may do what the roles before it may', () => {
  expect(mayAct({ name: 'a', role: 'operator' }, 'user')).toBe(true);
  expect(mayAct({ name: 'a', role: 'operator' }, 'admin')).toBe(false);
});

describe('hosts', () => {
  const hosts = createHosts({ names: ['my.example', 'other.example:8080'], origins: ['https://app.example'] });

  test.each(['localhost', 'LOCALHOST:7280', '127.0.0.1:1', '[::1]:7280', 'my.example:443', 'other.example:8080'])(
    '%s is served',
    (host) => {
      expect(hosts.isAllowedHost(host)).toBe(true);
    },
  );

  test.each([
    undefined,
    '',
    'localhost.evil.com',
    'evil.com',
    'localhost:80:80',
    'localhost:999999',
    'localhost.',
    '127.0.0.1.nip.io',
    'other.example:9',
    'user@localhost',
    'localhost/evil',
    '2130706433',
  ])('%j is not', (host) => {
    expect(hosts.isAllowedHost(host)).toBe(false);
  });

  test.each([undefined, 'http://localhost:7280', 'https://app.example'])('a page of %j may ask', (origin) => {
    expect(hosts.isAllowedOrigin(origin, 'localhost:7280')).toBe(true);
  });

  test.each([
    'null',
    '',
    'http://localhost',
    'http://localhost:3000',
    'http://localhost.evil.com',
    'https://app.example.evil.com',
    'file://',
  ])('a page of %j may not', (origin) => {
    expect(hosts.isAllowedOrigin(origin, 'localhost:7280')).toBe(false);
  });
});
