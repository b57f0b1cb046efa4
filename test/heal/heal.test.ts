/** A store that has lost everything, or single records, is made whole again from Temporal's history; what else may be lost is in the slow files. */
import { Redis } from 'ioredis';
import { callTools, gate, text } from '../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

let server: RedisServer;
let redis: Redis;
let world: World;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
  const agent = { limits: { handOver: { events: 40 } } };
  world = await startWorld({ redisUrl: server.url, agent, files: { 'README.md': 'the content of the file' } });
});
afterAll(async () => {
  await world?.close();
  redis.disconnect();
  await server.stop();
});

const long = 'a long text, '.repeat(2_000);

/** A life with something of everything, over several runs. */
async function live(id: string): Promise<void> {
  const { client, api } = world;
  api.play(
    { reply: text('first answer') },
    {
      reply: callTools(
        { name: 'read_file', input: { path: 'README.md' } },
        { name: 'get_time', input: {} },
        { name: 'nothing_here', input: {} },
      ),
    },
    { reply: { text: ['two', 'blocks'] } },
  );
  await client.send(id, { id: 'm1', text: 'first' }, { start: {} });
  await client.send(id, 'second, with tools');
  const hold = gate();
  api.play({ reply: { text: ['complete block', 'never finished'], hold: hold } });
  const stopped = client.send(id, 'stop this one');
  await hold.reached;
  await client.interrupt(id);
  await stopped;
  hold.release();
  api.play({ reply: text('short') }, { reply: text('x'.repeat(300)) });
  await client.send(id, `a very long message: ${long}`);
  await client.message(id, 'by signal, without an id');
  await client.send(id, { id: 'm1', text: 'the same id again' });
  await waitFor(
    () => client.status(id),
    ({ phase, queued }) => phase === 'idle' && queued === 0,
  );
}

async function keysOf(id: string, what: string): Promise<string[]> {
  return (await redis.keys(`*${id}*`)).filter((key) => key.endsWith(`:${what}`));
}

test('a store that was flushed is noticed at the next turn and rebuilt from history, byte for byte', async () => {
  const id = world.id();
  await live(id);
  const before = await world.client.history(id);
  expect(before.length).toBeGreaterThan(10);
  await redis.flushall();
  expect(await world.client.history(id)).toEqual([]);
  world.api.play({ reply: text('and on it goes') });
  expect(await world.client.send(id, 'are you still there?')).toMatchObject({ text: 'and on it goes', stopReason: 'end' });
  const after = await world.client.history(id);
  expect(after.slice(0, before.length)).toEqual(before);
  expect(JSON.stringify(world.api.hits.at(-1)?.body?.messages)).toContain('first answer');
  expect(world.api.problems).toEqual([]);
});

test('single lost records come back, and the message ids with them', async () => {
  const id = world.id();
  await live(id);
  const before = await world.client.history(id);
  const [entries] = await keysOf(id, 'entries');
  const [messages] = await keysOf(id, 'messages');
  await redis.hdel(entries!, ...(await redis.hkeys(entries!)).filter((_, i) => i % 2 === 0));
  await redis.del(messages!);
  world.api.play({ reply: text('fine') });
  await world.client.send(id, 'go on');
  expect((await world.client.history(id)).slice(0, before.length)).toEqual(before);
  expect(await redis.hget(messages!, 'm1')).not.toBeNull();
});
