/** A real cluster of six processes: what is read through all of its nodes, slots that move, and failovers that lose nothing, or something. */
import { setTimeout as delay } from 'node:timers/promises';
import { RESYNC } from '../../../src/stores/feed-cursor.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import { lifeKey } from '../../../src/stores/redis/keys.js';
import { createRedisLeases } from '../../../src/stores/redis/leases.js';
import { openRedisLink } from '../../../src/stores/redis/link.js';
import type { ConversationKey, Store } from '../../../src/stores/store.js';
import { startRedisCluster, type ClusterNode, type RedisClusterServers } from '../../support/redis-cluster.js';
import { aConversation, answerEntry, events, userEntry } from '../builders.js';
import { spendingOf } from '../spendings-contract.js';
import { slotOf } from './slots.js';

let cluster: RedisClusterServers;
let store: Store;
beforeAll(async () => {
  cluster = await startRedisCluster();
  store = createRedisStore({ url: cluster.url });
});
afterAll(async () => {
  await store.close();
  await cluster.stop();
});

/** Conversations, one with each master. */
async function oneOfEach(namespace: string): Promise<ConversationKey[]> {
  const found = new Map<ClusterNode, ConversationKey>();
  const masters = await cluster.masters();
  for (let i = 0; found.size < masters.length; i += 1) {
    const key = aConversation({ namespace, conversation: `conv_${i}`, scope: `scope_${i}` });
    found.set(await cluster.ownerOf(lifeKey(key, 'entries')), key);
  }
  return [...found.values()];
}

test('what is looked for by a pattern is found on every node, and deleted there', async () => {
  const keys = await oneOfEach('everywhere');
  for (const [i, key] of keys.entries()) {
    await store.entries.record(key, [userEntry(1)]);
    await store.effects.spend(key, `call-${i}`, spendingOf(key));
  }
  expect((await store.scopes.list('everywhere')).length).toBe(keys.length);
  const spent: string[] = [];
  for await (const { id } of store.spendings.all({ namespace: 'everywhere' })) spent.push(id);
  expect(spent.sort()).toEqual(keys.map((_, i) => `call-${i}`));
  for (const key of keys) {
    expect(await store.lives.list({ ...key, tree: true })).toEqual([key]);
    await store.lives.delete(key);
    expect(await store.lives.list(key)).toEqual([]);
  }
});

test('a conversation whose slot moves from node to node under it loses nothing, and is found all the time', async () => {
  const key = aConversation({ namespace: 'moving' });
  const names = (['entries', 'messages', 'effects', 'spendings', 'feed'] as const).map((what) => lifeKey(key, what));
  const slot = String(slotOf(names[0] ?? ''));
  const from = await cluster.ownerOf(names[0] ?? '');
  const to = (await cluster.masters()).find((node) => node !== from) as ClusterNode;
  const [fromId, toId] = await Promise.all([from, to].map((node) => cluster.ask<string>(node, 'CLUSTER', 'MYID')));
  let isOver = false;
  const acknowledged: number[] = [];
  const writing = (async () => {
    for (let n = 1; !isOver || acknowledged.length < 20; n += 1) {
      await store.effects.commit(key, { id: `e${n}`, hash: 'h' }, n, [answerEntry(n)], { publish: events([n]) });
      acknowledged.push(n);
    }
  })();
  while (acknowledged.length < 5) await delay(1);
  await cluster.ask(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId ?? '');
  await cluster.ask(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId ?? '');
  // One after the other: in between, what a script needs is with neither of them whole.
  const left = (): Promise<string[]> => cluster.ask<string[]>(from, 'CLUSTER', 'GETKEYSINSLOT', slot, '1');
  for (let [name] = await left(); name !== undefined; [name] = await left()) {
    await cluster.ask(from, 'MIGRATE', '127.0.0.1', String(to.port), name, '0', '5000');
    expect(await store.lives.list(key)).toEqual([key]);
  }
  for (const node of [to, from]) await cluster.ask(node, 'CLUSTER', 'SETSLOT', slot, 'NODE', toId ?? '');
  isOver = true;
  await writing;
  const read = await store.entries.read(key, acknowledged);
  expect(read.map((entry) => entry?.slot)).toEqual(acknowledged);
  expect(await cluster.ownerOf(names[0] ?? '')).toBe(to);
});

