/** What the bodies of a gateway's requests hold together, whoever sends them. */
import { type Context, Hono } from 'hono';
import fc from 'fast-check';
import { collectBodies, plainJson } from '../../src/gateway/core/read-body.js';
import { toProblem } from '../../src/gateway/core/errors.js';
import type { GatewayVariables } from '../../src/gateway/context.js';

const MAX = 1_000_000;
const MAX_PER_TOKEN = 700_000;

function createApp(): {
  ask: (token: string, body: string | ReadableStream, headers?: Record<string, string>) => Promise<Response>;
  end: () => void;
} {
  const waiting: (() => void)[] = [];
  const app = new Hono<GatewayVariables>();
  app.use(async (context, next) => {
    context.set('principal', { name: context.req.header('x-token') ?? '', role: 'user' });
    await next();
  });
  const tooLarge = (context: Context, bytes: number): Response => context.text(`${bytes}`, 413);
  app.use(collectBodies({ limit: () => 600_000, tooLarge, maxHeldBytes: MAX, maxHeldPerToken: MAX_PER_TOKEN }));
  app.post('/wait', async (context) => {
    const { length } = await context.req.text();
    await new Promise<void>((resolve) => waiting.push(resolve));
    return context.text(`${length}`);
  });
  app.post('/', async (context) => context.text(`${(await context.req.text()).length}`));
  app.onError((error, context) => context.text(error.message, toProblem(error).status));
  return {
    ask: async (token, body, headers = {}) => {
      const path = headers['x-wait'] === undefined ? '/' : '/wait';
      const init = { method: 'POST', body, headers: { 'x-token': token, ...headers }, duplex: 'half' };
      return await app.request(`http://localhost${path}`, init as RequestInit);
    },
    end: () => waiting.splice(0).forEach((end) => end()),
  };
}

const body = (bytes: number): string => 'x'.repeat(bytes);

test('all requests together hold no more than a gateway may; what is answered makes room', async () => {
  const { ask, end } = createApp();
  const open = ['a', 'b'].map((token) => ask(token, body(450_000), { 'x-wait': '1' }));
  await new Promise(setImmediate);
  expect((await ask('c', body(200_000))).status).toBe(503);
  // Also of one whose length is declared, which its route would read by itself.
  const small = await Promise.all(Array.from({ length: 10 }, () => ask('c', body(15_000), { 'content-length': '15000' })));
  expect(small.map(({ status }) => status)).toContain(503);
  end();
  expect(await Promise.all(open.map(async (one) => (await one).text()))).toEqual(['450000', '450000']);
  expect(await (await ask('c', body(200_000))).text()).toBe('200000');
});

test('requests of one token hold no more than its share, and those of others are answered meanwhile', async () => {
  const { ask, end } = createApp();
  const open = [1, 2].map(() => ask('a', body(300_000), { 'x-wait': '1' }));
  await new Promise(setImmediate);
  const refused = await ask('a', body(200_000));
  expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining(`this token`)]);
  expect(await (await ask('b', body(200_000))).text()).toBe('200000');
  end();
  await Promise.all(open);
  expect(await (await ask('a', body(200_000))).text()).toBe('200000');
});

test('JSON is read without half characters, and with all others as they were sent', () => {
  const bytes = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text));
  const read = (text: string): unknown => JSON.parse(Buffer.from(plainJson(bytes(text))).toString());
  expect(read(String.raw`{"a":"\ud83d\ude00 \ud83d x \ude00 \\ud83d \u00e9","\udc00":1}`)).toEqual({
    a: '😀 \ufffd x \ufffd \\ud83d é',
    '\ufffd': 1,
  });
  // As JSON escapes them: every half of a character, and every other one.
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const escaped = JSON.stringify(text).replace(/[\ud800-\udfff]/g, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
      expect(read(escaped)).toBe(text.toWellFormed());
    }),
  );
  const halves = fc.array(fc.constantFrom('\ud83d', '\ude00', 'x', '\\', '"')).map((parts) => parts.join(''));
  fc.assert(fc.property(halves, (text) => expect(read(JSON.stringify(text))).toBe(text.toWellFormed())));
});

test('JSON that begins with a mark is JSON, in UTF-16 too', () => {
  for (const encoding of ['utf8', 'utf16le'] as const) {
    const bytes = new Uint8Array(Buffer.from('\ufeff{"a":"größer \\ud83d"}', encoding));
    expect(JSON.parse(Buffer.from(plainJson(bytes)).toString())).toEqual({ a: 'größer \ufffd' });
  }
  const plain = new Uint8Array(Buffer.from('{"a":1}'));
  expect(Buffer.from(plainJson(new Uint8Array(Buffer.from('\ufeff{"a":1}')))).toString()).toBe('{"a":1}');
  expect(plainJson(plain)).toBe(plain);
});

test('JSON may be 128 levels deep; brackets in texts are none', () => {
  const deep = (levels: number): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from('['.repeat(levels) + ']'.repeat(levels)));
  expect(plainJson(deep(128))).toHaveLength(256);
  expect(() => plainJson(deep(129))).toThrow('128 levels deep');
  const text = new Uint8Array(Buffer.from(JSON.stringify({ a: '[{"\\'.repeat(1_000) })));
  expect(plainJson(text)).toBe(text);
});

test('a body that comes in pieces counts as far as it has come, and one that breaks off gives back what it held', async () => {
  const { ask } = createApp();
  for (let at = 0; at < 10; at += 1) {
    let sent = 0;
    const broken = new ReadableStream({
      pull(controller) {
        if ((sent += 1) < 9) controller.enqueue(new Uint8Array(50_000));
        else controller.error(new Error('gone'));
      },
    });
    expect((await ask('a', broken)).status).toBe(500);
  }
  expect(await (await ask('a', body(500_000))).text()).toBe('500000');
  expect((await ask('a', body(600_001))).status).toBe(413);
  expect((await ask('a', body(10), { 'content-length': '600001' })).status).toBe(413);
});
