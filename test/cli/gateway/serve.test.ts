/** `perdura serve` as a person runs it, and the example of docs word for word. */
import { execFile } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { echo } from '../../support/echo-model.js';
import { fencedBlocks, read } from '../../readme/commands.js';
import { beginPerdura, runPerdura, type Running } from '../../support/run-perdura.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const run = promisify(execFile);
let world: World;
let serving: Running;
let url: string;
let link: string;

beforeAll(async () => {
  world = await startWorld({ answer: (request) => echo(request) });
  serving = beginPerdura(world, ['serve', '--port', '0', '-o', 'json']);
  const said = await waitFor(
    () => serving.stdout(),
    (text) => text.includes('\n'),
  );
  ({ url, link } = JSON.parse(said) as { url: string; link: string });
});
afterAll(() => world.close());

test('the token is kept where only its owner reads it', async () => {
  const file = join(world.dir, '.perdura', 'token');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, 'utf8')).toMatch(/^pk_[\w-]{32}\n$/);
});

test('the link lets one browser in, once; `perdura admin token link` prints another', async () => {
  expect(link).toMatch(/#code=/);
  const letIn = async (given: string): Promise<Response> =>
    fetch(`${url}/auth/code`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: url },
      body: JSON.stringify({ code: new URL(given).hash.slice('#code='.length) }),
    });
  const another = (await runPerdura(world, ['admin', 'token', 'link', '--url', url])).stdout.trim();
  const response = await letIn(another);
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  expect(await (await fetch(`${url}/v1/me`, { headers: { cookie } })).json()).toEqual({ name: 'the token of this gateway', role: 'admin' });
  expect((await letIn(another)).status).toBe(401);
});

test('`perdura up` serves the page beside what it has found, and where the port is taken it runs without', async () => {
  const up = beginPerdura(world, ['up', '--no-worker', '--port', '0']);
  const served = await waitFor(
    () => /serving (\S+)/.exec(up.stderr())?.[1],
    (found) => found !== undefined,
  );
  expect((await fetch(`${served}/v1/me`)).status).toBe(401);
  const second = beginPerdura(world, ['up', '--no-worker', '--port', new URL(served ?? '').port]);
  await waitFor(second.stderr, (text) => text.includes('no page: cannot listen on'));
  await waitFor(second.stdout, (text) => text.includes('Server:'));
  for (const one of [second, up]) one.kill('SIGINT');
  expect([(await second.ended).code, (await up.ended).code]).toEqual([0, 0]);
});

test('what runs without a screen keeps the token out of what it says', async () => {
  const token = (await readFile(join(world.dir, '.perdura', 'token'), 'utf8')).trim();
  const other = beginPerdura(world, ['serve', '--port', '0', '--host', '0.0.0.0', '--access-log']);
  await waitFor(
    () => other.stderr(),
    (text) => text.includes('in the clear'),
  );
  other.kill('SIGTERM');
  const { code, stderr } = await other.ended;
  expect(code).toBe(0);
  expect(stderr).not.toContain(token);
  expect(stderr).toMatch(/token {3}kept in .*\.perdura\/token\n/);
  expect(stderr).toMatch(/0\.0\.0\.0 is reached from other machines, in the clear: put a proxy/);
});

test('with PERDURA_AUTH its tokens open as what they are, until they are revoked, and the kept one does not', async () => {
  const env = { PERDURA_AUTH: join(world.dir, 'auth.json') };
  const made = async (args: readonly string[]): Promise<{ token: string; name: string }> =>
    JSON.parse((await runPerdura(world, ['admin', 'token', 'create', ...args, '-o', 'json'], { env })).stdout) as {
      token: string;
      name: string;
    };
  const user = await made(['--scope', 'acme']);
  const other = beginPerdura(world, ['serve', '--port', '0', '-o', 'json'], { env });
  const said = await waitFor(
    () => other.stdout(),
    (text) => text.includes('\n'),
  );
  const at = JSON.parse(said) as { url: string };
  expect(at).toEqual({ url: expect.any(String), auth: env.PERDURA_AUTH });
  const me = async (token: string): Promise<[number, unknown]> => {
    const response = await fetch(`${at.url}/v1/me`, { headers: { authorization: `Bearer ${token}` } });
    return [response.status, await response.json()];
  };
  expect(await me(user.token)).toEqual([200, { name: user.name, role: 'user', tenant: 'acme' }]);
  expect((await me((await readFile(join(world.dir, '.perdura', 'token'), 'utf8')).trim()))[0]).toBe(401);
  // Without a restart.
  const later = await made(['--role', 'operator', '--name', 'later']);
  await waitFor(
    () => me(later.token),
    ([status]) => status === 200,
  );
  await runPerdura(world, ['admin', 'token', 'revoke', user.name], { env });
  await waitFor(
    () => me(user.token),
    ([status]) => status === 401,
  );
  expect((await me(later.token))[0]).toBe(200);
  other.kill('SIGTERM');
  await other.ended;
});

test('a file of PERDURA_AUTH that is not there, or says nonsense, lets no gateway start', async () => {
  const env = { PERDURA_AUTH: join(world.dir, 'none.json') };
  expect(await runPerdura(world, ['serve', '--port', '0'], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('none.json'),
  });
  await writeFile(env.PERDURA_AUTH, '{"tokens": [{"name": "x"}]}');
  expect(await runPerdura(world, ['serve', '--port', '0'], { env })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('tokens[0].hash'),
  });
});

test('the example of docs streams a turn to its end', async () => {
  const block = fencedBlocks(read('docs/how-to/from-a-program.md')).find(({ text }) => text.includes('curl -N'));
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
