import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Redis } from 'ioredis';
import { lifeKey, scopeKey } from '../../../src/stores/redis/keys.js';
import { createRedisStore, type RedisStoreOptions } from '../../../src/stores/redis/index.js';
import type { Store } from '../../../src/stores/store.js';
import { freePort } from '../../../src/testing/temporal-server.js';
import { startCuttingProxy, type CuttingProxy } from '../../support/cutting-proxy.js';
import { startRedis, type RedisServer, type RedisServerOptions } from '../../support/redis-server.js';
import { bytesOfRedis } from '../../support/store-bytes.js';
import { aConversation, answerEntry, aScope, episode, events, eventsOf, fact, numbered, readCount, userEntry } from '../builders.js';
import { startWriter } from '../child.js';
import { storeContract } from '../contract.js';
import { spendingOf } from '../spendings-contract.js';

const SOURCE = { conversation: 'conv_8', turn_ids: ['turn_0001'] };

/** What a test opened, closed after it in the reverse order, also when it failed. */
const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

function aStore(options: RedisStoreOptions): Store {
  const store = createRedisStore(options);
  opened.push(() => store.close());
  return store;
}

async function aServer(options?: RedisServerOptions): Promise<RedisServer> {
  const server = await startRedis(options);
  opened.push(() => server.stop());
  return server;
}

async function aProxy(port: number): Promise<CuttingProxy> {
  const proxy = await startCuttingProxy(port);
  opened.push(() => proxy.close());
  return proxy;
}

function aClient(url: string): Redis {
  const redis = new Redis(url, { disconnectTimeout: 0 });
  opened.push(() => redis.quit());
  return redis;
}

storeContract('the redis store', async () => {
  const server = await startRedis();
  return {
    open: (options) => createRedisStore({ url: server.url, ...options }),
    async loseFeed(key) {
      const redis = new Redis(server.url);
      await redis.del(lifeKey(key, 'feed'), lifeKey(key, 'feed-batches'), lifeKey(key, 'feed-ids'));
      await redis.quit();
    },
    bytes: () => bytesOfRedis(server.url),
    end: () => server.stop(),
  };
});

