/** Many readers of many feeds in one process share one connection to Redis, and miss nothing by it. */
import { Redis } from 'ioredis';
import { lifeKey } from '../../../src/stores/redis/keys.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import type { Store } from '../../../src/stores/store.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { createRandom, LONG } from '../../support/scene.js';
import { waitFor } from '../../support/wait-for.js';
import { aConversation, events, eventsOf, numbered, readCount, readUntil, type Read } from '../builders.js';

let server: RedisServer;
let redis: Redis;
let writer: Store;
let store: Store;
const lines: string[] = [];

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
beforeEach(() => {
  lines.length = 0;
  writer = createRedisStore({ url: server.url });
  store = createRedisStore({ url: server.url, log: (line) => lines.push(line) });
});
afterEach(async () => {
  await Promise.all([writer.close(), store.close()]);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const clients = async (): Promise<string[]> => ((await redis.call('CLIENT', 'LIST', 'TYPE', 'normal')) as string).trim().split('\n');
/** Connections that wait for events, by id. */
const blocked = async (): Promise<string[]> => (await clients()).flatMap((line) => /^id=(\d+) .* flags=b /.exec(line)?.slice(1) ?? []);

test('300 readers of 60 feeds have one connection, which goes when they have', async () => {
  const keys = Array.from({ length: 60 }, () => aConversation());
  const before = (await clients()).length;
  await Promise.all(keys.map((key) => writer.feed.publish(key, events(numbered(1, 2)))));
  const all = Array.from({ length: 300 }, (_, at) => readCount(store.feed, keys[at % 60] ?? aConversation(), '0', 5));
  await waitFor(blocked, (ids) => ids.length > 0);
  for (const key of keys) await writer.feed.publish(key, events(numbered(3, 5)));
  // The store's own, the writer's, and the one that all readers have.
  expect((await clients()).length - before).toBeLessThanOrEqual(3);
  for (const read of await Promise.all(all)) expect(eventsOf(read)).toEqual(numbered(1, 5));
  await waitFor(blocked, (ids) => ids.length === 0);
  expect(lines).toEqual([]);
});

test('a reader that joins while another waits has what comes next', async () => {
  const [quiet, busy] = [aConversation(), aConversation()];
  const waiting = readUntil(store.feed, quiet, '0', () => true);
  await waitFor(blocked, (ids) => ids.length === 1);
  // Of those that wait until Redis has nothing more to say, which is 5 s, twenty take longer than a test may.
  for (let n = 1; n <= 20; n += 1) {
    const reading = readCount(store.feed, busy, '$', 1);
    const speaking = setInterval(() => void writer.feed.publish(busy, [{ event: { n } }]), 5);
    await reading;
    clearInterval(speaking);
  }
  await writer.feed.publish(quiet, [{ event: 1 }]);
  await waiting;
});

test('one feed that is no stream ends its own readers, and no others', async () => {
  const [good, foreign] = [aConversation(), aConversation()];
  const reading = readCount(store.feed, good, '0', 2);
  const broken = readCount(store.feed, foreign, '0', 1);
  broken.catch(() => undefined);
  await waitFor(blocked, (ids) => ids.length === 1);
  await redis.set(lifeKey(foreign, 'feed'), 'a string');
  await writer.feed.publish(good, [{ event: { n: 1 } }]);
  await expect(broken).rejects.toThrow(/cannot read the feed of .*holds something that is not ours/s);
  await writer.feed.publish(good, [{ event: { n: 2 } }]);
  expect(eventsOf(await reading)).toEqual(numbered(1, 2));
});

test('a Redis that takes no writes now wakes nobody, and a reader that joins waits no longer for that', async () => {
  const [first, second] = [aConversation(), aConversation()];
  await writer.feed.publish(second, events(numbered(1, 1)));
  void readUntil(store.feed, first, '0', () => true).catch(() => undefined);
  await waitFor(blocked, (ids) => ids.length === 1);
  const [deaf] = await blocked();
  await redis.config('SET', 'min-replicas-to-write', 1);
  try {
    const reading = readCount(store.feed, second, '0', 2);
    await waitFor(blocked, (ids) => ids.length === 1 && ids[0] !== deaf);
    await redis.config('SET', 'min-replicas-to-write', 0);
    await writer.feed.publish(second, events(numbered(2, 2)));
    expect(eventsOf(await reading)).toEqual(numbered(1, 2));
    expect(lines).toEqual([]);
  } finally {
    await redis.config('SET', 'min-replicas-to-write', 0);
  }
});

test('readers come and go, feeds are lost and connections cut: each sees all of it in order, or a resync in its place', async () => {
  const random = createRandom();
  const keys = Array.from({ length: 8 }, () => aConversation());
  const written = keys.map(() => 0);
  const anyLost = keys.map(() => false);
  const readers: { readonly at: number; readonly seen: Read[]; readonly stop: AbortController; readonly done: Promise<void> }[] = [];
  const pick = (below: number): number => Math.floor(random.next() * below);
  const begin = (at: number, after: string): void => {
    const [seen, stop, key] = [[] as Read[], new AbortController(), keys[at]];
    const slow = random.next() < 0.2;
    if (!key) return;
    const done = (async () => {
      for await (const event of store.feed.read(key, after, stop.signal)) {
        seen.push(event);
        if (slow) await new Promise((resolve) => setTimeout(resolve, pick(4)));
      }
    })();
    readers.push({ at, seen, stop, done });
  };
  for (let at = 0; at < 8; at += 1) begin(at, '0');
  for (let round = 0; round < (LONG ? 20_000 : 400); round += 1) {
    const [at, what] = [pick(8), random.next()];
    const key = keys[at];
    if (!key) continue;
    if (what < 0.7) {
      const count = 1 + pick(what < 0.05 ? 300 : 8);
      const from = (written[at] ?? 0) + 1;
      await writer.feed.publish(key, events(numbered(from, from + count - 1)));
      written[at] = from + count - 1;
    } else if (what < 0.85 && readers.length < (LONG ? 2_000 : 80)) {
      const known = readers.filter((one) => one.at === at && one.seen.length > 0);
      const cursor = known[pick(known.length)]?.seen.at(-1)?.cursor;
      begin(at, random.next() < 0.5 ? '0' : (cursor ?? '0'));
    } else if (what < 0.96) readers[8 + pick(readers.length)]?.stop.abort();
    else if (what < 0.98) for (const client of await blocked()) await redis.call('CLIENT', 'KILL', 'ID', client).catch(() => undefined);
    else if (at < 4) {
      await redis.del(lifeKey(key, 'feed'), lifeKey(key, 'feed-batches'), lifeKey(key, 'feed-ids'));
      anyLost[at] = true;
    }
  }
  for (const [at, key] of keys.entries()) await writer.feed.publish(key, [{ event: { n: (written[at] = (written[at] ?? 0) + 1) } }]);
  const numberOf = ({ event }: Read): number => (event as { n?: number }).n ?? 0;
  for (const { at, seen, stop, done } of readers) {
    if (!stop.signal.aborted)
      await waitFor(
        () => numberOf(seen.at(-1) ?? { cursor: '', event: {} }),
        (n) => n === written[at],
      );
    stop.abort();
    await done;
    let last: number | undefined;
    for (const one of seen) {
      const n = numberOf(one);
      if (n === 0) expect([at, anyLost[at]]).toEqual([at, true]);
      else if (last === undefined || last === 0) expect(n).toBeGreaterThan(0);
      else expect(n).toBe(last + 1);
      last = n;
    }
  }
  await waitFor(blocked, (ids) => ids.length === 0);
});
