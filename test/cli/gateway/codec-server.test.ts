/** The codec server as Temporal's page and program ask it, and as those who must not be answered. */
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { startCodecServer, type CodecServer, type CodecServerOptions } from '../../../src/cli/gateway/codec-server.js';
import { createEncryptionCodec } from '../../../src/client/temporal/encryption.js';

const root = randomBytes(32);
const PAGE = 'http://127.0.0.1:8233';
let server: CodecServer;

const start = async (over: Partial<CodecServerOptions> = {}): Promise<void> => {
  server = await startCodecServer({ codec: createEncryptionCodec([root]), host: '127.0.0.1', port: 0, origins: [PAGE], ...over });
};
afterEach(() => server.close());

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const plain = { metadata: { encoding: base64('json/plain') }, data: base64('"secret words"') };

async function post(path: string, payloads: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const body = typeof payloads === 'string' ? payloads : JSON.stringify({ payloads });
  return fetch(`${server.url}${path}`, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });
}

test('what it encodes it decodes, and what is plain stays plain', async () => {
  await start();
  const encoded = (await (await post('/encode', [plain])).json()) as { readonly payloads: readonly (typeof plain)[] };
  expect(Buffer.from(encoded.payloads[0]?.metadata.encoding ?? '', 'base64').toString()).toBe('binary/encrypted');
  expect(JSON.stringify(encoded)).not.toContain(plain.data);
  const decoded = await (await post('/any/prefix/decode', [...encoded.payloads, plain], { origin: PAGE })).json();
  expect(decoded).toEqual({ payloads: [plain, plain] });
});

test('a page of another origin is refused, before it and at its question', async () => {
  await start();
  const other = { origin: 'https://evil.example' };
  expect((await post('/decode', [plain], other)).status).toBe(403);
  const asked = await fetch(`${server.url}/decode`, { method: 'OPTIONS', headers: other });
  expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([403, null]);
  const ours = await fetch(`${server.url}/decode`, { method: 'OPTIONS', headers: { origin: PAGE } });
  expect([ours.status, ours.headers.get('access-control-allow-origin')]).toEqual([204, PAGE]);
});

test('it is asked by the name of this machine alone: a name that was turned to it is refused', async () => {
  await start();
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const { port } = new URL(server.url);
    const call = request({ port, host: '127.0.0.1', path: '/decode', method: 'POST', headers: { host: 'rebound.example' } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    call.once('error', reject);
    call.end('{}');
  });
  expect(status).toBe(403);
});

test('with a token it wants that token', async () => {
  await start({ token: 'a-token-of-24-characters' });
  expect((await post('/decode', [plain])).status).toBe(401);
  expect((await post('/decode', [plain], { authorization: 'Bearer a-token-of-24-characterX' })).status).toBe(401);
  expect((await post('/decode', [plain], { authorization: 'Bearer a-token-of-24-characters' })).status).toBe(200);
});

test.each([
  ['no JSON', '{', 400],
  ['no list', '{"payloads":1}', 400],
  ['no base64', '{"payloads":[{"data":"?"}]}', 400],
  [
    'another key',
    JSON.stringify({ payloads: [{ metadata: { encoding: base64('binary/encrypted'), 'encryption-key-id': base64('00000000') } }] }),
    409,
  ],
])('a request with %s gets a sentence', async (_, body, status) => {
  await start();
  const answer = await post('/decode', body);
  expect(answer.status).toBe(status);
  expect(((await answer.json()) as { readonly error: string }).error.length).toBeGreaterThan(10);
});

test('a payload that was changed is not decoded', async () => {
  await start();
  const { payloads } = (await (await post('/encode', [plain])).json()) as { payloads: (typeof plain)[] };
  const [{ metadata, data } = plain] = payloads;
  const bytes = Buffer.from(data, 'base64');
  bytes[20] = (bytes[20] ?? 0) ^ 1;
  const answer = await post('/decode', [{ metadata, data: bytes.toString('base64') }]);
  expect(answer.status).toBe(422);
});