describe('over a redis that works', () => {
  let server: RedisServer;
  let redis: Redis;
  let store: Store;

  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.url);
    store = createRedisStore({ url: server.url });
  });
  afterAll(async () => {
    await store.close();
    await redis.quit();
    await server.stop();
  });

  test('one conversation lies in one cluster slot, and names do not run into each other', () => {
    const key = aConversation({ namespace: 'name:space', conversation: 'conv_8:turn_0001:2', life: 'a:b' });
    expect(lifeKey(key, 'entries')).toBe('perdura:{c:name%3Aspace:conv_8:turn_0001:2}:a%3Ab:entries');
    expect(scopeKey({ namespace: 'name:space', scope: 'a:{b}' }, 'facts')).toBe('perdura:{m:name%3Aspace:a%3A%7Bb%7D}:facts');
  });

  test('a long conversation is parsed once, and what it loses is missed all the same', async () => {
    const key = aConversation();
    const slots = Array.from({ length: 200 }, (_, i) => i + 1);
    await store.entries.append(
      key,
      slots.map((slot) => answerEntry(slot)),
    );
    const first = await store.entries.read(key, slots);
    const again = await store.entries.read(key, slots);
    expect(again.every((entry, i) => entry !== undefined && entry === first[i])).toBe(true);

    await redis.hdel(lifeKey(key, 'entries'), '77', '150');
    const missed = await store.entries.read(key, slots);
    expect(slots.filter((_, i) => missed[i] === undefined)).toEqual([77, 150]);
    await store.entries.append(key, [answerEntry(77, 'healed'), answerEntry(150)]);
    expect((await store.entries.read(key, slots))[76]).toEqual(answerEntry(77, 'healed'));

    await redis.set(lifeKey(key, 'entries'), 'something else');
    expect((await store.entries.read(key, slots)).filter(Boolean)).toEqual([]);
    await redis.flushall();
    expect((await store.entries.read(key, slots)).filter(Boolean)).toEqual([]);
  });

  test('what this process wrote is read back without asking, once; what was lost meanwhile is noticed by the next write', async () => {
    const key = aConversation();
    const slots = [1, 2, 3];
    const beside = aStore({ url: server.url });
    await beside.entries.append(key, [answerEntry(1)]);
    for (const slot of [2, 3]) await store.entries.append(key, [answerEntry(slot)]);
    await store.entries.read(key, slots);
    await redis.del(lifeKey(key, 'entries'));
    expect(await store.entries.read(key, slots)).toEqual([undefined, undefined, undefined]);

    await store.entries.append(key, [answerEntry(1), answerEntry(2)]);
    await redis.del(lifeKey(key, 'entries'));
    await store.effects.commit(key, { id: 'c1', hash: 'h' }, 'done', [answerEntry(3)]);
    expect(await store.entries.read(key, slots)).toEqual([undefined, undefined, answerEntry(3)]);
  });

  test('an entry that found its slot filled is read as it is there', async () => {
    const key = aConversation();
    await redis.hset(lifeKey(key, 'entries'), { 2: JSON.stringify(answerEntry(2, 'of another process')), last: '2' });
    await store.entries.append(key, [answerEntry(1), answerEntry(2, 'ours')]);
    expect(await store.entries.read(key, [1, 2])).toEqual([answerEntry(1), answerEntry(2, 'of another process')]);
  });

  test('a deleted life is not read back', async () => {
    const key = aConversation();
    await store.entries.append(key, [answerEntry(1)]);
    await store.lives.delete(key);
    expect(await store.entries.read(key, [1])).toEqual([undefined]);
  });

  test('each port call is one round trip, a change of a collection two or three, of a budget one, and reading what this process has just written is none', async () => {
    const key = aConversation();
    const claim = { id: 'turn_0001/m1', hash: 'h' };
    const amount = { tokens: 1, nanoUsd: 1 };
    let rooms = 0;
    const reserveRoom = () =>
      store.budgets.reserve(key, {
        ...{ id: `call-${(rooms += 1)}`, estimate: amount, now: 1, used: [], atLeast: amount, waits: true },
        ...{ limit: { maxTokens: 9 }, at: 1 },
      });
    const calls: (() => Promise<unknown>)[] = [
      () => store.entries.record(key, [userEntry(1)]),
      () => store.entries.append(key, [answerEntry(2), answerEntry(3)]),
      () => store.entries.read(key, [1, 2, 3]),
      () => store.entries.read(key, [1, 2, 3]),
      () => store.entries.page(key, 0, 100),
      () => store.effects.reserve(key, claim, 'a'),
      () => store.effects.commit(key, claim, 'done', [answerEntry(4)], { spent: spendingOf(key) }),
      () => store.effects.fence(key, ['c1', 'c2']),
      () =>
        store.writes.apply(key, {
          record: [userEntry(5)],
          fence: ['c1'],
          append: [answerEntry(6)],
          publish: events([1]),
          reserve: { claim, attempt: 'b' },
        }),
      () => store.feed.publish(key, events(numbered(1, 5))),
      () => store.bodies.put(key, 'text'),
      () => store.entries.archive(key, [[1, 2]], 1),
      () => store.entries.restore(key, [[1, 1]], 1),
      () => store.entries.archived(key),
      () => store.episodes.add(key, episode(1)),
      () => store.episodes.list(key),
      () => store.episodes.remove(key, 'ep_0001'),
      () => store.facts.add(key, 'b1', [fact('one'), fact('two')], SOURCE),
      () => store.facts.list(key),
      () => store.facts.remove(key, ['sem_0001', 'sem_0002']),
      reserveRoom,
      () => store.budgets.settle(key, `call-${rooms}`, amount, 'member'),
    ];
    for (const call of calls) await call();
    const monitor = await aClient(server.url).monitor();
    const seen: string[] = [];
    monitor.on('monitor', (_time: string, command: string[], source: string) => {
      if (source !== 'lua') seen.push(String(command[0]).toLowerCase());
    });
    for (const call of calls) await call();
    await redis.echo('the end');
    while (!seen.includes('echo')) await new Promise((resolve) => monitor.once('monitor', resolve));
    monitor.disconnect();
    expect(seen).toEqual([
      // In the same round trip as entries: that this life of the scope has changed.
      ...['evalsha', 'evalsha', 'evalsha', 'evalsha', 'evalsha', 'hmget'],
      ...['evalsha', 'evalsha', 'evalsha', 'evalsha', 'evalsha', 'evalsha', 'evalsha', 'evalsha'],
      ...['evalsha', 'evalsha', 'smembers'],
      // Episodes are added, listed, removed, and tombstones looked for; of facts all is there already, or gone.
      ...['hmget', 'evalsha', 'evalsha', 'hgetall', 'hgetall', 'hgetall', 'evalsha', 'evalsha', 'hgetall'],
      ...['hgetall', 'hgetall', 'hgetall', 'hgetall'],
      // What is on the way of each model call is changed by what was seen last.
      ...['evalsha', 'evalsha'],
      'echo',
    ]);
  });

  test('an upload expires with the write that has brought it, and a use makes it last longer', async () => {
    const [redis, store, owner] = [aClient(server.url), aStore({ url: server.url }), { namespace: 'expiring', tenant: 'a' }];
    const expiries = async (): Promise<number[]> =>
      Promise.all((await redis.keys('*expiring*')).map((key) => redis.pexpiretime(key))).then((times) => [...new Set(times)].sort());
    const [soon, later] = [Date.now() + 3_600_000, Date.now() + 7_200_000];
    const arriving = await store.uploads.begin(owner);
    await arriving.append(Buffer.from('x'));
    await arriving.keep({ id: 'att_1', mediaType: 'image/png', size: 1, sha256: 'x', at: 0, expiresAt: soon });
    expect(await expiries()).toEqual([soon]);
    await store.uploads.use(owner, 'att_1', { conversation: 'c', life: 'l', scope: 's', ref: 'r' }, later);
    expect(await expiries()).toEqual([later]);
  });

  test('a fenced commit leaves its usage, once', async () => {
    const key = aConversation();
    await store.effects.fence(key, ['c1']);
    for (const at of [1, 2])
      await store.effects.commit(key, { id: 'c1', hash: 'h' }, 'late', [answerEntry(2)], { spent: spendingOf(key, { at }) });
    expect(await redis.hgetall(lifeKey(key, 'effects'))).toEqual({ 'fenced:c1': '1' });
    expect(await redis.hgetall(lifeKey(key, 'spendings'))).toEqual({ c1: JSON.stringify(spendingOf(key, { at: 1 })) });
  });

  test('something foreign where prices are kept costs no answer', async () => {
    const key = aConversation();
    await redis.set(lifeKey(key, 'spendings'), 'foreign');
    await store.effects.commit(key, { id: 'c1', hash: 'h' }, 'done', [answerEntry(2)], { spent: spendingOf(key) });
    expect(await store.entries.read(key, [2])).toEqual([answerEntry(2)]);
    for await (const spent of store.spendings.all(key)) expect(spent.scope).not.toBe('foreign');
  });

  test('records that are not ours are skipped and counted, and count as empty slots', async () => {
    const key = aConversation();
    await store.entries.append(key, [answerEntry(1), answerEntry(4)]);
    await redis.hset(lifeKey(key, 'entries'), { 2: 'nonsense', 3: '{"v":1}' });
    expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [answerEntry(1), answerEntry(4)], last: 4, skipped: 2 });
    expect(await store.entries.read(key, [1, 2, 3])).toEqual([answerEntry(1), undefined, undefined]);
    await store.entries.append(key, [answerEntry(2)]);
    await store.entries.record(key, [userEntry(3)]);
    expect(await store.entries.page(key, 0, 10)).toEqual({
      entries: [answerEntry(1), answerEntry(2), userEntry(3), answerEntry(4)],
      last: 4,
      skipped: 0,
    });
  });

  test('an entry of a newer version is skipped, and never overwritten', async () => {
    const key = aConversation();
    const newer = JSON.stringify({ ...answerEntry(1), v: 2 });
    await redis.hset(lifeKey(key, 'entries'), { 1: newer });
    await store.entries.append(key, [answerEntry(1)]);
    expect(await redis.hget(lifeKey(key, 'entries'), '1')).toBe(newer);
    expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [], last: 1, skipped: 1 });
  });

  test('a wrong type under the entries: reads find nothing, writes say so and write nothing, other conversations go on', async () => {
    const key = aConversation();
    const claim = { id: 'c1', hash: 'h' };
    await redis.set(lifeKey(key, 'entries'), 'a string');
    expect(await store.entries.read(key, [1, 2])).toEqual([undefined, undefined]);
    expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [], last: 0, skipped: 1 });
    const refusal = {
      name: 'StoreUnavailable',
      message: expect.stringMatching(/of conv_8.*WRONGTYPE.*look at it with TYPE/) as string,
    };
    await expect(store.entries.record(key, [userEntry(1)])).rejects.toMatchObject(refusal);
    await expect(store.effects.commit(key, claim, 'done', [answerEntry(2)])).rejects.toMatchObject(refusal);
    expect(await store.effects.reserve(key, claim, 'a')).toEqual({ status: 'reserved', earlier: 0 });
    await expect(
      store.writes.apply(key, { append: [answerEntry(1)], fence: ['c2'], reserve: { claim, attempt: 'a' } }),
    ).rejects.toMatchObject(refusal);
    expect(await store.effects.reserve(key, { id: 'c2', hash: 'h' }, 'a')).toEqual({ status: 'reserved', earlier: 0 });
    expect(await redis.exists(lifeKey(key, 'messages'))).toBe(0);
    const other = aConversation();
    await store.entries.append(other, [answerEntry(1)]);
    expect(await store.entries.read(other, [1])).toEqual([answerEntry(1)]);
  });

  test.each(['messages', 'effects'] as const)('a wrong type under the %s: a commit writes nothing at all', async (what) => {
    const key = aConversation();
    await redis.set(lifeKey(key, what), 'a string');
    await expect(store.effects.commit(key, { id: 'c1', hash: 'h' }, 'done', [userEntry(1)])).rejects.toThrow(
      'cannot commit effect c1 of conv_8',
    );
    expect(await redis.exists(lifeKey(key, 'entries'), lifeKey(key, 'effects'), lifeKey(key, 'messages'))).toBe(1);
  });

  test('a wrong type under feed or bodies is named by who needs it', async () => {
    const key = aConversation();
    await redis.set(lifeKey(key, 'feed'), 'a string');
    await redis.set(lifeKey(key, 'bodies'), 'a string');
    await expect(store.feed.publish(key, [{ event: 1 }])).rejects.toThrow('cannot publish 1 live events of conv_8');
    await store.writes.apply(key, { append: [answerEntry(1)], publish: events([1]) });
    await store.effects.commit(key, { id: 'c1', hash: 'h' }, 'done', [answerEntry(2)], { publish: events([1]) });
    expect(await store.entries.read(key, [1, 2])).toEqual([answerEntry(1), answerEntry(2)]);
    await expect(readCount(store.feed, key, '0', 1)).rejects.toThrow('cannot read the feed of conv_8');
    await expect(store.bodies.put(key, 'text')).rejects.toThrow('cannot store a body of 4 bytes of conv_8');
    expect(await store.bodies.get(key, `sha256:${'0'.repeat(64)}`)).toBeUndefined();
  });

  test('a damaged body is no body, and putting the text again heals it', async () => {
    const key = aConversation();
    const { ref, sha256 } = await store.bodies.put(key, 'a long text');
    await redis.hset(lifeKey(key, 'bodies'), sha256, 'a bent text');
    expect(await store.bodies.get(key, ref)).toBeUndefined();
    await store.bodies.put(key, 'a long text');
    expect(await store.bodies.get(key, ref)).toBe('a long text');
  });

  test('episodes that are not ours are skipped and counted, and writing one again heals it; a newer one stays', async () => {
    const key = aConversation();
    const newer = JSON.stringify({ ...episode(4), v: 2 });
    await store.episodes.add(key, episode(1));
    await redis.hset(lifeKey(key, 'episodes'), { ep_0002: 'nonsense', ep_0003: '{}', ep_0004: newer });
    expect(await store.episodes.list(key)).toEqual({ episodes: [episode(1)], skipped: 3 });
    for (const n of [2, 3, 4]) await store.episodes.add(key, episode(n));
    expect(await store.episodes.list(key)).toEqual({ episodes: [episode(3), episode(2), episode(1)], skipped: 1 });
    expect(await redis.hget(lifeKey(key, 'episodes'), 'ep_0004')).toBe(newer);
  });

  test('facts that are not ours are skipped and counted; the same words get a fact of their own', async () => {
    const key = aScope();
    await store.facts.add(key, 'b1', [fact('one'), fact('two'), fact('three')], SOURCE);
    await redis.hset(scopeKey(key, 'facts'), { sem_0001: 'nonsense', sem_0004: '[]', foreign: '{}' });
    expect(await store.facts.list(key)).toMatchObject({ facts: [{ id: 'sem_0003' }, { id: 'sem_0002', salience: 0.7 }], skipped: 3 });
    expect(await store.facts.add(key, 'b2', [fact('one')], SOURCE)).toMatchObject([{ id: 'sem_0005', fact: 'one' }]);
    expect(await store.facts.add(key, 'b1', [], SOURCE)).toEqual([]);
    expect(await store.facts.add(key, 'b1', [fact('x')], SOURCE)).toMatchObject([{ id: 'sem_0002' }, { id: 'sem_0003' }]);
  });

  test.each(['facts', 'removed-facts'] as const)('a wrong type under %s: nothing is written at all', async (what) => {
    const key = aScope();
    if (what === 'removed-facts') await store.facts.add(key, 'b0', [fact('zero')], SOURCE);
    const before = await redis.hgetall(scopeKey(key, 'facts'));
    await redis.set(scopeKey(key, what), 'a string');
    await expect(store.facts.add(key, 'b1', [fact('one')], SOURCE)).rejects.toThrow(`cannot add 1 facts to ${key.scope}`);
    await expect(store.facts.remove(key, ['sem_0001'])).rejects.toMatchObject({ name: 'StoreUnavailable' });
    expect(await store.facts.list(key)).toMatchObject({ skipped: what === 'facts' ? 1 : 0 });
    if (what === 'removed-facts') expect(await redis.hgetall(scopeKey(key, 'facts'))).toEqual(before);
    expect(await redis.get(scopeKey(key, what))).toBe('a string');
  });

  test('a wrong type under archived or episodes: reads find nothing, writes say so', async () => {
    const key = aConversation();
    await redis.set(lifeKey(key, 'archived'), 'a string');
    await redis.set(lifeKey(key, 'episodes'), 'a string');
    expect(await store.entries.archived(key)).toEqual([]);
    expect(await store.episodes.list(key)).toEqual({ episodes: [], skipped: 1 });
    await expect(store.entries.archive(key, [[1, 2]], 1)).rejects.toThrow('cannot archive 2 entries of conv_8');
    await expect(store.episodes.add(key, episode(1))).rejects.toThrow('cannot add episode ep_0001 of conv_8');
  });

  test('a committed result that nobody can read is an error, never "not done"', async () => {
    const key = aConversation();
    await store.effects.commit(key, { id: 'c1', hash: 'h' }, 'done', []);
    await redis.hset(lifeKey(key, 'effects'), 'result:c1', 'nonsense');
    await expect(store.effects.reserve(key, { id: 'c1', hash: 'h' }, 'a')).rejects.toThrow('result:c1');
  });

  test('a reader of the feed gets what another process publishes, all of it, once, in order', async () => {
    const key = aConversation();
    const reading = readCount(store.feed, key, '0', 1000);
    const publisher = startWriter({ kind: 'redis', where: server.url, key, what: 'events', from: 1, step: 1, to: 1000 });
    expect(eventsOf(await reading)).toEqual(numbered(1, 1000));
    await publisher.finished();
  });

  test('a reader leaves no connection behind', async () => {
    const key = aConversation();
    const connections = async () => (await redis.call('CLIENT', 'LIST', 'TYPE', 'normal')) as string;
    const before = (await connections()).trim().split('\n').length;
    await store.feed.publish(key, [{ event: 1 }]);
    await readCount(store.feed, key, '0', 1);
    while ((await connections()).trim().split('\n').length > before) await redis.ping();
  });
});

