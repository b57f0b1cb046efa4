/** Searching by meaning, with embeddings over HTTP as Ollama and OpenAI speak them: found, stored, paid, forgotten, and done without. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBackgroundEmbedding } from '../../../src/memory/recall/open-recall.js';
import { dropVectors, createRecall, type Recall } from '../../../src/memory/recall/recall.js';
import { createPaidEmbedder, type Payer } from '../../../src/memory/recall/paid-embedder.js';
import { tombstoneFor } from '../../../src/memory/documents/forgetting.js';
import { createEmbedder } from '../../../src/models/providers.js';
import type { Embedder } from '../../../src/models/embedder.js';
import type { Spent } from '../../../src/records/spending.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import { createRedisStore } from '../../../src/stores/redis/index.js';
import type { ConversationKey, Store } from '../../../src/stores/store.js';
import { startEmbeddingsApi, type EmbeddingsApi } from '../../support/provider-apis/embeddings-api.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { waitFor } from '../../support/wait-for.js';
import { aConversation, aScope, userEntry } from '../../stores/builders.js';

const now = new Date('2025-02-01T12:00:00Z');
const never = new AbortController().signal;
const TALK = [
  'The doctor for teeth is called Brandt',
  'We sail to Norway in June',
  'The boat is painted green',
  'Ole bakes bread on Sundays',
  'The umbrella stands behind the door',
  'Parcels arrive before noon',
  'Winter is cold and dark',
  'A choir sang in the square',
];
/** No word of it is in the talk. */
const QUESTION = 'Who was my dentist?';
const MEANS: Readonly<Record<string, string>> = { dentist: 'teeth', was: 'teeth', who: 'teeth', my: 'teeth', doctor: 'teeth' };

const stores = ['file', 'redis'] as const;
const providers: readonly (readonly [string, (url: string, fetched?: typeof fetch) => Embedder | undefined])[] = [
  ['ollama/nomic-embed-text', (url) => createEmbedder('ollama/nomic-embed-text', { ollama: { host: url } })],
  [
    'openai/text-embedding-3-small',
    (url) => createEmbedder('openai/text-embedding-3-small', { openai: { apiKey: 'sk-test-1', baseURL: `${url}/v1` } }),
  ],
];

