/** Tools that a message brings, through the client and a real worker: hand-overs, answers made anew, a store that loses everything. */
import { type Redis as RedisClient, Redis } from 'ioredis';
import type { Pending } from '../../src/client.js';
import { callTool, callTools, text } from '../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { expectReplays } from '../support/replays.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;
let redis: RedisServer;
let store: RedisClient;

const tools = [
  { name: 'look', description: 'Looks.', inputSchema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] } },
];

beforeAll(async () => {
  redis = await startRedis();
  store = new Redis(redis.url);
  world = await startWorld({
    answer: stage.answer,
    redisUrl: redis.url,
    tools: [],
    agent: {
      limits: { handOver: { events: 20 } },
      memory: { memoryWindow: 1_000 },
      approvals: [{ tool: 'client__look', policy: 'allow' }],
    },
  });
});
afterAll(async () => {
  await world.close();
  await store.quit();
  await redis.stop();
});
afterEach(() => expect(world.api.problems).toEqual([]));

const asked = async (id: string, count = 1): Promise<Pending[]> =>
  waitFor(
    () => world.client.approvals(id),
    (waiting) => waiting.length === count,
  );
const offered = (id: string): unknown[] => (stage.requests(id).at(-1)?.tools ?? []).map(({ name }) => name);
const answer = (id: string, callId: string, output: unknown): Promise<unknown> =>
  world.client.decide(id, { callId, decision: 'approve', output: output as string }, { awaited: true });

test('calls of several rounds, each answered once, over hand-overs in the middle; the next turn has no tools', async () => {
  const id = (await world.client.start(world.id())).id;
  const rounds = 6;
  stage.play(id, ...Array.from({ length: rounds }, (_, i) => callTools({ name: 'client__look', input: { at: `${i}` } })));
  stage.play(id, (request) => text(`saw ${resultTexts(request).join()}`), text('Nothing to look with.'));
  const sent = world.client.send(id, { text: say(id, 'look'), tools });
  for (let i = 1; i <= rounds; i++) {
    const [one] = await asked(id);
    expect(one).toMatchObject({ kind: 'client-tool', tool: 'client__look', callId: `turn_0001/c${i}`, arguments: { at: `${i - 1}` } });
    expect(offered(id)).toEqual(['client__look']);
    // More events than a run may have: it hands over while the call waits.
    for (let n = 0; n < 4; n++) await world.client.setModel(id, null);
    await answer(id, `turn_0001/c${i}`, { seen: 'x'.repeat(6_000), round: i });
    await expect(answer(id, `turn_0001/c${i}`, 'again')).rejects.toMatchObject({ kind: 'not-waiting' });
  }
  expect(await sent).toMatchObject({ stopReason: 'end', text: expect.stringContaining('"round":6') as string });
  await world.client.send(id, say(id, 'and now?'));
  expect(offered(id)).not.toContain('client__look');
  expect(await workflowTaskFailures(world, id)).toEqual([]);
  await expectReplays(world);
});

test('a turn that is answered anew offers the tools of its message again, and one that is rewound while it waits goes', async () => {
  const id = (await world.client.start(world.id())).id;
  stage.play(id, callTool('client__look', { at: 'a' }), text('one'), callTool('client__look', { at: 'b' }), text('two'));
  const first = world.client.send(id, { text: say(id, 'look'), tools });
  await asked(id);
  await answer(id, 'turn_0001/c1', 'seen');
  await first;
  const again = world.client.retry(id);
  expect(await asked(id)).toMatchObject([{ callId: 'turn_0002/c1' }]);
  expect(offered(id)).toEqual(['client__look']);
  await answer(id, 'turn_0002/c1', 'seen');
  expect(await again).toMatchObject({ text: 'two' });
  stage.play(id, callTool('client__look', { at: 'c' }));
  const third = world.client.send(id, { text: say(id, 'look again'), tools });
  await asked(id);
  await world.client.rewind(id, 'turn_0002');
  expect(await third).toMatchObject({ stopReason: 'interrupted' });
  expect(await world.client.approvals(id)).toEqual([]);
  await expect(answer(id, 'turn_0003/c1', 'late')).rejects.toMatchObject({ kind: 'not-waiting' });
});

test('a fork from a turn with such calls goes on without their client', async () => {
  const id = (await world.client.start(world.id())).id;
  stage.play(id, callTool('client__look', { at: 'a' }), text('one'));
  const first = world.client.send(id, { text: say(id, 'look'), tools });
  await asked(id);
  await answer(id, 'turn_0001/c1', 'seen');
  await first;
  const fork = world.id();
  await world.client.fork(id, { id: fork, at: 'turn_0001' });
  stage.play(id, callTool('client__look', { at: 'b' }), text('done'));
  const sent = world.client.send(fork, { text: 'once more', tools });
  expect(await asked(fork)).toMatchObject([{ callId: 'turn_0002/c1' }]);
  await answer(fork, 'turn_0002/c1', 'seen');
  expect(await sent).toMatchObject({ text: 'done' });
});

test('a store that loses everything while the client is waited for has message, tools and answer again', async () => {
  const id = (await world.client.start(world.id())).id;
  stage.play(id, callTool('client__look', { at: 'a' }), callTool('client__look', { at: 'b' }), (request) =>
    text(`saw ${resultTexts(request).join()}`),
  );
  const sent = world.client.send(id, { text: say(id, 'look'), tools });
  await asked(id);
  const before = await world.client.history(id);
  await store.flushall();
  await answer(id, 'turn_0001/c1', 'seen a');
  expect(await asked(id)).toMatchObject([{ callId: 'turn_0001/c2' }]);
  expect(offered(id)).toEqual(['client__look']);
  await answer(id, 'turn_0001/c2', 'seen b');
  expect(await sent).toMatchObject({ text: 'saw seen b' });
  expect((await world.client.history(id)).slice(0, before.length)).toEqual(before);
});

test('a model that cannot be held to a call is not asked: the turn says why', async () => {
  await world.writeAgent('texty', { textTools: 'xml' });
  const { id } = await world.client.start(world.id(), { agent: 'texty' });
  const [tool] = tools;
  const result = await world.client.send(id, { text: say(id, 'look'), tools: [{ ...(tool as object), mustCall: true } as never] });
  expect(result).toMatchObject({ stopReason: 'failed', error: { message: expect.stringContaining('cannot hold') as string } });
  expect(stage.requests(id)).toHaveLength(0);
});

test('arguments that do not fit are the model’s to correct, and the client is not asked', async () => {
  const id = (await world.client.start(world.id())).id;
  stage.play(id, callTool('client__look', { at: 7 }), (request) => text(resultTexts(request).join()));
  const sent = await world.client.send(id, { text: say(id, 'look'), tools });
  expect(sent.text).toMatch(/the arguments do not fit the tool's schema: \/at must be string/);
});