describe('when a reply is lost after redis has applied the command', () => {
  let server: RedisServer;
  let proxy: CuttingProxy;
  let store: Store;

  beforeAll(async () => {
    server = await startRedis();
    proxy = await startCuttingProxy(server.port);
    store = createRedisStore({ url: `redis://127.0.0.1:${proxy.port}` });
  });
  afterAll(async () => {
    await store.close();
    await proxy.close();
    await server.stop();
  });

  /** Runs the call with its reply cut; ioredis sends it again on its own. */
  async function cut<T>(mark: string, call: () => Promise<T>): Promise<T> {
    const before = proxy.cuts();
    proxy.cutReplyTo(mark);
    const answer = await call();
    expect(proxy.cuts()).toBe(before + 1);
    return answer;
  }

  test('a message is there once, and is no duplicate of itself', async () => {
    const key = aConversation();
    expect(await cut('m-once', () => store.entries.record(key, [userEntry(1, 'hello', 'm-once')]))).toEqual([{}]);
    expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [userEntry(1, 'hello', 'm-once')], last: 1, skipped: 0 });
  });

  test('a reservation counts once', async () => {
    const key = aConversation();
    const claim = { id: 'turn_0001/c1', hash: 'h' };
    expect(await cut('attempt-a', () => store.effects.reserve(key, claim, 'attempt-a'))).toEqual({ status: 'reserved', earlier: 0 });
    expect(await store.effects.reserve(key, claim, 'attempt-b')).toEqual({ status: 'reserved', earlier: 1 });
  });

  test('a commit answers as the first, and its entries are there once', async () => {
    const key = aConversation();
    const claim = { id: 'turn_0001/c2', hash: 'h' };
    expect(await cut('the-answer', () => store.effects.commit(key, claim, ['the-answer'], [answerEntry(2)]))).toEqual({
      status: 'committed',
      result: ['the-answer'],
    });
    expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [answerEntry(2)], last: 2, skipped: 0 });
  });

  test('a batch is there once, its attempt and its events too', async () => {
    const key = aConversation();
    const batch = {
      record: [userEntry(1, 'hello', 'm-in-batch')],
      publish: events(['of the batch']),
      reserve: { claim: { id: 'c', hash: 'h' }, attempt: 'a' },
    };
    expect(await cut('m-in-batch', () => store.writes.apply(key, batch))).toEqual({
      recorded: [{}],
      fenced: [],
      reservation: { status: 'reserved', earlier: 0 },
    });
    await store.feed.publish(key, events(['end']));
    expect(eventsOf(await readCount(store.feed, key, '0', 2))).toEqual(['of the batch', 'end']);
  });

  test('a fence says the same', async () => {
    const key = aConversation();
    expect(await cut('to-be-fenced', () => store.effects.fence(key, ['to-be-fenced']))).toEqual([{ id: 'to-be-fenced', status: 'fenced' }]);
  });

  test('published events are there once', async () => {
    const key = aConversation();
    await cut('first-of-batch', () => store.feed.publish(key, [{ event: 'first-of-batch' }, { event: 'second' }]));
    await store.feed.publish(key, [{ event: 'third' }]);
    expect(eventsOf(await readCount(store.feed, key, '0', 3))).toEqual(['first-of-batch', 'second', 'third']);
  });

  test('a body is there', async () => {
    const key = aConversation();
    const { ref } = await cut('text of a body', () => store.bodies.put(key, 'text of a body'));
    expect(await store.bodies.get(key, ref)).toBe('text of a body');
  });

  test('what is archived is archived, and restored is restored', async () => {
    const key = aConversation();
    await cut('1234', () => store.entries.archive(key, [[1234, 1236]], 1));
    await cut('1236', () => store.entries.restore(key, [[1236, 1236]], 1));
    expect(await store.entries.archived(key)).toEqual([[1234, 1235]]);
  });

  test('an episode is there once, or gone', async () => {
    const key = aConversation();
    await cut('the-summary', () => store.episodes.add(key, episode(1, { summary: 'the-summary' })));
    expect(await store.episodes.list(key)).toEqual({ episodes: [episode(1, { summary: 'the-summary' })], skipped: 0 });
    await cut('ep_0001', () => store.episodes.remove(key, 'ep_0001'));
    expect(await store.episodes.list(key)).toEqual({ episodes: [], skipped: 0 });
  });

  test('facts have one number each, and are removed once', async () => {
    const key = aScope();
    const added = await cut('the-batch', () => store.facts.add(key, 'the-batch', [fact('one'), fact('two')], SOURCE));
    expect(added.map(({ id }) => id)).toEqual(['sem_0001', 'sem_0002']);
    expect((await store.facts.list(key)).facts).toHaveLength(2);
    await cut('sem_0002', () => store.facts.remove(key, ['sem_0002']));
    expect(await store.facts.add(key, 'b2', [fact('two')], SOURCE)).toMatchObject([{ id: 'sem_0003' }]);
  });

  test('a reader of the feed neither misses nor doubles an event', async () => {
    const key = aConversation();
    const reading = readCount(store.feed, key, '0', 60);
    const publisher = createRedisStore({ url: server.url });
    for (let n = 1; n <= 60; n += 1) {
      if (n % 10 === 0) proxy.cutReplyTo(lifeKey(key, 'feed'));
      await publisher.feed.publish(key, [{ event: { n } }]);
    }
    expect(eventsOf(await reading)).toEqual(numbered(1, 60));
    await publisher.close();
  });
});