test('what was acknowledged and is with the replica outlives a master that is killed in the middle of commits; what was under way is repeated, once', async () => {
  const [key = aConversation()] = await oneOfEach('failover');
  const master = await cluster.ownerOf(lifeKey(key, 'entries'));
  const replica = await cluster.replicaOf(master);
  const acknowledged: number[] = [];
  let isOver = false;
  const again = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;)
      try {
        return await work();
      } catch (error) {
        expect(error).toMatchObject({ name: 'StoreUnavailable' });
        await delay(20);
      }
  };
  const committing = (async () => {
    for (let n = 1; !isOver; n += 1) {
      const { status } = await again(() => store.effects.commit(key, { id: `e${n}`, hash: 'h' }, n, [answerEntry(n)]));
      expect(status).toBe('committed');
      acknowledged.push(n);
    }
  })();
  while (acknowledged.length < 20) await delay(1);
  const before = [...acknowledged];
  const offset = async (node: ClusterNode, name: string): Promise<number> =>
    Number(new RegExp(`${name}:(\\d+)`).exec(await cluster.ask<string>(node, 'INFO', 'replication'))?.[1]);
  for (const wanted = await offset(master, 'master_repl_offset'); (await offset(replica, 'slave_repl_offset')) < wanted;) await delay(5);
  await cluster.kill(master);
  const first = acknowledged.length;
  await cluster.takeOver(replica);
  while (acknowledged.length < first + 20) await delay(1);
  isOver = true;
  await committing;
  const kept = [...before, ...acknowledged.slice(first + 1)];
  expect((await store.entries.read(key, kept)).map((entry) => entry?.slot)).toEqual(kept);
  for (const n of kept)
    expect(await store.effects.reserve(key, { id: `e${n}`, hash: 'h' }, 'later')).toEqual({ status: 'committed', result: n });
  await cluster.restart(master);
  await cluster.whole();
}, 60_000);

test('a store that a failover takes back in time is noticed: by reads, by pages, and by who follows the feed', async () => {
  const [, key = aConversation()] = await oneOfEach('back-in-time');
  const master = await cluster.ownerOf(lifeKey(key, 'entries'));
  const replica = await cluster.replicaOf(master);
  await store.writes.apply(key, { append: [answerEntry(1), answerEntry(2)], publish: events([1, 2]) });
  const seen: unknown[] = [];
  const leaving = new AbortController();
  const following = (async () => {
    for await (const { event } of store.feed.read(key, '0', leaving.signal)) seen.push(event);
  })();
  const sees = async (count: number): Promise<void> => {
    while (seen.length < count) await delay(5);
  };
  await sees(2);
  while (Number((await cluster.ask<unknown[]>(replica, 'ROLE'))[4]) < Number((await cluster.ask<unknown[]>(master, 'ROLE'))[1]))
    await delay(5);
  await loseTouch(master, replica);
  try {
    await store.writes.apply(key, { append: [answerEntry(3), answerEntry(4)], publish: events([3, 4]) });
    await sees(4);
    expect((await store.entries.read(key, [1, 2, 3, 4])).every(Boolean)).toBe(true);
    await cluster.kill(master);
  } finally {
    process.kill(replica.server.pid, 'SIGCONT');
  }
  await cluster.takeOver(replica);
  // As many as were lost, entries and events, these under the same cursors: only that another node has them tells the difference.
  const beside = createRedisStore({ url: cluster.url });
  await beside.entries.append(key, [answerEntry(6), answerEntry(7)]);
  await beside.close();
  await store.writes.apply(key, { append: [answerEntry(5)], publish: events([13, 14, 15]) });
  expect((await store.entries.read(key, [1, 2, 3, 4, 5])).map((entry) => entry?.slot)).toEqual([1, 2, undefined, undefined, 5]);
  expect((await store.entries.page(key, 0, 10)).entries.map(({ slot }) => slot)).toEqual([1, 2, 5, 6, 7]);
  await sees(10);
  leaving.abort();
  await following;
  expect(seen).toEqual([1, 2, 3, 4, RESYNC, 1, 2, 13, 14, 15]);
  await cluster.restart(master);
  await cluster.whole();
}, 60_000);

/** From now on the replica gets nothing of what its master writes. */
async function loseTouch(master: ClusterNode, replica: ClusterNode): Promise<void> {
  process.kill(replica.server.pid, 'SIGSTOP');
  await cluster.ask(master, 'CLIENT', 'KILL', 'TYPE', 'replica');
}

test('what comes to one node in one piece of work is one packet, and leases are kept', async () => {
  const link = openRedisLink({ url: cluster.url, commandTimeoutMs: 30_000 });
  const writes: number[] = [];
  try {
    await link.ask('begin', (redis) => redis.get('{a}1'));
    const node = (await link.cluster?.masters())?.find(
      ({ options }) => `${options.host}:${options.port}` === link.cluster?.ownerOf('{a}1'),
    );
    const socket = (node as unknown as { stream: { _handle: unknown; bytesWritten: number; _writev: (...args: unknown[]) => unknown } })
      .stream;
    const writev = socket._writev.bind(socket);
    socket._writev = (chunks: unknown, done: unknown): unknown => {
      writes.push((chunks as unknown[]).length);
      return writev(chunks, done);
    };
    await Promise.all(['1', '2', '3'].map((value) => link.ask('append', (redis) => redis.append('{a}1', value))));
    expect(await link.ask('read', (redis) => redis.get('{a}1'))).toBe('123');
    expect(writes.length).toBe(1);
  } finally {
    await link.close();
  }
  const leases = createRedisLeases(cluster.url, { namespace: 'default', taskQueue: 'q' });
  const card = { host: 'h', machine: 'm', pid: 1, started: '' };
  const announced = { identity: 'i', running: [], recent: [] };
  try {
    expect(await leases.beat('one', { number: 1, card, announced })).toBe('held');
    const [lease] = await leases.list();
    expect(lease && (await leases.claim(lease, 'another'))).toEqual(announced);
    expect(await leases.beat('one', { number: 2, card })).toBe('taken');
  } finally {
    await leases.close();
  }
});
