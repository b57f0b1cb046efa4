/** A person allows what was shown. Whoever changes the arguments in the store between showing and running changes nothing that runs. */
import { Redis } from 'ioredis';
import { z } from 'zod';
import { createClientWith } from '../../src/client.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const ran: unknown[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ to: z.string(), euros: z.number() }),
  policy: { approval: 'ask' },
  run: (input) => {
    ran.push(input);
    return 'paid';
  },
});

const stage = createStage();
let server: RedisServer;
let redis: Redis;
let world: World;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  world = await startWorld({ answer: stage.answer, redisUrl: server.url, tools: [pay], worker: false });
});
afterAll(async () => {
  await world.close();
  redis.disconnect();
  await server.stop();
});

async function changeInStore(from: string, to: string): Promise<void> {
  const [key = ''] = await redis.keys('*:entries');
  const changed = Object.entries(await redis.hgetall(key)).filter(([, entry]) => entry.includes(from));
  expect(changed).toHaveLength(1);
  for (const [field, entry] of changed) await redis.hset(key, field, entry.replaceAll(from, to));
}

test('arguments that are changed in the store are shown as changed, and never run', async () => {
  const id = world.id();
  stage.play(id, callTool('pay', { to: 'Ada of the shore', euros: 7 }), text('I see.'));
  const stopWorker = await world.startWorker();
  const sent = world.client.send(id, say(id, 'go'), { start: {} });
  const [one] = await waitFor(
    () => world.client.approvals(id).catch(() => []),
    ({ length }) => length === 1,
  );
  expect(one).toMatchObject({ hash: expect.stringMatching(/^[0-9a-f]{64}$/), arguments: { to: 'Ada of the shore', euros: 7 } });

  await changeInStore('Ada of the shore', 'Eve of the storm');
  // What they have read of the store, the worker and the client remember: others come in their place.
  await stopWorker();
  const another = await world.startWorker();
  const { temporal, taskQueue } = world;
  const client = createClientWith({
    client: temporal,
    namespace: 'default',
    taskQueue,
    store: () => createRedisStore({ url: server.url }),
  });
  const [shown] = await client.approvals(id);
  expect(shown).toMatchObject({ hash: one?.hash, altered: true });
  expect(shown?.arguments).toBeUndefined();

  await client.decide(id, { callId: 'turn_0001/c1', decision: 'approve', hash: one!.hash });
  await sent;
  expect(ran).toEqual([]);
  expect(resultTexts(stage.requests(id).at(-1))).toEqual([expect.stringContaining('not those of the call')]);
  await client.close();
  await another();
});
