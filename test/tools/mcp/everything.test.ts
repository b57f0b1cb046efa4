/** The protocol's own reference server, which nobody here wrote, over both of its transports. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { freePort } from '../../../src/testing/temporal-server.js';
import { aBench, EVERYTHING, named, run, said, type Bench } from '../../support/mcp.js';
import { waitFor } from '../../support/wait-for.js';

let bench: Bench;
let http: ChildProcess | undefined;

beforeEach(() => {
  bench = aBench();
});
afterEach(async () => {
  await bench.close();
  http?.kill('SIGKILL');
  http = undefined;
});

const STDIO = { command: process.execPath, args: [EVERYTHING, 'stdio'] };

async function serveHttp(port: number): Promise<{ type: string; url: string }> {
  const serving = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], { env: { ...process.env, PORT: String(port) }, stdio: 'ignore' });
  http = serving;
  const url = `http://127.0.0.1:${port}/mcp`;
  await waitFor(
    () =>
      fetch(url).then(
        () => true,
        () => false,
      ),
    (answers) => answers,
  );
  return { type: 'http', url };
}

test('a server whose output begins with a mark is understood', async () => {
  const code = `process.stdout.write('\\ufeff'); import(${JSON.stringify(EVERYTHING)})`;
  const all = await bench.tools({ everything: { command: process.execPath, args: ['-e', code, 'x', 'stdio'] } });
  expect(await run(named(all, 'mcp__everything__echo'), { message: 'hello' })).toEqual({ ok: true, content: 'Echo: hello' });
});

test('over stdio: tools, what they answer, resources and prompts', async () => {
  const all = await bench.tools({ everything: STDIO });
  const names = all.map(({ name }) => name);
  expect(names).toEqual([...names].sort());
  expect(names).toEqual(
    expect.arrayContaining(['mcp__everything__echo', 'mcp__everything__get-sum', 'mcp_list_resources', 'mcp_get_prompt']),
  );
  expect(bench.lines).toEqual([]);

  expect(await run(named(all, 'mcp__everything__echo'), { message: 'hello' })).toEqual({ ok: true, content: 'Echo: hello' });
  expect(said(await run(named(all, 'mcp__everything__get-sum'), { a: 2, b: 3 }))).toContain('5');
  expect(await run(named(all, 'mcp__everything__get-sum'), { a: 'two' })).toMatchObject({
    ok: false,
    error: expect.stringMatching(/number/),
  });
  const picture = await run(named(all, 'mcp__everything__get-tiny-image'));
  expect(said(picture)).toMatch(/\[image, image\/png, \d+ bytes\]/);
  expect(picture.images).toEqual([{ mediaType: 'image/png', base64: expect.stringMatching(/^iVBOR/) }]);
  expect(said(await run(named(all, 'mcp__everything__get-structured-content'), { location: 'Chicago' }))).toContain('temperature');
  expect(said(await run(named(all, 'mcp__everything__get-resource-links'), { count: 2 }))).toMatch(/\[resource .*demo:\/\/resource/);

  const resources = said(await run(named(all, 'mcp_list_resources')));
  const uri = /"uri":"([^"]+)"/.exec(resources)?.[1] ?? '';
  expect(said(await run(named(all, 'mcp_read_resource'), { server: 'everything', uri }))).toContain(`[resource ${uri}`);
  expect(await run(named(all, 'mcp_read_resource'), { server: 'nothing', uri })).toMatchObject({ ok: false });
  expect(said(await run(named(all, 'mcp_list_prompts')))).toContain('simple-prompt');
  expect(said(await run(named(all, 'mcp_get_prompt'), { server: 'everything', name: 'simple-prompt' }))).toMatch(/^\[user\]\n./);
});

test('over Streamable HTTP: the same, and again after the server was started anew', async () => {
  const port = await freePort();
  const config = await serveHttp(port);
  const all = await bench.tools({ everything: config });
  const echo = named(all, 'mcp__everything__echo');
  expect(said(await run(echo, { message: 'hello' }))).toBe('Echo: hello');
  http?.kill('SIGKILL');
  await waitFor(
    () => http?.signalCode,
    (signal) => signal !== null,
  );
  expect(said(await run(echo, { message: 'anybody' }))).toMatch(/^The MCP server everything is down: /);
  await serveHttp(port);
  const last = await waitFor(
    () => run(echo, { message: 'back' }),
    (result) => result.ok,
  );
  expect(said(last)).toBe('Echo: back');
});

test('both kinds at once, and an address that nobody answers at', async () => {
  const port = await freePort();
  const all = await bench.tools({ a: STDIO, b: { url: `http://127.0.0.1:${port}/mcp`, headers: { authorization: 'Bearer sk-canary' } } });
  expect(all.filter(({ name }) => name.startsWith('mcp__a__')).length).toBeGreaterThan(5);
  expect(all.some(({ name }) => name.startsWith('mcp__b__'))).toBe(false);
  expect(bench.lines.join()).toContain('fetch failed');
  expect(bench.lines.join()).not.toContain('sk-canary');
});

test('a key that a server was given does not come back in what is said about it', async () => {
  const refusing = createHttpServer((request, response) => {
    response.writeHead(401).end(`who is ${request.headers.authorization}, asking for ${request.url}?`);
  });
  await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve));
  const { port } = refusing.address() as AddressInfo;
  try {
    const url = `http://127.0.0.1:${port}/mcp?key=canary-in-address`;
    await bench.tools({ b: { url, headers: { authorization: 'Bearer canary-in-header' } } });
    expect(bench.lines.join()).toContain('who is [redacted]');
    expect(bench.lines.join()).not.toContain('canary');
  } finally {
    refusing.close();
  }
});

test('a server that answers over HTTP with what takes long to parse is not parsed', async () => {
  const brackets = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
  const deep = createHttpServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(`{"jsonrpc":"2.0","id":0,"result":{"a":${brackets}}}`);
  });
  await new Promise<void>((resolve) => deep.listen(0, '127.0.0.1', resolve));
  const { port } = deep.address() as AddressInfo;
  try {
    expect(await bench.tools({ b: { url: `http://127.0.0.1:${port}/mcp` } })).toEqual([]);
    expect(bench.lines.join()).toContain('it sent a message of more than 250000 values, or more than 128 deep');
  } finally {
    deep.close();
  }
});
