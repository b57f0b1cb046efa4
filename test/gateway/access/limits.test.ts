/** Limits: counted together in a real Redis, alone while it is away, and by what is open at once. */
import { createOpenCounter, createLimits, type Limiter } from '../../../src/gateway/access/limits.js';
import { openRedisLink, type RedisLink } from '../../../src/stores/redis/link.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { waitFor } from '../../support/wait-for.js';

let redis: RedisServer;
const links: RedisLink[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await Promise.all(links.map((link) => link.close()));
  await redis.stop();
});

async function gateway(name: string, points: number, url = redis.url): Promise<Limiter> {
  const link = openRedisLink({ url, commandTimeoutMs: 300 });
  links.push(link);
  await link.connect();
  return createLimits({ client: link.redis, prefix: 'perdura:gateway:tests' })(name, points, 60);
}

const isTaken = (limiter: Limiter, key: string): Promise<boolean> =>
  limiter.take(key).then(
    () => true,
    () => false,
  );
const taken = async (limiter: Limiter, key: string, times: number): Promise<number> =>
  (await Promise.all(Array.from({ length: times }, () => isTaken(limiter, key)))).filter(Boolean).length;

test('two gateways count together, and each key alone', async () => {
  const [one, other] = [await gateway('a', 10), await gateway('a', 10)];
  expect((await taken(one, 'ada', 8)) + (await taken(other, 'ada', 8))).toBe(10);
  expect(await taken(one, 'eve', 3)).toBe(3);
  await expect(other.take('ada')).rejects.toMatchObject({ problem: { status: 429, retryAfter: expect.any(Number) } });
  expect(await taken(await gateway('b', 10), 'ada', 3)).toBe(3);
});

test('what it keeps names nobody, and goes by itself', async () => {
  const [link] = links;
  const keys = (await link?.redis.keys('perdura:gateway:*')) ?? [];
  expect(keys.length).toBeGreaterThan(2);
  expect(keys.join()).not.toMatch(/ada|eve/);
  for (const key of keys) expect(await link?.redis.ttl(key)).toBeGreaterThan(0);
});

test('without Redis nobody is kept out, and a gateway counts alone', async () => {
  const away = await gateway('c', 3, 'redis://127.0.0.1:1');
  expect(await taken(away, 'ada', 5)).toBe(3);
});

test('one that dies in between is done without, and counts again when it is back', async () => {
  const own = await startRedis();
  const limiter = await gateway('d', 3, own.url);
  expect(await taken(limiter, 'ada', 2)).toBe(2);
  await own.kill();
  expect(await taken(limiter, 'ada', 5)).toBe(3);
  const again = await startRedis({ port: own.port });
  try {
    // What it counts is in the new one, where another gateway sees it.
    const other = await gateway('d', 3, again.url);
    let round = 0;
    const isShared = async (): Promise<boolean> => {
      const key = `eve-${(round += 1)}`;
      return (await taken(limiter, key, 2)) === 2 && (await taken(other, key, 2)) === 1;
    };
    await waitFor(isShared, Boolean);
  } finally {
    await again.stop();
    await own.stop().catch(() => undefined);
  }
});

test('what is open counts until it is closed, once', () => {
  const counter = createOpenCounter(2);
  const [first] = [counter.open('ada'), counter.open('ada')];
  expect(() => counter.open('ada')).toThrow('2 requests and streams of this token are open');
  counter.open('eve');
  first?.();
  first?.();
  counter.open('ada');
  expect(() => counter.open('ada')).toThrow();
});
