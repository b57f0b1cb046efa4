/** The store contract on real clusters: of six processes, and behind Sentinels; and by which slots its commands touch. */
import { setTimeout as delay } from 'node:timers/promises';
import { createLimits } from '../../../src/gateway/access/limits.js';
import { recordSpentInRedis } from '../../../src/gateway/access/spent.js';
import { notesInRedis } from '../../../src/gateway/core/repeated-requests.js';
import { createAtRest } from '../../../src/platform/at-rest.js';
import { RESYNC } from '../../../src/stores/feed-cursor.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import { lifeKey } from '../../../src/stores/redis/keys.js';
import { createRedisLeases } from '../../../src/stores/redis/leases.js';
import { openRedisLink } from '../../../src/stores/redis/link.js';
import { SCRIPTS } from '../../../src/stores/redis/scripts.js';
import { bytesOfRedis } from '../../support/store-bytes.js';
import { startRedisCluster } from '../../support/redis-cluster.js';
import { startRedis } from '../../support/redis-server.js';
import { startSentinels } from '../../support/redis-sentinels.js';
import { aConversation, answerEntry, events, eventsOf, readCount } from '../builders.js';
import { storeContract } from '../contract.js';
import { slotOf, watchSlots, type SlotWatch } from './slots.js';

storeContract('the redis store on a cluster', async () => {
  const cluster = await startRedisCluster();
  return {
    open: (options) => createRedisStore({ url: cluster.url, ...options }),
    async loseFeed(key) {
      const names = feedKeys(key);
      await cluster.ask(await cluster.ownerOf(names[0] ?? ''), 'DEL', ...names);
    },
    bytes: async () => (await Promise.all((await cluster.masters()).map(({ server }) => bytesOfRedis(server.url)))).join('\n'),
    end: () => cluster.stop(),
  };
});

storeContract('the redis store behind Sentinels', async () => {
  const sentinels = await startSentinels();
  return {
    open: (options) => createRedisStore({ url: sentinels.url, ...options }),
    loseFeed: async (key) => void (await sentinels.askPrimary('DEL', ...feedKeys(key))),
    bytes: async () => bytesOfRedis((await sentinels.primary()).url),
    end: () => sentinels.stop(),
  };
});

test('an ACL user with the rights that docs name can do all; without channels live events come all the same, and the log says how', async () => {
  const cluster = await startRedisCluster({ replicas: 0 });
  const rights = [
    '~perdura:*',
    '+@all',
    '-@admin',
    '-@dangerous',
    '+info',
    '+keys',
    '+cluster|slots',
    '+cluster|nodes',
    '+cluster|info',
    '+client|tracking',
  ];
  for (const node of cluster.nodes) {
    await cluster.ask(node, 'ACL', 'SETUSER', 'ada', 'on', '>pass', ...rights, '&__redis__:invalidate');
    await cluster.ask(node, 'ACL', 'SETUSER', 'eve', 'on', '>pass', ...rights, 'resetchannels');
  }
  const logged: string[] = [];
  const key = aConversation();
  for (const [user, isTold] of [
    ['ada', true],
    ['eve', false],
  ] as const) {
    const store = createRedisStore({ url: cluster.url.replace('//', `//${user}:pass@`), log: (line) => logged.push(line) });
    try {
      const reading = readCount(store.feed, key, '$', 2);
      await store.writes.apply(key, { append: [answerEntry(1)] });
      await delay(100);
      await store.feed.publish(key, events([1]));
      await store.feed.publish(key, events([2]));
      expect(eventsOf(await reading)).toEqual([1, 2]);
      expect([user, await store.check(), await store.lives.list(key)]).toEqual([
        user,
        expect.arrayContaining([expect.stringContaining('no replica of')]),
        [key],
      ]);
      expect([user, logged.some((line) => line.includes('it is asked again and again'))]).toEqual([user, !isTold]);
    } finally {
      await store.close();
    }
  }
  await cluster.stop();
}, 60_000);

