/** The package `perdura-client`, before a real gateway: what it streams, through a gateway that goes away, and as it is published. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { createGatewayClient, type GatewayClient, type TurnEvent } from '../../packages/perdura-client/src/index.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../src/gateway/index.js';
import type { TurnEvent as SentEvent } from '../../src/records/feed-event.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const run = promisify(execFile);
const PACKAGE = resolve(__dirname, '../../packages/perdura-client');
const TSC = resolve(__dirname, '../../node_modules/typescript/bin/tsc');
const TOKEN = 'a-token-that-only-tests-have';
/** Installed. */
const MAX_BYTES = 2 * 1024 * 1024;

const paid: string[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ to: z.string() }),
  policy: { approval: 'ask' },
  run({ to }) {
    paid.push(to);
    return `paid ${to}`;
  },
});

const stage = createStage();
let world: World;
let served: ServedGateway;
let client: GatewayClient;

const serve = (port: number): Promise<ServedGateway> => serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port });

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [pay] });
  served = await serve(0);
  client = createGatewayClient({ url: served.url, token: TOKEN });
});
afterAll(async () => {
  await served.close();
  await world.close();
});

/** Compiles as long as the package names each event that the gateway sends, with these fields. */
export const asSent = (event: SentEvent): TurnEvent => event;

const spoken = (events: readonly TurnEvent[]): string => events.map((event) => (event.kind === 'text' ? event.text : '')).join('');

async function all(events: AsyncIterable<TurnEvent>): Promise<TurnEvent[]> {
  const heard: TurnEvent[] = [];
  for await (const event of events) heard.push(event);
  return heard;
}

test('a message and its turn, the same again by the same id, and operations with their types', async () => {
  const id = world.id();
  stage.play(id, text('Hello there.'));
  const message = { id: 'm1', text: say(id, 'hi') };
  const events = await all(client.stream(id, message, { start: { title: 'Greeting' } }));
  expect(spoken(events)).toBe('Hello there.');
  expect(events.at(-1)).toMatchObject({ kind: 'turn-finished', result: { turnId: 'turn_0001', text: 'Hello there.' } });
  expect((await all(client.stream(id, message))).at(-1)).toMatchObject({ result: { turnId: 'turn_0001' } });
  expect(await client.request('get', '/v1/conversations/{id}', { path: { id } })).toMatchObject({ id, title: 'Greeting' });
  expect((await all(client.stream(id, '/new'))).at(-1)).toMatchObject({ kind: 'turn-finished', result: { stopReason: 'reset' } });
});

test('an approval is decided in the stream, and one that begins anew hears it again', async () => {
  const id = world.id();
  stage.play(id, callTool('pay', { to: 'Ada' }), text('Paid.'));
  const message = { id: 'm1', text: say(id, 'pay Ada') };
  for await (const event of client.stream(id, message)) if (event.kind === 'asked') break;
  const heard: TurnEvent[] = [];
  for await (const event of client.stream(id, message)) {
    heard.push(event);
    if (event.kind === 'asked') {
      const body = { callId: event.callId, decision: 'approve' as const };
      await client.request('post', '/v1/conversations/{id}/decide', { path: { id }, body });
    }
  }
  expect(heard.at(-1)).toMatchObject({ result: { text: 'Paid.' } });
  expect(paid).toEqual(['Ada']);
});

test('a gateway that goes away in mid-turn and comes back loses and doubles nothing', async () => {
  const id = world.id();
  const later = gate({ chars: 16 });
  stage.play(id, {
    ...text('The first half, and the second.'),
    chunks: { size: 16, delayMs: 0 },
    hold: later,
  });
  const heard: TurnEvent[] = [];
  const reading = (async () => {
    for await (const event of client.stream(id, say(id, 'tell me'))) heard.push(event);
  })();
  await waitFor(
    () => spoken(heard),
    (words) => words !== '',
  );
  const port = Number(new URL(served.url).port);
  await served.close();
  served = await serve(port);
  later.release();
  await reading;
  expect(spoken(heard)).toBe('The first half, and the second.');
  expect(heard.filter(({ kind }) => kind === 'turn-finished')).toHaveLength(1);
  expect((await world.client.status(id)).turns).toBe(1);
});

