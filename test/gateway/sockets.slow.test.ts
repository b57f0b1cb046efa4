/** What is done with sockets alone: headers and bodies that never end, sockets that say nothing, names that are not ours. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../src/gateway/index.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

// A socket that is not closed lets its test time out.
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
  // What is written after it was closed fails, which is no reason to stop reading.
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
  return answered;
}

const head = (lines: readonly string[]): string => ['POST /v1/conversations HTTP/1.1', ...lines, '', ''].join('\r\n');
const honest = ['host: localhost', `authorization: Bearer ${TOKEN}`, 'content-type: application/json'];

/** As RFC 9457 has it; throws where it is not that, or has another length than it says. */
function problemIn(answered: string): unknown {
  const [head = '', body = ''] = answered.split('\r\n\r\n');
  expect(head.toLowerCase()).toContain('content-type: application/problem+json');
  expect(Number(/content-length: (\d+)/i.exec(head)?.[1])).toBe(body.length);
  return JSON.parse(body);
}

test('500 sockets that say nothing, and 200 whose headers drip, are in no honest client’s way', async () => {
  const idle = await Promise.all(Array.from({ length: 500 }, open));
  const slow = await Promise.all(Array.from({ length: 200 }, open));
  for (const socket of slow) socket.write('POST /v1/conversations HTTP/1.1\r\nhost: localhost\r\n');
  const drip = setInterval(() => slow.forEach((socket) => socket.write('x-slow: 1\r\n')), 200);
  try {
    for (let at = 0; at < 100; at += 1) {
      const response = await fetch(`${served.url}/v1/agents`, { headers: { authorization: `Bearer ${TOKEN}` } });
      expect(await response.json()).toEqual({ agents: ['default'] });
    }
    const ends = await Promise.all(slow.map(closedWith));
    // What drips on after the connection was closed can cost a client the answer.
    const answers = new Set(ends.map((text) => text.slice(0, 12)));
    expect([...answers].filter((answer) => !['HTTP/1.1 408', ''].includes(answer))).toEqual([]);
  } finally {
    clearInterval(drip);
    for (const socket of [...idle, ...slow]) socket.destroy();
  }
});

