/** Servers of the revision 2026-07-28 by the protocol's own library, older ones, ones that are neither, and ones that change. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { aBench, aTool, EVERYTHING, hostileServer, named, run, said, type Bench } from '../../support/mcp.js';
import { waitFor } from '../../support/wait-for.js';

const { modernServer } = jest.requireActual<{ readonly modernServer: never }>('../../support/modern-mcp-server.cjs');
const MODERN = join(__dirname, '../../support/modern-mcp-server.cjs');
const onStdio = (...args: readonly string[]): object => ({ command: process.execPath, args: [MODERN, ...args] });
const LONG = 120_000;

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

let bench: Bench;
let now = 0;
const http: Server[] = [];
beforeEach(() => (bench = aBench({ connectMs: 30_000, now: () => now })));
afterEach(async () => {
  await bench.close();
  for (const one of http.splice(0)) {
    one.closeAllConnections();
    one.close();
  }
});

const tools = async (server: object) => {
  now += 61_000;
  return new Map((await bench.tools({ it: server }, { patienceMs: LONG })).map((tool) => [tool.name.replace('mcp__it__', ''), tool]));
};
const call = async (server: object, name: string, input: object = {}): Promise<string> =>
  said(await run(named([...(await tools(server)).values()], `mcp__it__${name}`), input as never));

async function serve(handler: Handler): Promise<object> {
  const server = createServer(handler);
  http.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { type: 'http', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` };
}

async function modernHandler(legacy: 'stateless' | 'reject'): Promise<Handler> {
  const { createMcpHandler } = await import('@modelcontextprotocol/server');
  const handler = createMcpHandler(modernServer, { legacy });
  const take: (...given: Parameters<Handler>) => Promise<void> = async (request, response) => {
    const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const body = request.method === 'POST' ? await readText(request) : undefined;
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const init = { method: request.method ?? 'GET', headers, ...(body !== undefined && { body }), signal: gone.signal };
    const answer = await handler.fetch(new Request(`http://127.0.0.1${request.url}`, init));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  };
  return (request, response) => void take(request, response).catch(() => response.destroy());
}

/** Of 2025, by its own library, with sessions. */
async function olderHandler(): Promise<Handler> {
  const [{ McpServer }, { StreamableHTTPServerTransport }, { z }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/mcp.js'),
    import('@modelcontextprotocol/sdk/server/streamableHttp.js'),
    import('zod'),
  ]);
  const sessions = new Map<string, InstanceType<typeof StreamableHTTPServerTransport>>();
  const begin = async () => {
    const server = new McpServer({ name: 'older', version: '1' });
    server.registerTool('echo', { description: 'echo', inputSchema: { said: z.string() } }, ({ said: given }) => ({
      content: [{ type: 'text', text: `older: ${given}` }],
    }));
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    return transport;
  };
  return (request, response) => {
    const id = request.headers['mcp-session-id']?.toString();
    const known = id === undefined ? undefined : sessions.get(id);
    if (id !== undefined && known === undefined) return void response.writeHead(404).end();
    void Promise.resolve(known ?? begin()).then((transport) => transport.handleRequest(request, response));
  };
}

describe.each(['stdio', 'http'] as const)('a server of 2026-07-28 over %s', (over) => {
  test.each(['older ones too', 'no older ones'])(
    'that serves %s: its tools, a state that is sent back, and a question that nobody can be asked',
    async (which) => {
      const isAlone = which === 'no older ones';
      const it =
        over === 'stdio' ? onStdio(isAlone ? 'reject' : 'serve') : await serve(await modernHandler(isAlone ? 'reject' : 'stateless'));
      expect([...(await tools(it)).keys()]).toEqual(['ask', 'echo', 'grow', 'later', 'leave', 'region']);
      expect(await call(it, 'echo', { said: 'hello' })).toBe('modern: hello');
      expect(await call(it, 'later')).toBe('the other half');
      expect(await call(it, 'ask')).toMatch(/^The tool ask of the MCP server it failed: .*elicitation/);
      expect(await call(it, 'region', { place: 'é' })).toBe(over === 'http' ? 'header =?base64?w6k=?=' : 'header undefined');
      expect(bench.lines).toEqual([]);
    },
    LONG,
  );
});

test(
  'a modern server that gets another tool tells so who listens, and the tool waits',
  async () => {
    const it = onStdio('reject');
    await call(it, 'grow');
    // Without the list's age.
    const waiting = (): Promise<string[]> => bench.offer({ it }).then((offered) => [...offered.waiting.keys()]);
    await waitFor(waiting, (names) => names.includes('mcp__it__grown'));
  },
  LONG,
);

