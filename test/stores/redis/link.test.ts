import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { openRedisLink } from '../../../src/stores/redis/link.js';
import { startRedis } from '../../support/redis-server.js';

test('what is asked in one piece of work goes to Redis in one packet, in its order', async () => {
  const server = await startRedis();
  const packets: string[] = [];
  const between = createServer((client) => {
    const redis = connect(Number(new URL(server.url).port), '127.0.0.1');
    client.on('data', (packet) => packets.push(packet.toString()));
    client.pipe(redis).pipe(client);
    redis.on('error', () => client.destroy());
    client.on('error', () => redis.destroy());
  }).listen(0, '127.0.0.1');
  await once(between, 'listening');
  const link = openRedisLink({ url: `redis://127.0.0.1:${(between.address() as AddressInfo).port}`, commandTimeoutMs: 30_000 });
  try {
    await link.ask('begin', (redis) => redis.ping());
    packets.length = 0;
    const asked = ['1', '2', '3'].map((value) => link.ask('append', (redis) => redis.append('all', value)));
    expect(await Promise.all(asked)).toEqual([1, 2, 3]);
    expect(packets).toHaveLength(1);
    // Whoever waits in between waits for the answer.
    await link.ask('read', (redis) => redis.get('all'));
    expect(await link.ask('read', (redis) => redis.get('all'))).toBe('123');
    expect(packets).toHaveLength(3);
  } finally {
    await link.close();
    between.close();
    await server.stop();
  }
});
