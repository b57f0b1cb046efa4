/** A proxy of the environment carries what goes out, and nothing that stays on this machine. */
import { createServer, type Server } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPerdura } from '../../support/run-perdura.js';

let dir: string;
let proxy: Server;
let asked: string[];

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'perdura-proxy-'));
  asked = [];
  proxy = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(502).end();
  });
  proxy.on('connect', (request, socket) => {
    asked.push(request.url ?? '');
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
});

afterAll(() => {
  proxy.close();
  rmSync(dir, { recursive: true });
});

const doctor = async (env: Readonly<Record<string, string>>): Promise<string> => {
  asked.length = 0;
  const surrounding = { TEMPORAL_ADDRESS: '127.0.0.1:1', PERDURA_MEMORY_DIR: '', ANTHROPIC_API_KEY: 'key-of-a-test', ...env };
  return (await startPerdura({ dir, taskQueue: 'none' }, ['doctor'], { env: surrounding }).ended).stdout;
};

test('a model is asked through it', async () => {
  const { port } = proxy.address() as AddressInfo;
  await doctor({ HTTPS_PROXY: `http://127.0.0.1:${port}` });
  expect(asked).toContain('api.anthropic.com:443');
});

test('a server on this machine is not, nor what NO_PROXY names', async () => {
  const { port } = proxy.address() as AddressInfo;
  const http_proxy = `http://127.0.0.1:${port}`;
  await doctor({ http_proxy, ANTHROPIC_BASE_URL: 'http://127.0.0.1:1' });
  await doctor({ http_proxy, NO_PROXY: 'models.invalid', ANTHROPIC_BASE_URL: 'http://models.invalid' });
  expect(asked).toEqual([]);
});
