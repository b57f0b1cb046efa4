import { Redis } from 'ioredis';
import { historyText } from '../../../src/records/memory/history-text.js';
import { memoryVersion } from '../../../src/stores/codecs.js';
import { scopeKey } from '../../../src/stores/redis/keys.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import type { ScopeKey, Store } from '../../../src/stores/store.js';
import { startCuttingProxy, type CuttingProxy } from '../../support/cutting-proxy.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { aScope } from '../builders.js';
import { aWrite, collect, documentsContract, entry } from '../documents-contract.js';

documentsContract('the redis store', async () => {
  const server = await startRedis();
  const redis = new Redis(server.url, { disconnectTimeout: 0 });
  return {
    open: () => createRedisStore({ url: server.url }),
    editMemory: async (key, text) => void (await redis.hset(scopeKey(key, 'memory'), 'text', text)),
    historyText: async (key, store) => historyText((await collect(store.documents.history(key))).reverse()),
    async end() {
      await redis.quit();
      await server.stop();
    },
  };
});

describe('documents in redis', () => {
  let server: RedisServer;
  let redis: Redis;
  let store: Store;
  let key: ScopeKey;

  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.url, { disconnectTimeout: 0 });
    store = createRedisStore({ url: server.url });
  });
  beforeEach(() => {
    key = aScope();
  });
  afterAll(async () => {
    await store.close();
    await redis.quit();
    await server.stop();
  });

  test('one port call is one round trip, but for a hand edit, a superseding summary, reading and redacting HISTORY', async () => {
    const calls: (() => Promise<unknown>)[] = [
      () => store.documents.memory(key),
      () => store.documents.writeMemory(key, aWrite('w1', 'empty', 'one')),
      () => store.documents.memoryText(key, memoryVersion('one')),
      () => store.documents.changes(key),
      () => store.documents.appendHistory(key, entry('c1', 1, 'text')),
      () => store.documents.propose(key, 'b1', [{ ts: 1, line: 'l', source: { trust: 'model' } }]),
      () => store.documents.proposals(key),
      () => store.documents.settleProposal(key, 'prop_0001', 'accepted'),
      () => store.documents.forget(key, { id: 'f', ts: 1, words: [] }),
      () => store.documents.forgotten(key),
    ];
    for (const call of calls) await call();
    const monitor = await redis.monitor();
    const seen: string[] = [];
    monitor.on('monitor', (_time: string, command: string[], source: string) => {
      if (source !== 'lua') seen.push(String(command[0]).toLowerCase());
    });
    for (const call of calls) await call();
    await redis.echo('the end');
    while (!seen.includes('echo')) await new Promise((resolve) => monitor.once('monitor', resolve));
    monitor.disconnect();
    expect(seen).toEqual([
      ...['hmget', 'evalsha', 'hget', 'lrange', 'evalsha', 'hgetall', 'hgetall', 'hgetall', 'hmget', 'hgetall'],
      'echo',
    ]);
  });

  test('records that are not ours are skipped and counted', async () => {
    await store.documents.writeMemory(key, aWrite('w1', 'empty', 'one'));
    await store.documents.appendHistory(key, entry('c1', 1, 'first'));
    await store.documents.appendHistory(key, entry('c2', 2, 'second'));
    await store.documents.propose(key, 'b1', [
      { ts: 1, line: 'one', source: { trust: 'model' } },
      { ts: 1, line: 'two', source: { trust: 'model' } },
    ]);
    await store.documents.forget(key, { id: 'f1', ts: 1, words: [] });
    await redis.rpush(scopeKey(key, 'changes'), 'nonsense', '{"v":2}');
    await redis.hset(scopeKey(key, 'history'), 'entry:0000000001', 'nonsense');
    await redis.zadd(scopeKey(key, 'history-order'), 5, '0000000099');
    await redis.hset(scopeKey(key, 'proposals'), { prop_0001: '[]', prop_0003: 'null', other: 'x' });
    await redis.hset(scopeKey(key, 'forgotten'), 'f2', '{"v":1}');
    expect(await store.documents.changes(key)).toMatchObject({ changes: [{ id: 'w1' }], skipped: 2 });
    expect(await collect(store.documents.history(key))).toEqual([entry('c2', 2, 'second')]);
    expect(await store.documents.proposals(key)).toMatchObject({ proposals: [{ id: 'prop_0002' }], skipped: 3 });
    expect(await store.documents.settleProposal(key, 'prop_0001', 'accepted')).toBeUndefined();
    expect(await store.documents.forgotten(key)).toEqual([{ id: 'f1', ts: 1, words: [] }]);
    expect(await store.documents.propose(key, 'b2', [{ ts: 1, line: 'three', source: { trust: 'model' } }])).toMatchObject([
      { id: 'prop_0004' },
    ]);
  });

  test('words leave damaged records too', async () => {
    await redis.rpush(scopeKey(key, 'changes'), '{"lines":[{"line":"a secret');
    await redis.hset(scopeKey(key, 'history'), 'entry:0000000001', 'a secret');
    await redis.hset(scopeKey(key, 'proposals'), 'prop_0001', '"a secret"');
    await store.documents.redact(key, (text) => text.replaceAll('secret', '-'));
    expect(await redis.lrange(scopeKey(key, 'changes'), 0, -1)).toEqual(['{"lines":[{"line":"a -']);
    expect(await redis.hvals(scopeKey(key, 'history'))).toEqual(['a -']);
    expect(await redis.hvals(scopeKey(key, 'proposals'))).toEqual(['"a -"']);
  });

  test.each(['memory', 'changes', 'history', 'history-order', 'proposals', 'forgotten'] as const)(
    'a wrong type under %s: writes say so and write nothing',
    async (what) => {
      await redis.set(scopeKey(key, what), 'a string');
      const writes: Record<typeof what, () => Promise<unknown>> = {
        memory: () => store.documents.writeMemory(key, aWrite('w1', 'empty', 'one')),
        changes: () => store.documents.writeMemory(key, aWrite('w1', 'empty', 'one')),
        history: () => store.documents.appendHistory(key, entry('c1', 1, 'text')),
        'history-order': () => store.documents.appendHistory(key, entry('c1', 1, 'text')),
        proposals: () => store.documents.propose(key, 'b1', [{ ts: 1, line: 'l', source: { trust: 'model' } }]),
        forgotten: () => store.documents.forget(key, { id: 'f', ts: 1, words: [] }),
      };
      await expect(writes[what]()).rejects.toMatchObject({ name: 'StoreUnavailable' });
      expect(
        await redis.keys(
          scopeKey(key, 'memory')
            .replace(/memory$/, '*')
            .replace(/[{}]/g, '?'),
        ),
      ).toEqual([scopeKey(key, what)]);
      expect(await collect(store.documents.history(key))).toEqual([]);
      expect(await store.documents.changes(key)).toEqual({ changes: [], skipped: what === 'changes' ? 1 : 0 });
      expect(await store.documents.proposals(key)).toEqual({ proposals: [], skipped: what === 'proposals' ? 1 : 0 });
    },
  );

  test('a text that is no UTF-8 is refused in words and stays as it is', async () => {
    await redis.hset(scopeKey(key, 'memory'), 'text', Buffer.from([0x61, 0xff]));
    await expect(store.documents.memory(key)).rejects.toThrow(/^cannot read the field text of .*: it is not UTF-8/);
    await expect(store.documents.writeMemory(key, aWrite('w1', 'empty', 'one'))).rejects.toMatchObject({ name: 'DocumentRefused' });
    expect(await redis.hgetBuffer(scopeKey(key, 'memory'), 'text')).toEqual(Buffer.from([0x61, 0xff]));
  });

  describe('when a reply is lost after redis has applied the command', () => {
    let proxy: CuttingProxy;
    let behind: Store;

    beforeAll(async () => {
      proxy = await startCuttingProxy(server.port);
      behind = createRedisStore({ url: `redis://127.0.0.1:${proxy.port}` });
    });
    afterAll(async () => {
      await behind.close();
      await proxy.close();
    });

    /** Runs the call with its reply cut; ioredis sends it again on its own. */
    async function cut<T>(mark: string, call: () => Promise<T>): Promise<T> {
      const before = proxy.cuts();
      proxy.cutReplyTo(mark);
      const answer = await call();
      expect(proxy.cuts()).toBe(before + 1);
      return answer;
    }

    test('MEMORY.md is written once, and is no conflict with itself', async () => {
      const version = memoryVersion('the-text');
      expect(await cut('the-text', () => behind.documents.writeMemory(key, aWrite('w1', 'empty', 'the-text')))).toEqual({
        status: 'written',
        version,
      });
      expect((await store.documents.changes(key)).changes).toHaveLength(1);
    });

    test('an edit by hand is one change', async () => {
      await redis.hset(scopeKey(key, 'memory'), 'text', 'edited-by-hand');
      expect((await cut('edited-by-hand', () => behind.documents.memory(key))).text).toBe('edited-by-hand');
      expect((await store.documents.changes(key)).changes).toHaveLength(1);
    });

    test('an entry, a proposal and a tombstone are there once', async () => {
      const source = { trust: 'model' } as const;
      await cut('the-entry', () => behind.documents.appendHistory(key, entry('c1', 1, 'the-entry')));
      await cut('the-line', () => behind.documents.propose(key, 'b1', [{ ts: 1, line: 'the-line', source }]));
      await cut('the-tombstone', () => behind.documents.forget(key, { id: 'the-tombstone', ts: 1, words: [] }));
      expect(await collect(store.documents.history(key))).toEqual([entry('c1', 1, 'the-entry')]);
      expect((await store.documents.proposals(key)).proposals).toHaveLength(1);
      expect(await store.documents.forgotten(key)).toHaveLength(1);
      expect(await cut('accepted', () => behind.documents.settleProposal(key, 'prop_0001', 'accepted'))).toMatchObject({
        state: 'accepted',
      });
    });
  });
});