// @rule gateway/bounded-bodies
test('2,000 that send bodies without a token are closed, hold little, and are in no honest client’s way', async () => {
  const before = process.memoryUsage().rss;
  const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`;
  let peak = 0;
  const attack = async (): Promise<string> => {
    const socket = await open();
    const closed = closedWith(socket);
    socket.write(['POST /v1/messages HTTP/1.1', 'host: localhost', 'transfer-encoding: chunked', '', ''].join('\r\n'));
    for (let sent = 0; sent < 200 && !socket.destroyed; sent += 1) {
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined);
    }
    return await closed;
  };
  // As many at once as a system lets wait for a connection.
  const attackers = Array.from({ length: 200 }, async () => {
    const answers: string[] = [];
    for (let at = 0; at < 10; at += 1) answers.push(await attack());
    return answers;
  });
  for (let at = 0; at < 100; at += 1) {
    const response = await fetch(`${served.url}/v1/agents`, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(await response.json()).toEqual({ agents: ['default'] });
    peak = Math.max(peak, process.memoryUsage().rss);
  }
  // A connection that is closed before its answer was read says nothing; one whose headers a busy machine reads late is given up.
  const answers = new Set((await Promise.all(attackers)).flat().map((text) => text.slice(0, 12)));
  expect([...answers].filter((answer) => !['HTTP/1.1 401', 'HTTP/1.1 429', 'HTTP/1.1 408', ''].includes(answer))).toEqual([]);
  // They send 26 GB, and both ends of each connection are here.
  expect(peak - before).toBeLessThan(600_000_000);
});

test('HEAD of what streams opens nothing', async () => {
  const id = world.id();
  await world.client.start(id);
  const headers = { authorization: `Bearer ${TOKEN}` };
  for (let at = 0; at < 20; at += 1) {
    const response = await fetch(`${served.url}/v1/conversations/${id}/events`, { method: 'HEAD', headers });
    expect(response.status).toBe(200);
  }
  const metrics = await waitFor(
    async () => (await fetch(`${served.url}/metrics`, { headers })).text(),
    (text) => /^perdura_gateway_open_streams 0$/m.test(text),
  );
  expect(metrics).toMatch(/open_streams 0$/m);
});

test('a body that drips is given up', async () => {
  const socket = await open();
  socket.write(head([...honest, 'content-length: 1000']));
  const drip = setInterval(() => socket.write(' '), 200);
  try {
    const answered = await closedWith(socket);
    expect(answered.slice(0, 12)).toBe('HTTP/1.1 408');
    expect(problemIn(answered)).toMatchObject({ type: 'urn:perdura:timeout', status: 408 });
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
  socket.once('data', () => clearInterval(more));
  try {
    const answered = await closedWith(socket);
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
  [
    '101 headers, of which Node would leave the last ones out',
    ['host: localhost', 'connection: close', ...Array.from({ length: 99 }, (_, at) => `x-${at}: ${at}`)],
    431,
  ],
  // Node's own answer, without a body, before anything of the gateway sees it.
  ['no Host', ['x: y'], 400, true],
  ['two lengths', ['host: localhost', 'content-length: 1', 'content-length: 2'], 400],
  ['a length and chunks', ['host: localhost', 'content-length: 3', 'transfer-encoding: chunked'], 400],
  ['a header that is none', ['host: localhost', 'no colon here'], 400],
] as [string, string[], number, boolean?][])('%s', async (_what, lines, status, isNodes = false) => {
  const socket = await open();
  socket.write(head(lines));
  const answered = await closedWith(socket);
  expect(answered.slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
  if (!isNodes) expect(problemIn(answered)).toMatchObject({ status, detail: expect.any(String) });
  expect(await (await fetch(`${served.url}/healthz`)).json()).toMatchObject({ status: 'ok' });
});

test.each(['evil.com', 'localhost.evil.com', ''])('under the Host %j nothing is served', async (host) => {
  const socket = await open();
  socket.write(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  expect(await closedWith(socket)).toMatch(/^HTTP\/1.1 40[03]/);
});

test('what breaks off in the middle of an answer gets nothing in between', async () => {
  const id = world.id();
  await world.client.start(id);
  const socket = await open();
  socket.write(['GET /v1/conversations/' + id + '/events HTTP/1.1', ...honest, '', ''].join('\r\n'));
  await once(socket, 'data');
  const rest = closedWith(socket);
  socket.write('no request at all\r\n\r\n');
  expect(await rest).not.toContain('HTTP/1.1 400');
});

test('of one token no more is open at once than it may have; what is closed makes room', async () => {
  const one = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0, openPerToken: 3 });
  const id = world.id();
  await world.client.start(id);
  const ask = (signal?: AbortSignal): Promise<Response> =>
    fetch(`${one.url}/v1/conversations/${id}/events`, { headers: { authorization: `Bearer ${TOKEN}` }, ...(signal && { signal }) });
  try {
    const leave = new AbortController();
    const streams = await Promise.all([ask(leave.signal), ask(leave.signal), ask(leave.signal)]);
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
    const refused = await ask();
    expect([refused.status, await refused.json()]).toEqual([
      429,
      expect.objectContaining({ detail: expect.stringContaining('3 requests and streams') }),
    ]);
    leave.abort();
    for (let at = 0; at < 10; at += 1) {
      const response = await waitFor(
        () => fetch(`${one.url}/v1/me`, { headers: { authorization: `Bearer ${TOKEN}` } }),
        ({ status }) => status === 200,
      );
      await response.body?.cancel();
    }
  } finally {
    await one.close();
  }
});

test('behind a proxy that is trusted wrong tokens are counted by client, and keep no right one out', async () => {
  const one = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0, trustedProxies: ['127.0.0.0/8'] });
  const ask = async (token: string, address: string): Promise<number> => {
    const response = await fetch(`${one.url}/v1/me`, { headers: { authorization: `Bearer ${token}`, 'x-forwarded-for': address } });
    await response.body?.cancel();
    return response.status;
  };
  try {
    for (let at = 0; at < 31; at += 1) await ask(`wrong-${at}`, `1.1.1.${at}, 203.0.113.9`);
    expect(await ask('wrong', '203.0.113.9')).toBe(429);
    expect(await ask('wrong', '203.0.113.10')).toBe(401);
    expect(await ask(TOKEN, '203.0.113.9')).toBe(200);
  } finally {
    await one.close();
  }
});

test('wrong tokens are counted by the address of the socket, whatever a header says', async () => {
  // Its own: others here bring wrong tokens too.
  const one = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0 });
  const statuses: number[] = [];
  try {
    for (let at = 0; at < 32; at += 1) {
      const response = await fetch(`${one.url}/v1/agents`, {
        headers: { authorization: `Bearer wrong-${at}`, 'x-forwarded-for': `10.0.0.${at}` },
      });
      await response.body?.cancel();
      statuses.push(response.status);
    }
  } finally {
    await one.close();
  }
  expect(statuses.slice(0, 30)).toEqual(Array.from({ length: 30 }, () => 401));
  expect(statuses.slice(30)).toEqual([429, 429]);
});
