import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRecall } from '../../../src/memory/recall/recall.js';
import { HEAD } from '../../../src/memory/recall/segments.js';
import { tombstoneFor } from '../../../src/memory/documents/forgetting.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import type { ConversationKey, Store } from '../../../src/stores/store.js';
import { aConversation, aScope, episode, fact, item, userEntry } from '../../stores/builders.js';

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
    const before = recall.bytes();
    await store.lives.delete(key);
    expect(await found('boat', recall)).toEqual([]);
    expect(recall.bytes()).toBeLessThan(before);
  });

  test('forgotten words are not found and not shown, though an index of before is there', async () => {
    const texts = [...TALK, ...Array.from({ length: 1_200 }, (_, i) => `Entry number ${i} of the long log`)];
    await say(texts);
    const recall = createRecall({ store });
    expect((await found('name of the dentist', recall))[0]).toBe(TALK[2]);
    const written = await store.scopes.readIndex(key, HEAD);
    expect(written).toBeDefined();
    await store.documents.forget(key, tombstoneFor({ scope: key.scope, text: TALK[2] ?? '', at: now.getTime() }));
    for (const one of [recall, createRecall({ store })])
      expect((await found('who is the dentist Brandt', one)).join()).not.toMatch(/dentist|Brandt/);
    // No trace of it, not even as a hash: what was written down is written anew.
    expect(Buffer.from((await store.scopes.readIndex(key, HEAD)) ?? []).equals(Buffer.from(written ?? []))).toBe(false);
  });

  test('a worker that begins goes on from what another has written down, and refuses what is damaged', async () => {
    await say(Array.from({ length: 1_200 }, (_, i) => `Entry number ${i} of the long log`));
    await found('log');
    const bytes = await store.scopes.readIndex(key, HEAD);
    await store.entries.append(key, [userEntry(1_201, 'The boat is called Seagull')]);
    expect((await found('boat'))[0]).toBe('The boat is called Seagull');
    for (const bad of [bytes!.slice(0, 1_000), bytes!.map((byte, i) => (i === 5_000 ? byte ^ 1 : byte)), new Uint8Array(0)]) {
      await store.scopes.writeIndex(key, HEAD, bad);
      expect((await found('boat'))[0]).toBe('The boat is called Seagull');
    }
  });

  test('another text in the place of what was indexed is not answered for it', async () => {
    if (kind === 'file') return;
    await say(TALK);
    const recall = createRecall({ store });
    await found('dentist', recall);
    // As many as before: the index cannot know.
    await store.lives.delete(key);
    await say(['One', 'Two', 'Three', 'Four']);
    expect(await found('dentist', recall)).toEqual([]);
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

  test('summaries, what the agent has put away and facts are found, each with its source; a summary opens to what it stands for', async () => {
    await say(TALK);
    await store.episodes.add(key, episode(1, { summary: 'The accordion was tuned', slots: [[1, 2]] }));
    const content = await store.bodies.put(key, 'The spare key hangs behind the clock');
    const put = { source: 'user', content: { ref: content.ref, bytes: content.bytes, json: false } };
    const result = await store.bodies.put(key, 'The clock struck thirteen');
    await store.items.put(key, [item(1, { ...put, slot: 3 }), item(2, { content: { ref: result.ref, bytes: result.bytes, json: false } })]);
    await store.facts.add(key, 'b', [fact('The cat eats herring')], { conversation: key.conversation, turn_ids: ['turn_0002'] });
    const recall = createRecall({ store });
    const [summary] = await recall.search(key, { question: 'accordions', now });
    expect(summary).toMatchObject({ kind: 'episode', trust: 'model', conversation: key.conversation, text: 'The accordion was tuned' });
    expect((await recall.open(key, summary?.address ?? '')).map(({ text }) => text)).toEqual([summary?.text, TALK[0], TALK[1]]);
    const clocks = await recall.search(key, { question: 'clock', now });
    expect(clocks).toMatchObject([{ kind: 'item', trust: 'tool:store_in_memory', text: 'The spare key hangs behind the clock' }]);
    expect(await recall.open(key, clocks[0]?.address ?? '')).toMatchObject([{ text: clocks[0]?.text }]);
    expect(await recall.search(key, { question: 'herring', now })).toMatchObject([
      { kind: 'fact', trust: 'model', conversation: key.conversation, turn: 'turn_0002', address: 'fact/sem_0001' },
    ]);
    const users = await recall.search(key, { question: 'herring dentist', now, kinds: ['user'] });
    expect([users[0]?.text, ...new Set(users.map(({ kind: of }) => of))]).toEqual([TALK[2], 'user']);
    // What is rewound takes with it what was made of it.
    const cut = { v: 1, id: 'c', branch: 1, to: 1, begun: 1, since: 1, slot: 4, at: 1738100600, session: 1, slots: [[2, 4]] } as const;
    await store.lives.cut(key, { ...cut, slots: [[2, 4]] });
    for (const question of ['accordions', 'clock', 'dentist']) expect(await recall.search(key, { question, now })).toEqual([]);
    await store.lives.delete(key);
    expect((await recall.search(key, { question: 'Norway accordion clock', now })).map(({ kind: of }) => of)).toEqual([]);
  });

  test('the words of the question are marked, in whatever form they stand there', async () => {
    await say(['🛶 We SAILED; the dentists of Kiel']);
    const [hit] = await createRecall({ store }).search(key, { question: 'Which dentist sails?', now });
    expect(hit?.marks.map(([start, end]) => hit.text.slice(start, end))).toEqual(['SAILED', 'dentists']);
  });

  test('one conversation alone, spans of time, and the turn that asks left out', async () => {
    await say(TALK);
    const other = { ...key, conversation: 'conv_9' };
    await say(['Another dentist is Dr. Gray', 'Who is the dentist?'], other);
    const recall = createRecall({ store });
    const texts = async (over: object) => (await recall.search(key, { question: 'dentist', now, ...over })).map(({ text }) => text);
    expect(await texts({ conversation: 'conv_9' })).toEqual(['Another dentist is Dr. Gray', 'Who is the dentist?']);
    // The same question, asked before.
    expect(await texts({ conversation: 'conv_9', question: 'who is the dentist ?' })).toEqual(['Another dentist is Dr. Gray']);
    const [hit] = await recall.search(key, { question: 'dentist', conversation: 'conv_9', now });
    expect(await texts({ conversation: hit?.address.split('/')[0] })).toHaveLength(2);
    expect(await texts({ conversation: 'conv_10' })).toEqual([]);
    const { ts } = userEntry(3);
    expect(await texts({ after: ts, before: ts + 0.5 })).toEqual([TALK[2]]);
    expect(await texts({ except: { ...other, turn: userEntry(2).turn } })).not.toContain('Who is the dentist?');
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
