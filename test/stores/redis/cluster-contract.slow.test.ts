/** The store contract on real clusters: of six processes, and behind Sentinels; and by which slots its commands touch. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createLimits } from '../../../src/gateway/access/limits.js';
import { recordSpentInRedis } from '../../../src/gateway/access/spent.js';
import { notesInRedis } from '../../../src/gateway/core/repeated-requests.js';
import { createAtRest, deriveAtRestKeys } from '../../../src/platform/at-rest.js';
import { historyText } from '../../../src/records/memory/history-text.js';
import { RESYNC } from '../../../src/stores/feed-cursor.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import { lifeKey, scopeKey } from '../../../src/stores/redis/keys.js';
import { createRedisLeases } from '../../../src/stores/redis/leases.js';
import { openRedisLink } from '../../../src/stores/redis/link.js';
import { SCRIPTS } from '../../../src/stores/redis/scripts.js';
import { bytesOfRedis } from '../../support/store-bytes.js';
import { startRedisCluster } from '../../support/redis-cluster.js';
import { startRedis } from '../../support/redis-server.js';
import { startSentinels } from '../../support/redis-sentinels.js';
import { aConversation, answerEntry, aScope, events, eventsOf, readCount } from '../builders.js';
import { storeContract } from '../contract.js';
import { aWrite, collect, documentsContract } from '../documents-contract.js';
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

documentsContract('the redis store on a cluster', async () => {
  const cluster = await startRedisCluster({ replicas: 0 });
  return {
    open: () => createRedisStore({ url: cluster.url }),
    async editMemory(key, text) {
      const name = scopeKey(key, 'memory');
      await cluster.ask(await cluster.ownerOf(name), 'HSET', name, 'text', text);
    },
    historyText: async (key, store) => historyText((await collect(store.documents.history(key))).reverse()),
    end: () => cluster.stop(),
  };
});

test('a rekey reaches what is on every node, once', async () => {
  const cluster = await startRedisCluster({ replicas: 0 });
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const open = (...roots: readonly Buffer[]) =>
    createRedisStore({ url: cluster.url, atRest: createAtRest(deriveAtRestKeys(roots, 'store')) });
  const keys = Array.from({ length: 30 }, (_, i) => aConversation({ conversation: `conv_${i}` }));
  const [before, during, after] = [open(old), open(fresh, old), open(fresh)];
  for (const key of keys) await before.entries.append(key, [answerEntry(1), answerEntry(2)]);
  const resealed = async (): Promise<number> => {
    let values = 0;
    for await (const one of during.reseal()) values += one.values;
    return values;
  };
  expect([await resealed(), await resealed()]).toEqual([2 * keys.length, 0]);
  for (const key of keys) expect(await after.entries.read(key, [1, 2])).toEqual([answerEntry(1), answerEntry(2)]);
  await Promise.all([before, during, after].map((store) => store.close()));
  await cluster.stop();
}, 60_000);

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
      expect([user, logged.some((line) => line.includes('feeds are looked up every 50 ms'))]).toEqual([user, !isTold]);
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
  const watches: SlotWatch[] = [];

  storeContract('as all of them are seen by one server', async () => {
    const server = await startRedis();
    const watch = await watchSlots(server.url);
    watches.push(watch);
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
        await watch.end();
        await server.stop();
      },
    };
  });

  documentsContract('one server', async () => {
    const server = await startRedis();
    const watch = await watchSlots(server.url);
    watches.push(watch);
    const link = openRedisLink({ url: server.url });
    return {
      open: () => createRedisStore({ url: server.url }),
      editMemory: async (key, text) => void (await link.redis.hset(scopeKey(key, 'memory'), 'text', text)),
      historyText: async (key, store) => historyText((await collect(store.documents.history(key))).reverse()),
      async end() {
        await link.close();
        await watch.end();
        await server.stop();
      },
    };
  });

  test('none touches two, and every script was run', () => {
    const sent = new Set(watches.flatMap(({ counts }) => [...counts.keys()]));
    expect([watches.length, watches.flatMap(({ violations }) => violations)]).toEqual([2, []]);
    expect(Object.keys(SCRIPTS).filter((name) => !sent.has(name))).toEqual([]);
    // What is not looked at shows nothing.
    const expected = ['lua:hset', 'lua:xadd', 'lua:zadd', 'exec', 'xread', 'unlink', 'rename', 'eval', 'mget'];
    expect(expected.filter((name) => !sent.has(name))).toEqual([]);
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
  const [old, fresh] = [randomBytes(32), randomBytes(32)];
  const open = (...roots: readonly Buffer[]) => createRedisStore({ url, atRest: createAtRest(deriveAtRestKeys(roots, 'store')) });
  const [before, store] = [open(old), open(fresh, old)];
  await before.documents.writeMemory(aScope(), aWrite('w1', 'empty', 'a line'));
  await before.close();
  for await (const place of store.reseal()) expect(place).toBeDefined();
  await store.close();
}

function feedKeys(key: Parameters<typeof lifeKey>[0]): string[] {
  return (['feed', 'feed-batches', 'feed-ids'] as const).map((what) => lifeKey(key, what));
}