test(
  'one that is slow to start is not taken for an older one',
  async () => {
    expect(await call(onStdio('reject', '6000'), 'echo', { said: 'late' })).toBe('modern: late');
  },
  LONG,
);

test.each(['touchy', 'silent'])(
  'an older one that is %s at the first question is greeted as one',
  async (mode) => {
    const older = await hostileServer({ mode, tools: [aTool('echo')] });
    expect(await call(older.config, 'echo', {})).toBe('echo {}');
    await older.remove();
  },
  LONG,
);

test(
  'what is no MCP server at all is named, and has no tools',
  async () => {
    const page = await serve((_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Welcome</p>'));
    const silent = { command: process.execPath, args: ['-e', 'process.stdin.resume(); console.log("Welcome")'] };
    await bench.close();
    bench = aBench({ connectMs: 3_000 });
    expect((await bench.tools({ page, silent, cat: { command: 'cat' } }, { patienceMs: LONG })).map(({ name }) => name)).toEqual([]);
    const lines = bench.lines.join('\n');
    expect(lines).toMatch(/MCP server page: .*text\/html/);
    expect(lines).toMatch(/MCP server silent: it did not answer within 3000 ms/);
    expect(lines).toMatch(/MCP server cat: /);
  },
  LONG,
);

test(
  'a server over HTTP that comes back in another revision is asked in that one, and the call is made once',
  async () => {
    const both = [await olderHandler(), await modernHandler('reject')] as const;
    let at = 0;
    const it = await serve((request, response) => both[at]?.(request, response));
    expect(await call(it, 'echo', { said: 'a' })).toBe('older: a');
    const echo = (await tools(it)).get('echo');
    at = 1;
    expect(said(await run(echo!, { said: 'b' }))).toContain('modern: b');
    at = 0;
    expect(said(await run(echo!, { said: 'c' }))).toContain('older: c');
    expect(bench.lines).toEqual([]);
  },
  LONG,
);

test(
  'one over stdio that ends is asked anew what it is, and its tools are held to what was accepted',
  async () => {
    const older = await hostileServer({ isModern: true, tools: [aTool('echo'), aTool('leave')] });
    const [program = '', file = ''] = older.config.args;
    const code = `const isModern = JSON.parse(require('node:fs').readFileSync(${JSON.stringify(file)}, 'utf8')).isModern;
      process.argv = ['', '', ${JSON.stringify(file)}];
      if (!isModern) require(${JSON.stringify(program)});
      else require('@modelcontextprotocol/server/stdio').serveStdio(require(${JSON.stringify(MODERN)}).modernServer, { legacy: 'reject' });`;
    const it = { command: process.execPath, args: ['-e', code], cwd: process.cwd() };
    expect(await call(it, 'echo', { said: 'a' })).toBe('modern: a');
    await older.be({ tools: [aTool('echo')] });
    expect(await call(it, 'leave')).toContain('was running when the server went away');
    now += 61_000;
    // Nobody waits for one that has just ended.
    const { tools: offered } = await waitFor(
      () => bench.offer({ it }),
      ({ waiting }) => waiting.has('mcp__it__echo'),
    );
    expect(offered).toEqual([]);
    await older.remove();
  },
  LONG,
);

test(
  'one odd tool in a modern list is left out, with those whose arguments cannot go into headers, and no other',
  async () => {
    const header = (mark: unknown, over: object = {}): object => ({
      inputSchema: { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': mark, ...over } } },
    });
    const listed = [aTool('fine'), { name: 7 }, aTool('empty', header('')), aTool('number', header('N', { type: 'number' }))];
    const it = await serve((request, response) => {
      void readText(request).then((body) => {
        const { id, method } = JSON.parse(body) as { id?: unknown; method: string };
        const results: Record<string, object> = {
          'server/discover': { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } },
          'tools/list': { tools: listed },
          'tools/call': { resultType: 'complete', content: [{ type: 'spell' }], structuredContent: { n: 1 } },
        };
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
      });
    });
    expect([...(await tools(it)).keys()]).toEqual(['fine']);
    expect(await call(it, 'fine')).toBe('[a part of a kind that is not known here]\n{"n":1}');
    expect(bench.lines.join('\n')).toMatch(/its tool empty is left out: its input schema names a header that cannot be one/);
    expect(bench.lines).toHaveLength(3);
  },
  LONG,
);

test(
  'the reference server of 2025 is one of 2025',
  async () => {
    expect(await call({ command: process.execPath, args: [EVERYTHING, 'stdio'] }, 'echo', { message: 'hello' })).toBe('Echo: hello');
  },
  LONG,
);