describe.each(stores.flatMap((kind) => providers.map(([name, open]) => ({ kind, name, open }))))(
  '$name over $kind',
  ({ kind, name, open }) => {
    let dir: string;
    let redis: RedisServer | undefined;
    let store: Store;
    let key: ConversationKey;
    let api: EmbeddingsApi;
    let payer: Payer;

    beforeAll(async () => {
      dir = await mkdtemp(join(tmpdir(), 'perdura-embeddings-'));
      redis = kind === 'redis' ? await startRedis() : undefined;
      store = redis ? createRedisStore({ url: redis.url }) : createFileStore({ dir });
    });
    beforeEach(async () => {
      key = aConversation(aScope());
      payer = { key, agent: 'main' };
      api = await startEmbeddingsApi({ means: (word) => MEANS[word] ?? word });
      await store.entries.append(
        key,
        TALK.map((text, i) => userEntry(i + 1, text)),
      );
    });
    afterEach(() => api.close());
    afterAll(async () => {
      await store.close();
      await redis?.stop();
      await rm(dir, { recursive: true, force: true });
    });

    const paidOf = (over: Partial<Embedder> = {}, url = api.url) => {
      const embedder = open(url);
      if (!embedder) throw new Error('no embedder');
      return createPaidEmbedder({ store, embedder: { ...embedder, ...over } });
    };
    const recallOf = (over: Partial<Embedder> = {}): Recall => createRecall({ store, embedder: paidOf(over) });
    const found = async (recall: Recall, question = QUESTION, over: object = {}) =>
      (await recall.search(key, { question, now, ...over })).map(({ text }) => text);
    const first = async (...given: Parameters<typeof found>) => (await found(...given))[0];
    const asked = () => api.requests.flatMap(({ texts }) => texts);
    const spent = async () => {
      const all: Spent[] = [];
      for await (const one of store.spendings.all(key)) if (one.scope === key.scope) all.push(one);
      return all;
    };

    test('what shares no word with the question is found, in another process too, and no text is sent twice', async () => {
      const recall = recallOf();
      expect(await found(createRecall({ store }))).toEqual([]);
      expect(await found(recall)).toEqual([]);
      expect(await recall.fill(payer, never)).toBe(TALK.length);
      expect(await first(recall)).toBe(TALK[0]);
      expect(await recall.fill(payer, never)).toBe(0);
      const other = recallOf();
      expect(await first(other)).toBe(TALK[0]);
      expect(await other.fill(payer, never)).toBe(0);
      expect(
        asked()
          .filter((text) => text !== QUESTION)
          .sort(),
      ).toEqual([...TALK].sort());
      // Without one nothing is another than it was.
      expect(await found(createRecall({ store }))).toEqual([]);
      expect(await first(createRecall({ store }), 'boat')).toBe(TALK[2]);
    });

    test('what is said later gets its vector later, that of the payer’s conversation first, a part at a time', async () => {
      const other = { ...key, conversation: 'conv_0' };
      await store.entries.append(
        other,
        Array.from({ length: 300 }, (_, i) => userEntry(i + 1, `Line ${'abcdefghij'[i % 10]} ${i} of an older talk`)),
      );
      const recall = recallOf();
      expect(await recall.fill(payer, never)).toBe(256);
      expect(await store.vectors.read(key, name)).toHaveLength(TALK.length);
      expect(await recall.fill(payer, never)).toBe(300 + TALK.length - 256);
      expect(await recall.fill(payer, never)).toBe(0);
      expect(Math.max(...api.requests.map(({ texts }) => texts.length))).toBeLessThanOrEqual(64);
    });

    test.each([
      ['all in memory', 1e6],
      ['read back for each search', 20_000],
    ])('also what is sealed has vectors: %s', async (_, cacheBytes) => {
      const texts = Array.from({ length: 40 }, (__, i) => `Line ${'abcdefghij'[i % 10]} ${i} of a longer talk`);
      await store.entries.append(
        key,
        texts.map((text, i) => userEntry(TALK.length + i + 1, text)),
      );
      const recallWith = () => createRecall({ store, embedder: paidOf(), sealed: 10, cacheBytes });
      const recall = recallWith();
      expect(await recall.fill(payer, never)).toBe(TALK.length + texts.length);
      expect(await recall.fill(payer, never)).toBe(0);
      expect((await store.scopes.indexParts(key)).length).toBeGreaterThan(1);
      for (const one of [recall, recallWith()]) {
        expect(await first(one)).toBe(TALK[0]);
        expect(await one.fill(payer, never)).toBe(0);
      }
    });

    test('where vectors take more memory than they may, words alone find, which is said, and no more are made', async () => {
      const lines: string[] = [];
      let made = 0;
      const embed: Embedder['embed'] = (texts) => {
        made += texts.length;
        const vectors = texts.map((__, at) => new Float32Array(4_096).fill(0).fill(1, at, at + 1));
        return Promise.resolve({ vectors, tokens: 1 });
      };
      const recall = createRecall({ store, embedder: paidOf({ embed }), cacheBytes: 30_000, log: (line) => lines.push(line) });
      expect(await recall.fill(payer, never)).toBe(TALK.length);
      const notes: string[] = [];
      expect(await found(recall, 'the boat', { onNote: (note: string) => notes.push(note) })).toContain(TALK[2]);
      expect(notes).toEqual([expect.stringContaining('do not fit into PERDURA_SEARCH_CACHE_BYTES')]);
      expect(lines.filter((line) => line.includes('searched by words alone'))).toHaveLength(1);
      await store.entries.append(key, [userEntry(TALK.length + 1, 'Something new')]);
      made = 0;
      expect([await recall.fill(payer, never), made]).toEqual([0, 0]);
      expect(recall.bytes()).toBeLessThan(30_000);
    });

    test('of another model, and of another size, none is compared', async () => {
      const recall = recallOf();
      await recall.fill(payer, never);
      expect(await found(recallOf({ name: 'ollama/another' }))).toEqual([]);
      const shorter: Embedder['embed'] = async (texts) => ({
        vectors: texts.map((text) => Float32Array.from([text === QUESTION || text === TALK[1] ? 1 : 0, 1, 0, 0])),
        tokens: 1,
      });
      const changed = recallOf({ embed: shorter });
      expect(await found(changed)).toEqual([]);
      expect(await changed.fill(payer, never)).toBe(TALK.length);
      expect(await first(changed)).toBe(TALK[1]);
      expect(await first(recallOf())).toBe(TALK[0]);
    });

    test('what was rewound, deleted and forgotten is not found, and what was forgotten keeps no vector', async () => {
      const gone = aConversation({ ...key, conversation: 'conv_9' });
      await store.entries.append(gone, [userEntry(1, 'Teeth teeth teeth')]);
      const recall = recallOf();
      await recall.fill(payer, never);
      expect((await found(recall)).sort()).toEqual(['Teeth teeth teeth', TALK[0]]);
      await store.lives.delete(gone);
      expect(await first(recall)).toBe(TALK[0]);
      await store.documents.forget(key, tombstoneFor({ scope: key.scope, text: TALK[0] ?? '', at: now.getTime() }));
      await dropVectors(store, key);
      expect(await store.vectors.read(key, name)).toHaveLength(TALK.length - 1);
      for (const one of [recall, recallOf()]) expect(await found(one)).toEqual([]);
      const cut = { v: 1, id: 'c', branch: 1, to: 1, begun: 1, since: 1, slot: 9, at: 1738200000, session: 1, slots: [[2, 8]] } as const;
      await store.lives.cut(key, { ...cut, slots: [[2, 8]] });
      for (const one of [recall, recallOf()]) {
        expect(await found(one, 'We sail to Norway in June')).toEqual([]);
        const before = asked().length;
        await one.fill(payer, never);
        expect(asked().slice(before).join()).not.toMatch(/Brandt|Norway|boat|Teeth/);
      }
    });

    test('forgotten while its vector is made: it keeps none', async () => {
      const { embed } = open(api.url) ?? {};
      const recall = recallOf({
        embed: async (texts, options) => {
          const done = await (embed as Embedder['embed'])(texts, options);
          await store.documents.forget(key, tombstoneFor({ scope: key.scope, text: TALK[0] ?? '', at: now.getTime() }));
          return done;
        },
      });
      await recall.fill(payer, never);
      expect(await store.vectors.read(key, name)).toHaveLength(TALK.length - 1);
    });

    test('where the embedder is away, words find what they found, which is said, and it is left alone for a while', async () => {
      const working = recallOf();
      await working.fill(payer, never);
      let calls = 0;
      const recall = recallOf({
        embed: () => {
          calls += 1;
          return Promise.reject(new Error('connection refused'));
        },
      });
      const notes: string[] = [];
      for (let i = 0; i < 3; i += 1) expect(await first(recall, 'the boat', { onNote: (note: string) => notes.push(note) })).toBe(TALK[2]);
      expect([calls, ...new Set(notes)]).toEqual([1, 'found by words alone: the embedder did not answer']);
      await store.entries.append(key, [userEntry(9, 'Something new')]);
      await expect(recall.fill(payer, never)).rejects.toThrow('connection refused');
    });

    test.each<[string, Embedder['embed']]>([
      ['too few', () => Promise.resolve({ vectors: [], tokens: 1 })],
      ['of two sizes', (texts) => Promise.resolve({ vectors: texts.map((_, i) => new Float32Array(i + 1)), tokens: 1 })],
      ['of no numbers', (texts) => Promise.resolve({ vectors: texts.map(() => Float32Array.from([NaN])), tokens: 1 })],
      ['without end', (texts) => Promise.resolve({ vectors: texts.map(() => new Float32Array(10_000)), tokens: 1 })],
    ])('vectors that are %s are refused, and none is written', async (_, embed) => {
      const recall = recallOf({ embed });
      await expect(recall.fill(payer, never)).rejects.toThrow(`cannot use what ${name} answered`);
      expect(await store.vectors.read(key, name)).toEqual([]);
    });

    test('each request is written down as spent, and its conversation is told once; a person’s search counts to no conversation', async () => {
      const paid = paidOf();
      const recall = createRecall({ store, embedder: paid });
      await recall.fill(payer, never);
      await found(recall, QUESTION, { payer });
      const tokens = TALK.length + 1;
      const costUsd = name.startsWith('ollama') ? 0 : null;
      const own = (await spent()).filter(({ conversation }) => conversation === key.conversation);
      expect(own.map(({ kind: of, model, agent, usage }) => [of, model, agent, usage.costUsd])).toEqual([
        ['embedding', name, 'main', costUsd],
        ['embedding', name, 'main', costUsd],
      ]);
      // A price that is not known makes none of the conversation's own unknown.
      expect(paid.takeOwed(key)).toEqual({ inputTokens: tokens, cachedTokens: 0, outputTokens: 0, costUsd: 0 });
      expect(paid.takeOwed(key)).toBeUndefined();
      await found(recall);
      expect((await spent()).filter(({ conversation }) => conversation === `memory:${key.scope}`)).toHaveLength(1);
      expect(paid.takeOwed(key)).toBeUndefined();
      const priced = paidOf({ price: 2 });
      await priced.embed(['a b', 'c'], { of: key, payer });
      expect(priced.takeOwed(key)).toMatchObject({ inputTokens: 2, costUsd: 4e-6 });
    });

    test('in the background they are made after a note, one part at a time; an outage is said once, and ends', async () => {
      const paid = paidOf();
      const recall = createRecall({ store, embedder: paid });
      const lines: string[] = [];
      let [away, clock, most, at] = [true, 0, 0, 0];
      const background = createBackgroundEmbedding({
        recall: {
          fill: async (...given) => {
            at += 1;
            most = Math.max(most, at);
            try {
              if (away) throw new Error('no route');
              return await recall.fill(...given);
            } finally {
              at -= 1;
            }
          },
        },
        embedder: paid,
        log: (line) => lines.push(line),
        now: () => clock,
      });
      background.note(payer);
      await waitFor(
        () => lines.length,
        (count) => count === 1,
      );
      for (let i = 0; i < 5; i += 1) background.note(payer);
      expect(lines).toEqual([expect.stringContaining(`${name} makes no vectors now, and searches go by words: no route`)]);
      away = false;
      clock = 20_000;
      for (let i = 0; i < 5; i += 1) background.note(payer);
      await waitFor(
        async () => (await store.vectors.read(key, name)).length,
        (count) => count === TALK.length,
      );
      expect([most, lines.length]).toEqual([1, 1]);
      await background.close();
      await store.entries.append(key, [userEntry(9, 'Something new')]);
      background.note(payer);
      expect(await store.vectors.read(key, name)).toHaveLength(TALK.length);
    });
  },
);
