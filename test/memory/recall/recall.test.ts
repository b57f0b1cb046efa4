import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRecall } from '../../../src/memory/recall/recall.js';
import { tombstoneFor } from '../../../src/memory/documents/forgetting.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import type { ConversationKey, Store } from '../../../src/stores/store.js';
import { aConversation, aScope, userEntry } from '../../stores/builders.js';

const now = new Date('2025-02-01T12:00:00Z');

describe.each(['file', 'redis'] as const)('recall on %s', (kind) => {
  let dir: string;
  let redis: RedisServer | undefined;
  let store: Store;
  let key: ConversationKey;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'perdura-recall-'));
    redis = kind === 'redis' ? await startRedis() : undefined;
    store = redis ? createRedisStore({ url: redis.url }) : createFileStore({ dir });
  });
  beforeEach(() => {
    key = aConversation(aScope());
  });
  afterAll(async () => {
    await store.close();
    await redis?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  const TALK = ['We sail to Norway in June', 'The boat is called Seagull', 'My dentist is Dr. Brandt', 'Good night'];
  const say = (texts: readonly string[], of = key) =>
    store.entries.append(
      of,
      texts.map((text, i) => userEntry(i + 1, text)),
    );
  const found = async (question: string, recall = createRecall({ store }), of = key) =>
    (await recall.search(of, { question, now, limit: 3 })).map(({ text }) => text);

  test('what was said is found by a question in other words, verbatim, with its address', async () => {
    await say(TALK);
    const recall = createRecall({ store });
    const [hit] = await recall.search(key, { question: 'who are the dentists?', now });
    expect(hit).toMatchObject({ text: TALK[2], kind: 'user', conversation: key.conversation, turn: userEntry(3).turn });
    expect((await recall.open(key, hit?.address ?? '', 1)).map(({ text }) => text)).toEqual(TALK.slice(1, 4));
  });

  test('the next search has what was written since, also a slot that was empty', async () => {
    await store.entries.append(key, [userEntry(1, 'Hello'), userEntry(3, 'Good night')]);
    const recall = createRecall({ store });
    expect(await found('dentist', recall)).toEqual([]);
    await store.entries.append(key, [userEntry(2, 'My dentist is Dr. Brandt'), userEntry(4, 'See you')]);
    expect((await found('dentist', recall))[0]).toBe('My dentist is Dr. Brandt');
  });

  test('another scope is never found', async () => {
    const other = aConversation(aScope());
    await say(TALK, other);
    await say(['Hello']);
    expect(await found('dentist', createRecall({ store }))).toEqual([]);
  });

  test('what a rewind has cut and what was deleted are gone, also from an index that had them', async () => {
    await say(TALK);
    const recall = createRecall({ store });
    expect(await found('dentist', recall)).toContain(TALK[2]);
    await store.lives.cut(key, {
      v: 1,
      id: 'c',
      branch: 1,
      to: 2,
      begun: 2,
      since: 1,
      slot: 4,
      at: 1738100100,
      session: 1,
      slots: [[3, 4]],
    });
    expect(await found('dentist', recall)).not.toContain(TALK[2]);
    expect(await found('boat', recall)).toContain(TALK[1]);
    await store.lives.delete(key);
    expect(await found('boat', recall)).toEqual([]);
  });

  test('forgotten words are not found and not shown, though an index of before is there', async () => {
    const texts = [...TALK, ...Array.from({ length: 1_200 }, (_, i) => `Entry number ${i} of the long log`)];
    await say(texts);
    const recall = createRecall({ store });
    expect((await found('name of the dentist', recall))[0]).toBe(TALK[2]);
    expect(await store.scopes.readIndex(key)).toBeDefined();
    await store.documents.forget(key, tombstoneFor({ scope: key.scope, text: TALK[2] ?? '', at: now.getTime() }));
    for (const one of [recall, createRecall({ store })])
      expect((await found('who is the dentist Brandt', one)).join()).not.toMatch(/dentist|Brandt/);
  });

  test('a worker that begins goes on from what another has written down, and refuses what is damaged', async () => {
    await say(Array.from({ length: 1_200 }, (_, i) => `Entry number ${i} of the long log`));
    await found('log');
    const bytes = await store.scopes.readIndex(key);
    await store.entries.append(key, [userEntry(1_201, 'The boat is called Seagull')]);
    expect((await found('boat'))[0]).toBe('The boat is called Seagull');
    for (const bad of [bytes!.slice(0, 1_000), bytes!.map((byte, i) => (i === 5_000 ? byte ^ 1 : byte)), new Uint8Array(0)]) {
      await store.scopes.writeIndex(key, bad);
      expect((await found('boat'))[0]).toBe('The boat is called Seagull');
    }
  });

  test('MEMORY.md and HISTORY are found, as they are now', async () => {
    const { version } = await store.documents.memory(key);
    await store.documents.writeMemory(key, {
      id: 'w',
      ts: 1,
      cause: 'consolidation',
      from: version,
      text: '- The cat is called Tiger\n',
      lines: [],
    });
    await store.documents.appendHistory(key, { id: 'h1', kind: 'summary', ts: 1738100000, text: 'Talked about the accordion' });
    const recall = createRecall({ store });
    expect((await found('cats', recall))[0]).toContain('Tiger');
    expect((await found('accordions', recall))[0]).toContain('accordion');
    const next = await store.documents.memory(key);
    await store.documents.writeMemory(key, {
      id: 'w2',
      ts: 2,
      cause: 'consolidation',
      from: next.version,
      text: '- The dog is called Rex\n',
      lines: [],
    });
    expect((await found('cats', recall)).join()).not.toContain('Tiger');
  });

  test('many scopes stay under the limit of bytes', async () => {
    const recall = createRecall({ store, cacheBytes: 20_000 });
    for (let i = 0; i < 20; i += 1) {
      const of = aConversation(aScope());
      await say(TALK, of);
      expect((await found('dentist', recall, of))[0]).toBe(TALK[2]);
      expect(recall.bytes()).toBeLessThanOrEqual(20_000);
    }
  });
});
