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

beforeAll(async () => {
  world = await startWorld({ answer: (request) => echo(request) });
  [serving, url] = await serve();
});
afterAll(() => world.close());

/** Where its output goes into a log. */
async function serve(): Promise<[Running, string]> {
  const begun = beginPerdura(world, ['serve', '--port', '0', '-o', 'json']);
  const said = await waitFor(
    () => begun.stdout(),
    (text) => text.includes('\n'),
  );
  const { url: at, ...rest } = JSON.parse(said) as { url: string };
  expect(rest).toEqual({ token: expect.stringMatching(/\.perdura\/token$/), linkCommand: `perdura admin token link --url ${at}` });
  return [begun, at];
}

test('the token is kept where only its owner reads it', async () => {
  const file = join(world.dir, '.perdura', 'token');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, 'utf8')).toMatch(/^pk_[\w-]{32}\n$/);
});

const letIn = async (link: string, at = url): Promise<Response> =>
  fetch(`${at}/auth/code`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: at },
    body: JSON.stringify({ code: new URL(link).hash.slice('#code='.length) }),
  });

test('a link lets one browser in, once, and a browser that has signed out stays out: also after a start, and in another gateway of the folder', async () => {
  const link = async (): Promise<string> => (await runPerdura(world, ['admin', 'token', 'link', '--url', url])).stdout.trim();
  // Where it is, the folder knows.
  const first = (await runPerdura(world, ['admin', 'token', 'link'])).stdout.trim();
  expect(first).toMatch(`${url}/#code=`);
  const response = await letIn(first);
  const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const me = async (at = url): Promise<number> => (await fetch(`${at}/v1/me`, { headers: { cookie } })).status;
  expect(await (await fetch(`${url}/v1/me`, { headers: { cookie } })).json()).toEqual({ name: 'the token of this gateway', role: 'admin' });
  const [other, at] = await serve();
  expect([(await letIn(first)).status, (await letIn(first, at)).status, await me(at)]).toEqual([401, 401, 200]);
  expect((await fetch(`${at}/auth/logout`, { method: 'POST', headers: { cookie, origin: at } })).status).toBe(204);
  expect([await me(), await me(at)]).toEqual([401, 401]);
  other.kill('SIGTERM');
  await other.ended;
  const raced = await link();
  const [again, here] = await serve();
  expect([(await letIn(first, here)).status, await me(here)]).toEqual([401, 401]);
  const both = await Promise.all([letIn(raced), letIn(raced, here)]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 401]);
  again.kill('SIGTERM');
  await again.ended;
});

test('a link is shown on a screen alone: the terminal has it, and what goes into a log says which command prints one', async () => {
  const commands = [
    ['serve', '--port', '0'],
    ['up', '--no-worker', '--port', '0'],
  ];
  for (const command of commands) {
    const shown = beginPerdura(world, command, { isTerminal: true });
    const link = await waitFor(
      () => /http\S+#code=[\w-]+/.exec(shown.stderr())?.[0],
      (found) => found !== undefined,
    );
    expect((await letIn(link ?? '', new URL(link ?? '').origin)).status).toBe(200);
    const logged = beginPerdura(world, command);
    await waitFor(logged.stderr, (text) => /`perdura admin token link --url \S+` prints a link that lets one browser in/.test(text));
    for (const one of [shown, logged]) one.kill('SIGTERM');
    await shown.ended;
    const { stdout, stderr } = await logged.ended;
    expect(stdout + stderr).not.toContain('#code=');
  }
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