describe('when redis is away', () => {
  const TIMEOUT = 400;

  const everyCall = (store: Store): Promise<unknown>[] => {
    const key = aConversation();
    return [
      store.entries.record(key, [userEntry(1)]),
      store.entries.append(key, [answerEntry(1)]),
      store.entries.read(key, [1]),
      store.entries.page(key, 0, 10),
      store.effects.reserve(key, { id: 'c', hash: 'h' }, 'a'),
      store.effects.commit(key, { id: 'c', hash: 'h' }, 'x', []),
      store.effects.fence(key, ['c']),
      store.writes.apply(key, { record: [userEntry(1)], reserve: { claim: { id: 'c', hash: 'h' }, attempt: 'a' } }),
      store.bodies.put(key, 'text'),
      store.bodies.get(key, `sha256:${'0'.repeat(64)}`),
      store.feed.publish(key, [{ event: 1 }]),
      store.entries.archive(key, [[1, 2]], 1),
      store.entries.restore(key, [[1, 2]], 1),
      store.entries.archived(key),
      store.episodes.add(key, episode(1)),
      store.episodes.list(key),
      store.episodes.remove(key, 'ep_0001'),
      store.facts.add(key, 'b1', [fact('one')], SOURCE),
      store.facts.list(key),
      store.facts.remove(key, ['sem_0001']),
      store.check(),
    ];
  };

  test('every call is refused in words when nobody listens', async () => {
    const store = aStore({ url: `redis://127.0.0.1:${await freePort()}`, commandTimeoutMs: TIMEOUT });
    for (const outcome of await Promise.allSettled(everyCall(store))) {
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { name: 'StoreUnavailable', message: expect.stringMatching(/^cannot .*ECONNREFUSED.*see that redis runs/s) as string },
      });
    }
  });

  test('no call waits for ever in a black hole, and each works again after it', async () => {
    const server = await aServer();
    const proxy = await aProxy(server.port);
    const store = aStore({ url: `redis://127.0.0.1:${proxy.port}`, commandTimeoutMs: TIMEOUT });
    const key = aConversation();
    await store.entries.append(key, [answerEntry(1)]);
    proxy.blackHole();
    const calls = everyCall(store);
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(calls.map(() => 'rejected'));
    proxy.open();
    while ((await Promise.allSettled([store.entries.append(key, [answerEntry(2)])]))[0]?.status === 'rejected');
    expect(await store.entries.page(key, 0, 10)).toEqual({ entries: [answerEntry(1), answerEntry(2)], last: 2, skipped: 0 });
  });

  test('what was acknowledged survives kill -9 of redis with its append-only file, and store and readers go on by themselves', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'perdura-redis-'));
    opened.push(() => rm(dir, { recursive: true }));
    const port = await freePort();
    const server = await aServer({ dir, port, appendonly: true });
    const store = aStore({ url: server.url });
    const key = aConversation();
    const reading = readCount(store.feed, key, '0', 2);
    for (let slot = 1; slot <= 200; slot += 1) await store.entries.append(key, [answerEntry(slot)]);
    await store.feed.publish(key, [{ event: { n: 1 } }]);
    await server.kill();
    const next = store.entries.append(key, [answerEntry(201)]);
    await aServer({ dir, port, appendonly: true });
    await next;
    await store.feed.publish(key, [{ event: { n: 2 } }]);
    expect((await store.entries.page(key, 0, 1000)).entries).toEqual(numbered(1, 201).map(({ n }) => answerEntry(n)));
    expect(eventsOf(await reading)).toEqual(numbered(1, 2));
  });

  test('a reader that waits for an absent redis ends when it is told to', async () => {
    const store = aStore({ url: `redis://127.0.0.1:${await freePort()}`, commandTimeoutMs: TIMEOUT });
    const stop = new AbortController();
    const reading = readCount(store.feed, aConversation(), '0', 1);
    const aborted = (async () => {
      for await (const _ of store.feed.read(aConversation(), '0', stop.signal));
    })();
    stop.abort();
    await aborted;
    await store.close();
    expect(await reading).toEqual([]);
  });

  test('aborting ends a reader at once, also while redis holds its request', async () => {
    const server = await aServer();
    const redis = aClient(server.url);
    const proxy = await aProxy(server.port);
    const lines: string[] = [];
    const store = aStore({ url: `redis://127.0.0.1:${proxy.port}`, log: (line) => lines.push(line) });
    await redis.ping();
    const stop = new AbortController();
    const reading = (async () => {
      for await (const _ of store.feed.read(aConversation(), '0', stop.signal));
    })();
    while (!/flags=b.*cmd=xread/.test((await redis.call('CLIENT', 'LIST')) as string));
    proxy.blackHole();
    stop.abort();
    await reading;
    // Who had waited for the answer would have been told that none comes.
    expect(lines).toEqual([]);
  });

  test('a closed store refuses in words', async () => {
    const store = aStore({ url: `redis://127.0.0.1:${await freePort()}` });
    await store.close();
    await expect(store.entries.read(aConversation(), [1])).rejects.toMatchObject({ name: 'StoreUnavailable' });
  });
});

