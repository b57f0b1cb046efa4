/** Redis goes away, comes back, and loses replies: nothing is paid twice, nothing is lost, nothing is written twice. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { startCuttingProxy } from '../support/cutting-proxy.js';
import { failureOf } from '../support/outside.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let dir: string;
let redis: RedisServer;
let world: World;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-aof-'));
  redis = await startRedis({ dir, appendonly: true });
  world = await startWorld({ engine: 'temporal', answer: stage.answer, redisUrl: redis.url, files: { 'a.txt': 'content' } });
});
afterAll(async () => {
  await world.close();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});
afterEach(() => expect(world.api.problems).toEqual([]));

async function started(): Promise<string> {
  const id = world.id();
  await world.client.start(id);
  return id;
}

async function restart(): Promise<void> {
  redis = await startRedis({ dir, appendonly: true, port: redis.port });
}

const rolesOf = async (id: string): Promise<string[]> => (await world.client.history(id)).map(({ message }) => message.role);

test('killed while the model speaks, redis costs no second call: the answer arrives, and is written when it is back', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { text: 'This was paid for.', hold });
  const sent = world.client.send(id, say(id, 'hi'));
  await hold.reached;
  await redis.kill();
  hold.release();
  expect(await sent).toMatchObject({ text: 'This was paid for.', stopReason: 'end' });
  await restart();
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ turnId: 'turn_0002', text: 'Understood.' });
  expect(stage.requests(id)).toHaveLength(2);
  expect(JSON.stringify(stage.requests(id)[1]?.messages)).toContain('This was paid for.');
  await waitFor(
    () => rolesOf(id),
    (roles) => roles.length === 4,
  );
  expect(await rolesOf(id)).toEqual(['user', 'assistant', 'user', 'assistant']);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('frozen while the model asks for a tool, redis is waited for: no second call, and the tool runs once it has thawed', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { ...callTool('read_file', { path: 'a.txt' }), holdAfter: hold }, text('Read.'));
  const sent = world.client.send(id, say(id, 'read it'));
  await hold.reached;
  process.kill(redis.pid, 'SIGSTOP');
  hold.release();
  try {
    // The answer has come through without the store, which is owed it before a tool may run.
    const { waitingFor } = await waitFor(
      () => world.client.status(id),
      ({ phase }) => phase === 'waiting-to-retry',
    );
    expect(waitingFor).toMatch(/^(StoreUnavailable|timeout): /);
  } finally {
    // Else nothing that talks to it could be closed.
    process.kill(redis.pid, 'SIGCONT');
  }
  expect(await sent).toMatchObject({ text: 'Read.', toolCalls: 1 });
  expect(stage.requests(id)).toHaveLength(2);
  expect(await rolesOf(id)).toEqual(['user', 'assistant', 'tool', 'assistant']);
});

test('with redis down a message waits, which the status shows, and is answered when it is back', async () => {
  const id = await started();
  await world.client.send(id, say(id, 'before'));
  await redis.kill();
  const sent = world.client.send(id, say(id, 'hi'));
  const { waitingFor } = await waitFor(
    () => world.client.status(id),
    ({ phase }) => phase === 'waiting-to-retry',
  );
  expect(waitingFor).toMatch(/^(StoreUnavailable|timeout): .*trying again at /);
  expect(stage.requests(id)).toHaveLength(1);
  await restart();
  expect(await sent).toMatchObject({ turnId: 'turn_0002', stopReason: 'end' });
  expect(await rolesOf(id)).toEqual(['user', 'assistant', 'user', 'assistant']);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('an answer that only redis still has is waited for, when it is asked for while redis is down', async () => {
  const id = world.id();
  await world.writeAgent('brief', { limits: { handOver: { events: 20 } } });
  await world.client.start(id, { agent: 'brief' });
  stage.play(id, text('The first answer.'));
  for (let n = 1; n <= 6; n++) await world.client.send(id, { id: `m${n}`, text: say(id, `${n}`) });
  expect((await runsOf(world, id)).length).toBeGreaterThan(1);
  await redis.kill();
  const raw = world.temporal.workflow.getHandle(id).executeUpdate('turn', { args: [{ turnId: 'turn_0001' }] });
  expect(await failureOf(raw)).toMatchObject({ type: 'Continues', message: expect.stringContaining('ask again') });
  const asked = [world.client.turn(id, 'turn_0001'), world.client.send(id, { id: 'm1', text: say(id, '1') })];
  await restart();
  const first = { turnId: 'turn_0001', text: 'The first answer.', stopReason: 'end' };
  expect(await Promise.all(asked)).toMatchObject([first, first]);
});

test('an interrupt works while redis is down', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { text: 'Never said.', hold });
  const sent = world.client.send(id, say(id, 'hi'));
  await hold.reached;
  await redis.kill();
  await world.client.interrupt(id);
  expect(await sent).toMatchObject({ stopReason: 'interrupted' });
  await restart();
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ stopReason: 'end' });
});

test('thirty turns over a connection that loses replies write each entry once', async () => {
  const proxy = await startCuttingProxy(redis.port);
  const shaky = await startWorld({
    engine: 'temporal',
    answer: stage.answer,
    redisUrl: `redis://127.0.0.1:${proxy.port}`,
    files: { 'a.txt': 'content' },
  });
  const id = shaky.id();
  await shaky.client.start(id);
  for (let n = 1; n <= 30; n++) {
    // Any command: the first of the turn, or the one that takes part in the middle of it.
    proxy.cutReplyTo(n % 3 === 0 ? `turn_${String(n).padStart(4, '0')}/m1` : '');
    if (n % 5 === 0) stage.play(id, callTool('read_file', { path: 'a.txt' }));
    stage.play(id, text(`Answer ${n}.`));
    expect(await shaky.client.send(id, say(id, `${n}`))).toMatchObject({ text: `Answer ${n}.`, stopReason: 'end' });
  }
  const history = await shaky.client.history(id);
  const tools = 30 / 5;
  expect(history.map(({ slot }) => slot).sort((a, b) => a - b)).toEqual(Array.from({ length: 60 + 2 * tools }, (_, n) => n + 1));
  expect(stage.requests(id)).toHaveLength(30 + tools);
  expect(proxy.cuts()).toBeGreaterThanOrEqual(25);
  expect(shaky.api.problems).toEqual([]);
  expect(await workflowTaskFailures(shaky, id)).toEqual([]);
  await shaky.close();
  await proxy.close();
});
