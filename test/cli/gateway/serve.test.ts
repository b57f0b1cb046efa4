/** `perdura serve` as a person runs it, and README's example of it word for word. */
import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { echo } from '../../support/echo-model.js';
import { fencedBlocks } from '../../readme/commands.js';
import { runPerdura, startPerdura, type Running } from '../../support/run-perdura.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const run = promisify(execFile);
let world: World;
let serving: Running;
let url: string;

beforeAll(async () => {
  world = await startWorld({ answer: (request) => echo(request) });
  serving = startPerdura(world, ['serve', '--port', '0', '-o', 'json']);
  const said = await waitFor(
    () => serving.stdout(),
    (text) => text.includes('\n'),
    30_000,
  );
  ({ url } = JSON.parse(said) as { url: string });
});
afterAll(() => world.close());

test('the token is kept where only its owner reads it', async () => {
  const file = join(world.dir, '.perdura', 'token');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, 'utf8')).toMatch(/^pk_[\w-]{32}\n$/);
});

test("README's example streams a turn to its end", async () => {
  const block = fencedBlocks(await readFile(join(__dirname, '..', '..', '..', 'README.md'), 'utf8')).find(({ text }) =>
    text.includes('curl -N'),
  );
  const command = (block?.text ?? '').slice(block?.text.indexOf('curl') ?? 0).replace('http://127.0.0.1:7280', url);
  const { stdout } = await run('sh', ['-c', command], { cwd: world.dir });
  expect(stdout).toContain('event: submitted');
  expect(stdout).toMatch(/event: turn-finished\ndata: .*"text":"You said: what time is it\?"/);
});

test('ready means that Temporal, the store and a worker answer', async () => {
  const ready = await fetch(`${url}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([200, { status: 'ready', temporal: true, store: true, worker: true }]);
});

test('a port that is taken is said, with what to do', async () => {
  const port = new URL(url).port;
  const { code, stderr } = await runPerdura(world, ['serve', '--port', port]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(new RegExp(`cannot listen on 127.0.0.1:${port}: .*--port names another`))]);
});

test('asked to end, it ends its streams and itself', async () => {
  const token = (await readFile(join(world.dir, '.perdura', 'token'), 'utf8')).trim();
  const headers = { authorization: `Bearer ${token}` };
  const id = world.id();
  await world.client.start(id);
  const stream = await fetch(`${url}/v1/conversations/${id}/events`, { headers });
  expect(stream.status).toBe(200);
  serving.kill('SIGTERM');
  await stream.text();
  expect(await serving.ended).toMatchObject({ code: 0 });
});
