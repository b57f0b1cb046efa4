/** The page as the gateway serves it: to browsers alone, small, under its policy, wherever the gateway stands. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { createGateway, type GatewayOptions } from '../../src/gateway/app.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { unreachedClient } from '../support/fake-client.js';

const root = resolve(__dirname, '../..');
const BUILT = join(root, 'dist', 'web');
const TOKEN = 'a-token-that-only-tests-have';
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

function stand(options: Partial<GatewayOptions> = {}): (path: string, headers?: Record<string, string>) => Promise<Response> {
  const app = createGateway({ client: unreachedClient().client, authenticate: oneToken(TOKEN), page: BUILT, ...options });
  return (path, headers = {}) => Promise.resolve(app.request(`http://localhost${path}`, { headers: { host: 'localhost', ...headers } }));
}

const ask = stand();
const addressesIn = (html: string): string[] => [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, to = '']) => to);

test('browsers get the page at /, and programs what they got before', async () => {
  const page = await ask('/', HTML);
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(page.headers.get('cache-control')).toBe('no-cache');
  expect(page.headers.get('vary')).toMatch(/accept\b/i);
  expect(await page.text()).toContain('<div id="page">');
  for (const accept of ['*/*', 'application/json']) {
    const answer = await ask('/', { accept });
    expect(await answer.json()).toMatchObject({ name: 'Perdura', described: '/openapi.json' });
  }
  expect((await stand({ page: false })('/', HTML)).headers.get('content-type')).toContain('application/json');
  expect((await stand({ page: join(root, 'no-such-folder') })('/', HTML)).headers.get('content-type')).toContain('application/json');
});

test('nothing in it can run, load or send anything that is not its own', async () => {
  const page = await ask('/', HTML);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self';");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  expect(policy).toContain("frame-ancestors 'none'");
  expect(page.headers.get('x-content-type-options')).toBe('nosniff');
  const html = await page.text();
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?:\/\//);
});

test('what has a hash in its name is kept for a year, comes gzipped, and is asked for once', async () => {
  const [script = ''] = addressesIn(await (await ask('/', HTML)).text()).filter((to) => to.endsWith('.js'));
  expect(script).toMatch(/^\.\/assets\/index-[\w-]{6,}\.js$/);
  const path = script.slice(1);
  const answer = await ask(path, { 'accept-encoding': 'gzip, br' });
  expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(answer.headers.get('content-encoding')).toBe('gzip');
  const plain = Buffer.from(await (await ask(path)).arrayBuffer());
  expect(gunzipSync(Buffer.from(await answer.arrayBuffer())).equals(plain)).toBe(true);
  expect((await ask(path, { 'if-none-match': answer.headers.get('etag') ?? '' })).status).toBe(304);
});

test.each([
  '/assets/../index.html',
  '/assets/..%2f..%2fcli/main.js',
  '/.perdura-stamp',
  '/assets/no-such.js',
  '/index.html.gz',
  '/assets/',
])('%s is none of its files', async (path) => {
  const status = (await ask(path, HTML)).status;
  expect([401, 404]).toContain(status);
});

test('behind a proxy at /perdura its addresses are there', async () => {
  const based = stand({ basePath: '/perdura' });
  for (const path of ['/perdura', '/perdura/']) {
    const addresses = addressesIn(await (await based(path, HTML)).text());
    expect(addresses.length).toBeGreaterThan(1);
    for (const to of addresses) {
      expect(to).toMatch(/^\/perdura\//);
      expect((await based(to)).status).toBe(200);
    }
  }
});

test('it is built, and a part of the package', async () => {
  expect(existsSync(join(BUILT, 'index.html'))).toBe(true);
  const { files } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { files: string[] };
  expect(files).toContain('dist');
});