describe('what people are told', () => {
  test('no message, no cause and no address shows the password', async () => {
    const server = await aServer({ args: ['--requirepass', 'right'] });
    const said: string[] = [];
    for (const url of [
      `redis://:hunter2@127.0.0.1:${server.port}/0`,
      `redis://somebody:hunter2@127.0.0.1:${server.port}`,
      `redis://127.0.0.1:${server.port}?password=hunter2`,
    ]) {
      const store = aStore({ url, commandTimeoutMs: 500, log: (line) => said.push(line) });
      const error: unknown = await store.entries.append(aConversation(), [answerEntry(1)]).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ name: 'StoreUnavailable' });
      said.push(inspect(error, { depth: 20, showHidden: true }), store.where);
    }
    expect(said.join('\n')).toContain('WRONGPASS');
    try {
      aStore({ url: 'redis://:hunt/hunter2@127.0.0.1:1' });
    } catch (error) {
      said.push(inspect(error, { depth: 20, showHidden: true }));
    }
    expect(said.at(-1)).toContain('cannot use the redis url redis://127.0.0.1:1: it is not of the form');
    expect(said.join('\n')).not.toContain('hunter2');
  });

  test('check names appendonly and maxmemory-policy when they endanger conversations', async () => {
    const server = await aServer({ args: ['--maxmemory-policy', 'allkeys-lru'] });
    const store = aStore({ url: server.url });
    expect(await store.check()).toEqual([expect.stringContaining('appendonly'), expect.stringContaining('maxmemory-policy')]);
  });

  test('check is content with a safe redis, also where CONFIG is forbidden', async () => {
    const server = await aServer({ appendonly: true, args: ['--rename-command', 'CONFIG', ''] });
    const store = aStore({ url: server.url });
    expect(await store.check()).toEqual([]);
  });

  test('check says what it could not see where INFO is forbidden', async () => {
    const server = await aServer();
    const admin = aClient(server.url);
    await admin.call('ACL', 'SETUSER', 'careful', 'on', '>secret', '~*', '+@all', '-info', '-config');
    const store = aStore({ url: `redis://careful:secret@127.0.0.1:${server.port}` });
    expect(await store.check()).toEqual([expect.stringMatching(/NOPERM.*appendonly.*maxmemory-policy/s)]);
  });

  test('a redis that is full says what to raise, and takes writes again afterwards', async () => {
    const server = await aServer();
    const admin = aClient(server.url);
    const store = aStore({ url: server.url });
    const key = aConversation();
    await admin.config('SET', 'maxmemory', '100kb');
    await expect(store.entries.append(key, [answerEntry(1)])).rejects.toThrow(/OOM.*raise maxmemory/s);
    expect(await store.entries.read(key, [1])).toEqual([undefined]);
    await admin.config('SET', 'maxmemory', '0');
    await store.entries.append(key, [answerEntry(1)]);
    expect(await store.entries.read(key, [1])).toEqual([answerEntry(1)]);
  });
});
