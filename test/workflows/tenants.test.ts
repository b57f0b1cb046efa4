/** Tenants below the gateway: what is a tenant's is no other's, whatever the names. */
import { access, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StartOptions } from '../../src/conversation/protocol/contract.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';
import { waitFor } from '../support/wait-for.js';

const stage = createStage();
let world: World;

beforeAll(async () => {
  const allowed = [{ tool: 'write_file', policy: 'allow' }];
  world = await startWorld({ answer: stage.answer, agent: { approvals: allowed }, files: { 'plan.txt': 'of the operator' } });
  await world.writeAgent('house', { tenants: ['acme'], approvals: allowed, delegation: { agents: ['vault', 'default'] } });
  await world.writeAgent('vault', { tenants: ['globex'] });
});
afterAll(() => world.close());

const ask = (id: string, words: string, start: StartOptions): ReturnType<World['client']['send']> =>
  world.client.send(id, say(id, words), { start });

test('a tenant has a workspace of its own', async () => {
  const [acme, globex, none] = [world.id(), world.id(), world.id()];
  for (const [id, tenant] of [
    [acme, 'acme'],
    [globex, 'globex'],
    [none, undefined],
  ] as const) {
    stage.play(
      id,
      callTool('write_file', { path: 'note.txt', content: `of ${tenant}` }),
      callTool('list_files', { path: '.' }),
      text('Done.'),
    );
    await ask(id, 'write it down', tenant === undefined ? {} : { tenant });
  }
  const read = (...path: string[]): Promise<string> => readFile(join(world.dir, 'workspace', ...path), 'utf8');
  expect(await read('acme', 'note.txt')).toBe('of acme');
  expect(await read('globex', 'note.txt')).toBe('of globex');
  expect(await read('note.txt')).toBe('of undefined');
  const seen = JSON.stringify(await world.client.history(acme));
  expect(seen).toContain('note.txt');
  expect(seen).not.toContain('plan.txt');
  expect(seen).not.toContain('globex');
});

test.each(['../plan.txt', '../globex/note.txt', '../../agents/default/agent.json'])('%s leads out of it, and is refused', async (path) => {
  const id = world.id();
  await mkdir(join(world.dir, 'workspace', 'globex'), { recursive: true });
  await writeFile(join(world.dir, 'workspace', 'globex', 'note.txt'), 'of globex');
  stage.play(id, callTool('read_file', { path }), text('No.'));
  await ask(id, 'look there', { tenant: 'acme' });
  const [result] = (await world.client.history(id)).flatMap(({ message }) => (message.role === 'tool' ? [message] : []));
  expect(result?.outcome).toBe('error');
  expect(JSON.stringify(result)).not.toContain('of globex');
});

test('a link in place of a tenant’s workspace is not followed', async () => {
  const id = world.id();
  await symlink(join(world.dir, 'agents'), join(world.dir, 'workspace', 'linked'));
  stage.play(id, callTool('list_files', { path: '.' }), text('Done.'));
  const result = await ask(id, 'look', { tenant: 'linked' });
  expect(result).toMatchObject({ stopReason: 'failed', error: { message: expect.stringContaining('is a link') as string } });
});

test('an agent of another tenant is no agent, for sub-agents too, and the worker says so', async () => {
  const [own, other, none, none2] = [world.id(), world.id(), world.id(), world.id()];
  stage.play(own, text('At your service.'));
  expect(await ask(own, 'hello', { agent: 'house', tenant: 'acme' })).toMatchObject({ text: 'At your service.' });
  const refused = await ask(other, 'hello', { agent: 'house', tenant: 'globex' });
  const unknown = await ask(none, 'hello', { agent: 'no-such', tenant: 'globex' });
  expect(refused.error).toMatchObject({ type: 'unknown-agent' });
  expect(refused.error?.message.replace('house', 'X')).toBe(unknown.error?.message.replace('no-such', 'X'));
  expect(unknown.error?.message).not.toContain('vault');
  stage.play(none2, text('Yes.'));
  expect(await ask(none2, 'hello', { agent: 'house' })).toMatchObject({ text: 'Yes.' });

  const parent = world.id();
  stage.play(parent, callTool('delegate', { agent: 'vault', task: 'open', title: 'open' }), text('It did not work.'));
  await ask(parent, 'have it opened', { agent: 'house', tenant: 'acme' });
  const [result] = (await world.client.history(parent)).flatMap(({ message }) => (message.role === 'tool' ? [message] : []));
  expect(JSON.stringify(result)).toContain('acme has no agent vault');
});