test('behind Sentinels: writes go on with the other server once the primary is dead, whose last writes are missed where it lacks them', async () => {
  const sentinels = await startSentinels();
  const store = createRedisStore({ url: sentinels.url });
  const leaving = new AbortController();
  try {
    const key = aConversation();
    await store.writes.apply(key, { append: [answerEntry(1)], publish: events([1]) });
    const seen: unknown[] = [];
    const following = (async () => {
      for await (const { event } of store.feed.read(key, '0', leaving.signal)) seen.push(event);
    })();
    await sentinels.askPrimary('WAIT', '1', '30000');
    const replica = await sentinels.replica();
    process.kill(replica.pid, 'SIGSTOP');
    await sentinels.askPrimary('CLIENT', 'KILL', 'TYPE', 'replica');
    await store.writes.apply(key, { append: [answerEntry(2)], publish: events([2]) });
    expect((await store.entries.read(key, [1, 2])).every(Boolean)).toBe(true);
    const { replaced } = await sentinels.killPrimary();
    const committing = (async () => {
      for (;;)
        try {
          return await store.effects.commit(key, { id: 'c', hash: 'h' }, 'done', [answerEntry(3)], { publish: events([3]) });
        } catch (error) {
          expect(error).toMatchObject({ name: 'StoreUnavailable' });
          await delay(20);
        }
    })();
    process.kill(replica.pid, 'SIGCONT');
    await replaced;
    expect(await committing).toMatchObject({ status: 'committed' });
    expect((await store.entries.read(key, [1, 2, 3])).map((entry) => entry?.slot)).toEqual([1, undefined, 3]);
    while (!seen.includes(3)) await delay(10);
    leaving.abort();
    await following;
    // The new one has the cursor of the lost one.
    expect(seen).toEqual([1, 2, RESYNC, 1, 3]);
  } finally {
    leaving.abort();
    await store.close();
    await sentinels.stop();
  }
}, 120_000);

describe('each command in one slot', () => {
  let watch: SlotWatch | undefined;

  storeContract('as all of them are seen by one server', async () => {
    const server = await startRedis();
    watch = await watchSlots(server.url);
    return {
      open: (options) => createRedisStore({ url: server.url, ...options }),
      async loseFeed(key) {
        const link = openRedisLink({ url: server.url, commandTimeoutMs: 30_000 });
        await link.redis.del(...feedKeys(key));
        await link.close();
      },
      bytes: () => bytesOfRedis(server.url),
      async end() {
        await besideTheContract(server.url);
        await watch?.end();
        await server.stop();
      },
    };
  });

  test('none touches two, and every script was run', () => {
    expect(watch?.violations).toEqual([]);
    const unseen = Object.keys(SCRIPTS).filter((name) => !watch?.counts.has(name));
    expect(unseen).toEqual([]);
    for (const name of ['lua:hset', 'lua:xadd', 'lua:zadd', 'exec', 'xread', 'unlink', 'rename', 'eval', 'mget'])
      expect([name, watch?.counts.get(name) ?? 0]).not.toEqual([name, 0]);
  });

  test('a slot is what Redis says it is', async () => {
    const server = await startRedis({ args: ['--cluster-enabled', 'yes'] });
    const link = openRedisLink({ url: server.url, commandTimeoutMs: 30_000 });
    for (const key of ['', 'a', 'a{b}c', '{}x', 'x{}y{z}', 'perdura:{c:default:ä}:l:entries', '{a}{b}', 'a{b', 'a}b{c}'])
      expect([key, slotOf(key)]).toEqual([key, await link.redis.cluster('KEYSLOT', key)]);
    await link.close();
    await server.stop();
  });
});

/** What else is written there: by gateways, by leases, by a rekey and by redaction. */
async function besideTheContract(url: string): Promise<void> {
  const link = openRedisLink({ url, commandTimeoutMs: 30_000 });
  const shared = { client: link.redis, prefix: 'perdura:gateway:q' };
  await link.connect();
  await createLimits(shared)('requests', 5, 60).take('ada');
  const spent = recordSpentInRedis(shared);
  const given = { kind: 'session', id: 'one', record: await spent.id(), until: Date.now() + 60_000 } as const;
  await spent.spend(given);
  await spent.isSpent(given);
  const notes = notesInRedis(shared);
  await notes.add('list', 'note');
  await notes.all('list');
  await notes.claim('name');
  await link.close();
  const leases = createRedisLeases(url, { namespace: 'default', taskQueue: 'q' });
  const card = { host: 'h', machine: 'm', pid: 1, started: '' };
  await leases.beat('one', { number: 1, card, announced: { identity: 'i', running: [], recent: [] } });
  for (const lease of await leases.list()) await leases.claim(lease, 'other');
  await leases.remove('one');
  await leases.close();
  const store = createRedisStore({ url, atRest: createAtRest([]) });
  for await (const place of store.reseal()) expect(place).toBeDefined();
  await store.close();
}

function feedKeys(key: Parameters<typeof lifeKey>[0]): string[] {
  return (['feed', 'feed-batches', 'feed-ids'] as const).map((what) => lifeKey(key, what));
}
