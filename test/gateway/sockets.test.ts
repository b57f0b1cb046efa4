/** What is done with sockets alone: headers and bodies that never end, sockets that say nothing, names that are not ours. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { oneToken } from '../../src/gateway/access/tokens.js';
import { serveGateway, type ServedGateway } from '../../src/gateway/serve.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
const PATIENCE_MS = { headers: 1_500, request: 3_000 };
let world: World;
let served: ServedGateway;
let port: number;
const sockets: Socket[] = [];
const faults: string[] = [];

beforeAll(async () => {
  world = await startWorld({ worker: false });
  const log = (line: string): void => void faults.push(line);
  served = await serveGateway({
    client: world.client,
    authenticate: oneToken(TOKEN),
    port: 0,
    patienceMs: PATIENCE_MS,
    log,
    agents: () => Promise.resolve(['default']),
    requestsPerMinute: 100_000,
  });
  port = Number(new URL(served.url).port);
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await served.close();
  await world.close();
});
afterEach(() => expect(faults.splice(0)).toEqual([]));

async function open(): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** What it answers until it closes the connection. */
async function closedWith(socket: Socket): Promise<string> {
  let answered = '';
  socket.setEncoding('latin1').on('data', (text: string) => (answered += text));
  if (!socket.closed) await once(socket, 'close');
  return answered;
}

const head = (lines: readonly string[]): string => ['POST /v1/conversations HTTP/1.1', ...lines, '', ''].join('\r\n');
const honest = ['host: localhost', `authorization: Bearer ${TOKEN}`, 'content-type: application/json'];

/** Milliseconds that honest requests take, at the 95th percentile. */
async function p95(): Promise<number> {
  const took: number[] = [];
  for (let at = 0; at < 100; at += 1) {
    const began = performance.now();
    const response = await fetch(`${served.url}/v1/agents`, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(await response.json()).toEqual({ agents: ['default'] });
    took.push(performance.now() - began);
  }
  return took.sort((a, b) => a - b)[94] ?? Infinity;
}

test('500 sockets that say nothing, and 200 whose headers drip, make no honest client wait', async () => {
  const alone = await p95();
  const idle = await Promise.all(Array.from({ length: 500 }, open));
  const slow = await Promise.all(Array.from({ length: 200 }, open));
  for (const socket of slow) socket.write('POST /v1/conversations HTTP/1.1\r\nhost: localhost\r\n');
  const drip = setInterval(() => slow.forEach((socket) => socket.write('x-slow: 1\r\n')), 200);
  try {
    const among = await p95();
    process.stderr.write(`  ∎ p95 of an honest request: ${alone.toFixed(1)} ms alone, ${among.toFixed(1)} ms among 700 sockets\n`);
    expect(among).toBeLessThan(500);
    const ends = await Promise.all(slow.map((socket) => Promise.race([closedWith(socket), sleep(10_000, 'still open')])));
    expect(new Set(ends.map((text) => text.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 408']));
  } finally {
    clearInterval(drip);
    for (const socket of [...idle, ...slow]) socket.destroy();
  }
});

test('a body that drips is given up', async () => {
  const socket = await open();
  socket.write(head([...honest, 'content-length: 1000']));
  const drip = setInterval(() => socket.write(' '), 200);
  try {
    const answered = await Promise.race([closedWith(socket), sleep(15_000, 'still open')]);
    expect(answered).not.toBe('still open');
    expect(answered).not.toMatch(/HTTP\/1.1 (?:2|5)/);
  } finally {
    clearInterval(drip);
  }
});

test('a body in chunks that never ends is cut off', async () => {
  const socket = await open();
  socket.write(head([...honest, 'transfer-encoding: chunked']));
  const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
  let sent = 0;
  const more = setInterval(() => {
    if (socket.writableNeedDrain || socket.destroyed) return;
    socket.write(chunk);
    sent += 65_536;
  }, 5);
  try {
    const answered = await Promise.race([closedWith(socket), sleep(15_000, 'still open')]);
    expect(answered).toContain('HTTP/1.1 413');
    expect(answered).toContain('urn:perdura:too-large');
    expect(sent).toBeLessThan(20_000_000);
  } finally {
    clearInterval(more);
  }
});

test.each([
  ['10,000 headers', Array.from({ length: 10_000 }, (_, at) => `x-${at}: ${at}`), 431],
  ['a header of 100 kB', [`x: ${'x'.repeat(100_000)}`], 431],
  ['no Host', ['x: y'], 400],
  ['two lengths', ['host: localhost', 'content-length: 1', 'content-length: 2'], 400],
  ['a length and chunks', ['host: localhost', 'content-length: 3', 'transfer-encoding: chunked'], 400],
  ['a header that is none', ['host: localhost', 'no colon here'], 400],
])('%s', async (_what, lines, status) => {
  const socket = await open();
  socket.write(head(lines));
  const answered = await Promise.race([closedWith(socket), sleep(10_000, 'still open')]);
  expect(answered.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
  expect(await (await fetch(`${served.url}/healthz`)).json()).toMatchObject({ status: 'ok' });
});

test.each(['evil.com', 'localhost.evil.com', ''])('under the Host %j nothing is served', async (host) => {
  const socket = await open();
  socket.write(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  expect(await closedWith(socket)).toMatch(/^HTTP\/1.1 40[03]/);
});

test('wrong tokens are counted by the address of the socket, whatever a header says', async () => {
  const statuses: number[] = [];
  for (let at = 0; at < 32; at += 1) {
    const response = await fetch(`${served.url}/v1/agents`, {
      headers: { authorization: `Bearer wrong-${at}`, 'x-forwarded-for': `10.0.0.${at}` },
    });
    await response.body?.cancel();
    statuses.push(response.status);
  }
  expect(statuses.slice(0, 30)).toEqual(Array.from({ length: 30 }, () => 401));
  expect(statuses.slice(30)).toEqual([429, 429]);
});