test('memory of one scope name is three', async () => {
  const [a, b, c] = [world.id(), world.id(), world.id()];
  for (const [id, start] of [
    [a, { tenant: 'acme' }],
    [b, { tenant: 'globex' }],
    [c, {}],
  ] as const) {
    stage.play(id, text('Noted.'));
    await ask(id, 'the word is swordfish', { ...start, scope: 'shared' });
  }
  const key = await world.client.key(a);
  expect(key.scope).toBe('acme.shared');
  await world.store.facts.add(key, 'batch', [{ ts: 1, fact: 'The word is swordfish.', tags: [], confidence: 1, salience: 1 }], {
    conversation: a,
    turn_ids: ['turn_0001'],
  });
  expect((await world.client.memory(a)).facts).toHaveLength(1);
  expect((await world.client.memory(b)).facts).toHaveLength(0);
  expect((await world.client.memory(c)).facts).toHaveLength(0);
  const forgotten = await world.client.scope('acme.shared').forget('The word is swordfish.');
  expect(forgotten.facts).toHaveLength(1);
  await expect(world.temporal.workflow.getHandle('memory:acme.shared').describe()).resolves.toMatchObject({ status: { name: 'RUNNING' } });
  await expect(world.temporal.workflow.getHandle('memory:shared').describe()).rejects.toThrow(/not found/i);
  expect(() => world.client.scope('acme..shared')).toThrow(/cannot be a memory's scope/);
});

test('what comes of a conversation is its tenant’s: sub-agent, fork, resumed life', async () => {
  const [id, fork, helper] = [world.id(), world.id(), world.id()];
  stage.play(id, callTool('delegate', { task: say(helper, 'help'), title: 'help' }), text('Done.'));
  stage.play(helper, text('Helped.'));
  await ask(id, 'do it', { tenant: 'acme', scope: 'shared', publicId: 'my-chat' });
  const child = await world.client.describe(`${id}:turn_0001:1`);
  expect(child).toMatchObject({ tenant: 'acme', scope: 'acme.shared', publicId: null });
  expect(await world.client.describe(id)).toMatchObject({ tenant: 'acme', scope: 'acme.shared', publicId: 'my-chat' });
  expect(await world.client.status(id)).toMatchObject({ tenant: 'acme', scope: 'acme.shared' });

  await world.client.fork(id, { at: 'turn_0001', id: fork });
  expect(await world.client.describe(fork)).toMatchObject({ tenant: 'acme', scope: 'acme.shared', publicId: null });
  await expect(world.client.fork(id, { at: 'turn_0001', id: world.id(), tenant: 'globex' })).rejects.toMatchObject({ kind: 'not-found' });
  await world.client.closeConversation(id, { memory: false });
  await world.client.outcome(id);
  await world.client.resume(id);
  expect(await world.client.describe(id)).toMatchObject({ tenant: 'acme', scope: 'acme.shared', publicId: 'my-chat' });

  const listed = await waitFor(
    () => world.client.list({ tenant: 'acme', query: `TaskQueue = '${world.taskQueue}'`, limit: 500 }),
    (rows) => rows.some((row) => row.id === fork),
  );
  expect(listed.every(({ tenant }) => tenant === 'acme')).toBe(true);
  expect(listed.find((row) => row.id === id)).toMatchObject({ publicId: 'my-chat' });
});

test('a hand-over keeps whose it is', async () => {
  const id = world.id();
  await world.writeAgent('brief', { limits: { handOver: { events: 20 } } });
  stage.play(id, ...['one', 'two', 'three', 'four', 'five', 'six'].map((word) => text(word)));
  for (const word of ['1', '2', '3', '4', '5', '6']) await ask(id, word, { agent: 'brief', tenant: 'acme' });
  const { life, runId, scope, tenant } = await world.client.describe(id);
  expect(runId).not.toBe(life);
  expect({ scope, tenant }).toEqual({ scope: 'acme.brief', tenant: 'acme' });
  expect(await world.client.status(id)).toMatchObject({ scope: 'acme.brief', tenant: 'acme', turns: 6 });
});

test('what was spent is summed by tenant', async () => {
  const { sums } = await world.client.usage({ by: 'tenant' });
  expect(sums.map(({ of }) => of).sort()).toEqual(expect.arrayContaining(['(none)', 'acme', 'globex']));
  const acme = sums.find(({ of }) => of === 'acme');
  expect((await world.client.usage({ tenant: 'acme' })).total).toMatchObject({ calls: acme?.calls });
});

test('a tenant’s conversation is deleted as any other, and its memory is named', async () => {
  const id = world.id();
  stage.play(id, text('Hello.'));
  await ask(id, 'hello', { tenant: 'acme' });
  await world.client.closeConversation(id, { memory: false });
  await world.client.outcome(id);
  expect(await world.client.deleteConversation(id)).toMatchObject({ scopes: ['acme.default'] });
  await expect(access(join(world.dir, 'memory', 'agents', 'acme.default', 'conversations', id))).rejects.toThrow();
});