test('a gateway that takes a message and fails, again and again, is given up', async () => {
  let tries = 0;
  const problem = { type: 'urn:perdura:unreachable', status: 503, detail: 'Temporal does not answer' };
  const events = (): string => `event: submitted\ndata: {"turn":"turn_0001"}\n\nevent: error\ndata: ${JSON.stringify(problem)}\n\n`;
  const failing: typeof fetch = () => Promise.resolve(new Response(tries++ % 2 === 0 ? events() : ''));
  jest.useFakeTimers();
  try {
    const broken = all(createGatewayClient({ url: served.url, fetch: failing }).stream('x', 'hi'));
    const failed = expect(broken).rejects.toMatchObject({ name: 'GatewayError', kind: 'unreachable' });
    await jest.advanceTimersByTimeAsync(600_000);
    await failed;
  } finally {
    jest.useRealTimers();
  }
  expect(tries).toBe(13);
});

test('what is refused is told in words, at once', async () => {
  const other = createGatewayClient({ url: served.url, token: 'wrong' });
  await expect(other.request('get', '/v1/me')).rejects.toMatchObject({ name: 'GatewayError', status: 401 });
  await expect(all(other.stream('x', 'hi'))).rejects.toMatchObject({ status: 401 });
  await expect(client.request('get', '/v1/conversations/{id}', { path: { id: 'nothing-there' } })).rejects.toMatchObject({
    status: 404,
    kind: 'not-found',
  });
  const stop = new AbortController();
  const id = world.id();
  stage.play(id, { ...text('Never ending.'), holdAfter: { chars: 2, until: new Promise(() => undefined) } });
  const left = (async () => {
    for await (const event of client.stream(id, say(id, 'go'), { signal: stop.signal })) if (event.kind === 'text') stop.abort();
  })();
  await expect(left).rejects.toMatchObject({ name: 'AbortError' });
  await world.client.interrupt(id);
});

test('as it is published it is small, needs nothing else, and runs in plain Node', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-client-'));
  try {
    const out = join(dir, 'node_modules', 'perdura-client');
    await mkdir(out, { recursive: true });
    const { stdout: packed } = await run('npm', ['pack', '--json', '--pack-destination', dir], { cwd: PACKAGE });
    const [made] = JSON.parse(packed.slice(packed.indexOf('['))) as { filename: string; unpackedSize: number }[];
    expect(made?.unpackedSize).toBeLessThan(MAX_BYTES);
    await run('tar', ['-xzf', join(dir, made?.filename ?? ''), '--strip-components=1', '-C', out]);
    expect(Object.keys(JSON.parse(await readFile(join(out, 'package.json'), 'utf8')) as object)).not.toContain('dependencies');
    const program = [
      "import { createGatewayClient } from 'perdura-client';",
      'const [url, token, id, text] = process.argv.slice(2);',
      "for await (const event of createGatewayClient({ url, token }).stream(id, { id: 'm1', text })) if (event.kind === 'text') process.stdout.write(event.text);",
    ].join('\n');
    await writeFile(join(dir, 'program.mjs'), program);
    const id = world.id();
    stage.play(id, text('From plain Node.'));
    const { stdout } = await run(process.execPath, [join(dir, 'program.mjs'), served.url, TOKEN, id, say(id, 'hi')]);
    expect(stdout).toBe('From plain Node.');
    // Its types stand alone too.
    await writeFile(
      join(dir, 'types.ts'),
      "import { createGatewayClient } from 'perdura-client';\nexport const client = createGatewayClient({ url: '' });\n",
    );
    const compilerOptions = {
      ...{ strict: true, noEmit: true, module: 'esnext', moduleResolution: 'bundler', target: 'es2022' },
      ...{ types: [], lib: ['es2023', 'dom', 'dom.iterable'] },
    };
    await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['types.ts'] }));
    await run(process.execPath, [TSC, '-p', dir]);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});
