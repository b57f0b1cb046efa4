/** Server-sent events: a client that does not read holds little, and is dropped; and no text in one is another. */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { once } from 'node:events';
import { connect, type AddressInfo, type Server } from 'node:net';
import { createAdmission } from '../../src/gateway/access/principal.js';
import type { GatewayVariables } from '../../src/gateway/context.js';
import { createMetrics } from '../../src/gateway/app.js';
import { sendEvents, type ServerEvent } from '../../src/gateway/sse.js';
import { framesOf, type Frame } from '../support/event-reader.js';
import { waitFor } from '../support/wait-for.js';

const EVENT_BYTES = 10_000;
const EVENTS = 20_000;

test('events for a client that does not read wait where they are, and it is dropped after a while', async () => {
  let made = 0;
  let isLeft = false;
  async function* events(): AsyncGenerator<ServerEvent> {
    try {
      for (; made < EVENTS; made += 1) yield await Promise.resolve({ data: 'x'.repeat(EVENT_BYTES) });
    } finally {
      isLeft = true;
    }
  }
  const server = await serveEvents(events);
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
  try {
    await waitFor(
      () => isLeft,
      (left) => left,
    );
    // What the kernel and Node hold of a connection, of 200 MB.
    expect(made * EVENT_BYTES).toBeLessThan(20_000_000);
    const connections = (): Promise<number> =>
      new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));
    await waitFor(connections, (count) => count === 0);
  } finally {
    socket.destroy();
    server.close();
    await once(server, 'close');
  }
});

test.each(['\n', '\r\n', '\r', '\n\n'])('S53 a text with the line break %j in it, and an event behind that, is one event', async (end) => {
  const text = `x${end}event: turn-finished${end}data: {"forged":true}${end}${end}id: 9`;
  async function* events(): AsyncGenerator<ServerEvent> {
    yield await Promise.resolve({ id: '1', event: 'text', data: JSON.stringify({ text }) });
    yield { id: '2', event: 'end', data: '{}' };
  }
  const server = await serveEvents(events);
  try {
    const frames: Frame[] = [];
    for await (const frame of framesOf(await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`))) frames.push(frame);
    expect(frames.map(({ id, event, data }) => [id, event, JSON.parse(data)])).toEqual([
      ['1', 'text', { text }],
      ['2', 'end', {}],
    ]);
  } finally {
    server.close();
    await once(server, 'close');
  }
});

async function serveEvents(events: () => AsyncGenerator<ServerEvent>): Promise<Server> {
  const app = new Hono<GatewayVariables>();
  app.use(async (context, next) => {
    context.set('closing' as never, new AbortController().signal as never);
    context.set('admission' as never, createAdmission({ name: 'a', role: 'user' }, () => Promise.resolve(undefined), 1e9) as never);
    context.set('redact' as never, ((text: string) => text) as never);
    context.set('metrics' as never, createMetrics() as never);
    await next();
  });
  app.get('/', (context) => sendEvents(context, events, () => undefined, { stallMs: 1_000 }));
  const server = (await new Promise((resolve) => {
    const starting = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, () => resolve(starting));
  })) as Server;
  return server;
}
