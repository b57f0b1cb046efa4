/** Servers that write what the protocol does not foresee, and mean well: none of them loses a tool, an answer or a call. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listIgnored, mcpConfigSchema } from '../../../src/tools/mcp/server-config.js';
import { toToolResult } from '../../../src/tools/mcp/run-server-tool.js';
import { aBench, aTool, named, run, said, serversOf, type Bench } from '../../support/mcp.js';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

interface Request {
  readonly id?: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>> & { readonly _meta?: { readonly progressToken?: number } };
}
/** Answers one request: with its result, or in its own way. */
type Answer = (request: Request, http: { readonly response: ServerResponse; readonly session: string | undefined }) => object | undefined;

let bench: Bench;
let close = (): void => undefined;
beforeEach(() => (bench = aBench()));
afterEach(async () => {
  await bench.close();
  close();
});

/** Over HTTP: JSON answers, a session for each initialization. */
async function serve(answer: Answer, initialized: object = {}, beside: object = {}): Promise<{ readonly url: string }> {
  let sessions = 0;
  const take = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (message.method !== 'POST') return void response.writeHead(405).end();
    let body = '';
    for await (const chunk of message) body += String(chunk);
    const request = JSON.parse(body) as Request;
    if (request.id === undefined) return void response.writeHead(202).end();
    if (request.method === 'server/discover') return void response.writeHead(400).end('what?');
    const isFirst = request.method === 'initialize';
    if (isFirst) sessions += 1;
    const session = isFirst ? `s${sessions}` : (message.headers['mcp-session-id'] as string | undefined);
    const own = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' }, ...initialized };
    const result = isFirst ? own : answer(request, { response, session });
    if (result === undefined) return;
    response.writeHead(200, { 'content-type': 'application/json', ...(isFirst && { 'mcp-session-id': session }) });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: request.id, result, ...beside }));
  };
  const http = createServer((message, response) => void take(message, response));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  close = () => {
    http.closeAllConnections();
    http.close();
  };
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp` };
}

const names = (tools: readonly { readonly name: string }[]): string[] => tools.map(({ name }) => name);

test.each<[what: string, page: (cursor: unknown) => object]>([
  ['null', (cursor) => ({ tools: [aTool('a'), aTool('b')], nextCursor: cursor === undefined ? null : 'never' })],
  ['empty', (cursor) => ({ tools: [aTool('a'), aTool('b')], nextCursor: cursor === undefined ? '' : 'never' })],
  ['of the same page', () => ({ tools: [aTool('a'), aTool('b')], nextCursor: 'again' })],
  ['of the same page under another name', (cursor) => ({ tools: [aTool('a'), aTool('b')], nextCursor: `${String(cursor)}+` })],
  [
    'of an earlier page',
    (cursor) => (cursor === 'two' ? { tools: [aTool('b')], nextCursor: 'one' } : { tools: [aTool('a')], nextCursor: 'two' }),
  ],
])('a cursor that is %s ends the list, and no tool is lost or there twice', async (_, page) => {
  let pages = 0;
  const odd = await serve(({ params }) => ((pages += 1), page(params['cursor'])));
  expect(names(await bench.tools({ odd }))).toEqual(['mcp__odd__a', 'mcp__odd__b']);
  expect(pages).toBeLessThan(5);
  expect(bench.lines).toEqual([]);
});

test('null stands for a field that is not there, in a message, a tool and an answer; and for itself where a tool means it', async () => {
  const blank = { title: null, description: null, annotations: null, outputSchema: null, icons: null, _meta: null };
  const odd = await serve(
    ({ method }) =>
      method === 'tools/list'
        ? { tools: [aTool('a', blank)], nextCursor: null, _meta: null }
        : {
            content: [{ type: 'text', text: 'seven', annotations: null, _meta: null }],
            structuredContent: { n: 7, none: null },
            isError: null,
            _meta: null,
          },
    {
      instructions: null,
      serverInfo: { name: 'odd', version: '1', title: null },
      capabilities: { tools: { listChanged: null }, prompts: null },
    },
    { error: null },
  );
  const [tool] = await bench.tools({ odd });
  expect(tool).toMatchObject({ name: 'mcp__odd__a', description: 'The tool a of the MCP server odd.' });
  expect(await run(named([tool!], 'mcp__odd__a'))).toEqual({ ok: true, content: 'seven\n{"n":7,"none":null}' });
});

test.each([400, 404])('a session that the server has ended (%i) is begun anew, once, and the call is made', async (status) => {
  const calls: (string | undefined)[] = [];
  const odd = await serve(({ method }, { response, session }) => {
    if (method === 'tools/list') return { tools: [aTool('a')] };
    calls.push(session);
    if (session === 's2') return { content: [{ type: 'text', text: 'done' }] };
    response.writeHead(status).end('{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID"},"id":null}');
    return undefined;
  });
  const all = await bench.tools({ odd });
  expect(await run(named(all, 'mcp__odd__a'))).toEqual({ ok: true, content: 'done' });
  expect(calls).toEqual(['s1', 's2']);
  expect(await run(named(all, 'mcp__odd__a'))).toMatchObject({ ok: true });
  expect(bench.lines).toEqual([]);
});

test('a call that is refused in each session is made twice, and no more', async () => {
  let calls = 0;
  const odd = await serve(({ method }, { response }) => {
    if (method === 'tools/list') return { tools: [aTool('a')] };
    calls += 1;
    response.writeHead(400).end('no');
    return undefined;
  });
  expect(said(await run(named(await bench.tools({ odd }), 'mcp__odd__a')))).toMatch(/failed: .*400|failed: .*no/);
  expect(calls).toBe(2);
});

describe('progress', () => {
  /** Reports every 20 ms, and answers after so many reports; without end where there are none. */
  const slow = (reports: number): Answer => {
    return ({ id, method, params }, { response }) => {
      if (method === 'tools/list') return { tools: [aTool('a')] };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const send = (message: object): void =>
        void response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
      let progress = 0;
      const timer = setInterval(() => {
        progress += 1;
        if (progress <= reports) {
          send({ method: 'notifications/progress', params: { progressToken: params._meta?.progressToken, progress, total: null } });
        } else if (reports > 0) {
          send({ id, result: { content: [{ type: 'text', text: `done after ${progress - 1}` }] } });
          clearInterval(timer);
          response.end();
        }
      }, 100);
      response.on('close', () => clearInterval(timer));
      return undefined;
    };
  };

  test('keeps a call alive beyond its timeout, within its total', async () => {
    const odd = { ...(await serve(slow(20))), timeout: 1_000, maxTotalTimeout: 60_000 };
    const tool = named(await bench.tools({ odd }), 'mcp__odd__a');
    expect(tool.policy.timeoutMs).toBe(60_000);
    expect(await run(tool)).toEqual({ ok: true, content: 'done after 20' });
  });

  test('a call without any ends by its timeout, in words', async () => {
    const odd = { ...(await serve(slow(0))), timeout: 300 };
    const tool = named(await bench.tools({ odd }), 'mcp__odd__a');
    expect(tool.policy.timeoutMs).toBe(3_000);
    expect(said(await run(tool))).toBe(
      'The tool a of the MCP server odd sent no answer and no progress for 300 ms: whether it was done is unknown.',
    );
  });
});

describe('structured content', () => {
  const text = (...texts: readonly string[]): object[] => texts.map((one) => ({ type: 'text', text: one }));
  test.each<[what: string, content: object[], structured: unknown, shown: string]>([
    ['the same as JSON', text('{\n  "b": 1,\n  "a": [2]\n}'), { a: [2], b: 1 }, '{\n  "b": 1,\n  "a": [2]\n}'],
    ['with blanks around it', text(' {"a":1}\n'), { a: 1 }, ' {"a":1}\n'],
    ['a text under `result`', text('sunny'), { result: 'sunny' }, 'sunny'],
    ['a number under `result`', text('5'), { result: 5 }, '5'],
    ['a list under `result`, an item a text', text('a', '{"b":1}'), { result: ['a', { b: 1 }] }, 'a\n{"b":1}'],
    ['something else', text('It is warm.'), { degrees: 30 }, 'It is warm.\n{"degrees":30}'],
    ['alone', [], { degrees: 30 }, '{"degrees":30}'],
  ])('%s is shown once', (_, content, structuredContent, shown) => {
    expect(toToolResult({ content, structuredContent })).toEqual({ ok: true, content: shown });
  });

  test('a text of hundreds of kilobytes is not shown twice either', () => {
    const value = { rows: Array.from({ length: 20_000 }, (_, n) => ({ n, name: `row ${n}` })) };
    const result = toToolResult({ content: text(JSON.stringify(value, null, 1)), structuredContent: value });
    expect(said(result).split('"n": 7,')).toHaveLength(2);
  });
});

test('pictures, sound and documents come with the text, also where the tool failed; what is none of them is words', () => {
  const pdf = Buffer.from('%PDF-1.7 a page').toString('base64');
  const content = [
    { type: 'image', data: PNG, mimeType: 'image/jpeg' },
    { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
    { type: 'image', data: 'AAAA', mimeType: 'image/png' },
    { type: 'image', data: 'no base64!', mimeType: 'image/png' },
    { type: 'resource', resource: { uri: 'file:///a.pdf', mimeType: 'application/pdf', blob: pdf } },
  ];
  const media = {
    images: [{ mediaType: 'image/png', base64: PNG }],
    audio: [{ mediaType: 'audio/wav', base64: 'AAAA' }],
    documents: [{ mediaType: 'application/pdf', base64: pdf }],
  };
  const words = [
    '[image, image/jpeg, 70 bytes]',
    '[audio, audio/wav, 3 bytes]',
    '[image, image/png, 3 bytes: not shown, it is no PNG, JPEG, GIF or WebP picture, sound or PDF]',
    '[image, image/png, 7 bytes: not shown, it is no base64]',
    '[resource file:///a.pdf, application/pdf, 15 bytes]',
  ].join('\n');
  expect(toToolResult({ content })).toEqual({ ok: true, content: words, ...media });
  expect(toToolResult({ content, isError: true })).toEqual({ ok: false, error: words, ...media });
  const many = toToolResult({ content: Array.from({ length: 30 }, () => content[0]) });
  expect(many.images).toHaveLength(20);
  expect(said(many)).toContain('not shown, a result may have 20 files');
});

describe('mcp.json of other programs', () => {
  test.each<[what: string, given: object, read: object]>([
    [
      'Cline, Roo, VS Code',
      { command: 'x', autoApprove: ['a'], alwaysAllow: [], description: 'd', envFile: '.env', gallery: true },
      { type: 'stdio', command: 'x' },
    ],
    ['a type of others', { type: 'streamable-http', url: 'http://x' }, { type: 'http', url: 'http://x' }],
    ['the old type', { type: 'sse', url: 'http://x' }, { type: 'http', url: 'http://x' }],
    ['Gemini CLI', { httpUrl: 'http://x', trust: true, includeTools: ['a'] }, { type: 'http', url: 'http://x' }],
    ['Windsurf', { serverUrl: 'http://x' }, { type: 'http', url: 'http://x' }],
    ['`transport`', { transport: 'streamable_http', url: 'http://x' }, { type: 'http', url: 'http://x' }],
    ['`enabled`', { command: 'x', enabled: false }, { type: 'stdio', disabled: true }],
    [
      'null and numbers',
      { type: null, command: 'x', cwd: null, args: null, env: { A: 1, B: true, C: null } },
      { command: 'x', args: [], env: { A: '1', B: 'true' } },
    ],
  ])('%s', (_, given, read) => {
    expect(mcpConfigSchema.parse({ mcpServers: { a: given } }).mcpServers['a']).toMatchObject(read);
  });

  test('what is left out is named, field by field', () => {
    const fields = { command: 'x', autoApprove: [], envFile: '.env', descriptoin: 1, timeout: 60, cwd: null };
    expect(listIgnored({ mcpServers: { a: fields, b: { type: 'sse', url: 'http://x' }, c: { command: 'y' } } })).toEqual([
      'mcpServers.a: autoApprove is not used: "approvals" in agent.json says which calls ask',
      'mcpServers.a: envFile is not used: no file is read: name the variables in "env"',
      'mcpServers.a: descriptoin is not used',
      'mcpServers.a: timeout is 60, and counts milliseconds',
      'mcpServers.b: type "sse" is the protocol of 2024, which is not spoken here: its address is taken as one of "http"',
    ]);
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`x${n}`, n]));
    expect(listIgnored({ mcpServers: { a: { command: 'x', ...many } } })).toHaveLength(21);
  });

  test('a field or a type that is called as what every object has is one of others, and no more', () => {
    const given = JSON.parse('{ "command": "x", "constructor": 1, "__proto__": { "url": "http://x" }, "toString": "y" }') as object;
    expect(listIgnored({ mcpServers: { a: given } })).toEqual([
      'mcpServers.a: constructor is not used',
      'mcpServers.a: __proto__ is not used',
      'mcpServers.a: toString is not used',
    ]);
    expect(mcpConfigSchema.parse({ mcpServers: { a: given } }).mcpServers['a']).toMatchObject({ type: 'stdio', command: 'x' });
    expect(() => serversOf({ a: { type: 'constructor', command: 'x' } })).toThrow(/expected \\"stdio\\"/);
  });

  test('what cannot be a server is still refused', () => {
    expect(() => serversOf({ a: { type: 'ws', url: 'ws://x' } })).toThrow(/expected \\"stdio\\"/);
    expect(() => serversOf({ a: { description: 'nothing else' } })).toThrow(/command/);
  });
});
