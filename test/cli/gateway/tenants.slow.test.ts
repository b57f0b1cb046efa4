/** Tenants as an installation has them: `perdura serve` with tokens of its own, and the operator's commands beside it. */
import { join } from 'node:path';
import { echo } from '../../support/echo-model.js';
import { beginPerdura, runPerdura, type Ran, type Running } from '../../support/run-perdura.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

let world: World;
let serving: Running;
let url: string;
let env: Record<string, string>;
const tokens: Record<string, string> = {};

const perdura = (args: readonly string[]): Promise<Ran> => runPerdura(world, args, { env });

beforeAll(async () => {
  world = await startWorld({ answer: (request) => echo(request) });
  env = { PERDURA_AUTH: join(world.dir, 'auth.json') };
  for (const [name, args] of [
    ['acme', ['--tenant', 'acme', '--role', 'user']],
    ['globex', ['--tenant', 'globex', '--role', 'admin']],
    ['operator', ['--role', 'operator']],
    ['user', ['--role', 'user', '--name', 'of-nobody']],
  ] as const) {
    tokens[name] = (JSON.parse((await perdura(['admin', 'token', 'create', ...args, '-o', 'json'])).stdout) as { token: string }).token;
  }
  serving = beginPerdura(world, ['serve', '--port', '0', '-o', 'json'], { env });
  const said = await waitFor(
    () => serving.stdout(),
    (text) => text.includes('\n'),
  );
  ({ url } = JSON.parse(said) as { url: string });
});
afterAll(async () => {
  serving.kill('SIGTERM');
  await serving.ended;
  await world.close();
});

interface Asked {
  readonly status: number;
  readonly json: Record<string, unknown>;
}

async function ask(who: string, method: string, path: string, body?: object): Promise<Asked> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${tokens[who]}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const said = await response.text();
  expect(said).not.toMatch(who === 'operator' && !path.includes('tenant=') ? /^$/ : /t-[0-9a-f]{12}-/);
  return { status: response.status, json: (said === '' ? {} : JSON.parse(said)) as Record<string, unknown> };
}

const listedBy = (who: string, query = ''): Promise<string[]> =>
  ask(who, 'GET', `/v1/conversations${query}`).then(({ json }) => (json['conversations'] as { id: string }[]).map(({ id }) => id));

test('a token of a tenant starts, sends, reads and lists; to another’s it is not there', async () => {
  expect(await ask('acme', 'POST', '/v1/conversations', { id: 'plan' })).toEqual({ status: 201, json: { id: 'plan', attached: false } });
  expect(await ask('acme', 'POST', '/v1/conversations/plan/messages', { text: 'hello' })).toMatchObject({
    status: 200,
    json: { text: 'You said: hello' },
  });
  expect(await ask('acme', 'GET', '/v1/conversations/plan')).toMatchObject({ status: 200, json: { id: 'plan', scope: 'default' } });
  expect(JSON.stringify((await ask('acme', 'GET', '/v1/conversations/plan/entries')).json)).toContain('You said: hello');
  await waitFor(
    () => listedBy('acme'),
    (ids) => ids.includes('plan'),
  );
  for (const who of ['globex', 'user']) {
    expect(await ask(who, 'GET', '/v1/conversations/plan')).toMatchObject({ status: 404 });
    // The server has others of no tenant; that there is none of a tenant among them, `ask` looks.
    if (who === 'globex') expect(await listedBy(who)).toEqual([]);
    else await listedBy(who);
  }
});

test('what `perdura new --tenant` begins is the tenant’s in the gateway, and what the gateway begins is TENANT/ID in the commands', async () => {
  expect(await perdura(['new', '--tenant', 'acme', '--id', 'begun', '--title', 'By hand'])).toMatchObject({
    code: 0,
    stdout: 'acme/begun\n',
  });
  expect(await ask('acme', 'POST', '/v1/conversations/begun/messages', { text: 'from outside' })).toMatchObject({
    json: { text: 'You said: from outside' },
  });
  expect((await ask('globex', 'GET', '/v1/conversations/begun')).status).toBe(404);
  expect((await perdura(['send', 'acme/begun', 'from inside'])).stdout).toContain('You said: from inside');
  const shown = await perdura(['show', 'acme/plan']);
  expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining('You said: hello')]);
  expect((await perdura(['show', 'globex/plan'])).stderr).toContain('cannot find conversation globex/plan');
  const forked = await perdura(['fork', 'acme/plan', '--at', '1', '--id', 'forked']);
  expect(forked).toMatchObject({ code: 0 });
  expect((await ask('acme', 'GET', '/v1/conversations/forked/entries')).json).toMatchObject({ entries: expect.any(Array) });
  const listed = await waitFor(
    () => perdura(['list', '--tenant', 'acme']),
    ({ stdout }) => stdout.includes('acme/begun') && stdout.includes('acme/plan') && stdout.includes('acme/forked'),
  );
  expect(listed.code).toBe(0);
});

test('a name of a tenant that is none, or without the key, is refused in words', async () => {
  expect(await perdura(['show', 'Acme/plan'])).toMatchObject({ code: 2, stderr: expect.stringContaining('"Acme" is no tenant') });
  expect(await perdura(['show', 'acme/../x'])).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be a conversation') });
  const elsewhere = await runPerdura({ dir: join(world.dir, 'workspace'), taskQueue: world.taskQueue }, ['show', 'acme/plan']);
  expect(elsewhere).toMatchObject({ code: 2, stderr: expect.stringContaining('set PERDURA_SECRET') });
});

test('an operator of no tenant asks for one with ?tenant=, and nobody else may', async () => {
  expect(await ask('operator', 'POST', '/v1/conversations?tenant=acme', { id: 'given' })).toMatchObject({
    status: 201,
    json: { id: 'given' },
  });
  expect((await ask('acme', 'GET', '/v1/conversations/given')).status).toBe(200);
  expect((await ask('operator', 'GET', '/v1/conversations/plan/entries?tenant=acme')).status).toBe(200);
  expect((await ask('operator', 'GET', '/v1/conversations/plan/entries?tenant=globex')).status).toBe(404);
  await waitFor(
    () => listedBy('operator', '?tenant=acme'),
    (ids) => ids.includes('given') && ids.includes('plan'),
  );
  expect((await listedBy('operator', '?limit=500')).some((id) => id.startsWith('t-'))).toBe(true);
  expect((await ask('operator', 'GET', '/v1/me?tenant=acme')).json).toMatchObject({ role: 'operator', tenant: 'acme' });
  expect((await ask('operator', 'GET', '/metrics?tenant=acme')).status).toBe(404);
  expect((await ask('acme', 'GET', '/v1/me?tenant=acme')).status).toBe(200);
  for (const named of ['acme', 'nobody']) {
    const refused = await ask('globex', 'GET', `/v1/conversations?tenant=${named}`);
    expect([refused.status, refused.json['detail']]).toEqual([403, 'tenant: it is named by an operator of no tenant alone']);
    expect((await ask('user', 'GET', `/v1/conversations?tenant=${named}`)).status).toBe(403);
  }
  expect((await ask('operator', 'GET', '/v1/conversations?tenant=Acme')).status).toBe(400);
  expect((await ask('operator', 'GET', '/v1/conversations?tenant=acme&tenant=globex')).status).toBe(400);
});
