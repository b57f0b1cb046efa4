/**
 * A search as a worker does it, over either store: warm, in a worker that has just begun, where nothing is indexed yet, and where only half of
 * the index fits into memory.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRecall, type Recall } from '../../src/memory/recall/recall.js';
import { turnId } from '../../src/records/identity.js';
import type { Entry } from '../../src/records/message.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import type { ScopeKey, Store } from '../../src/stores/store.js';
import { startRedis } from '../../test/support/redis-server.js';
import { talkOf, type Talk } from '../recall/talk.js';
import type { Measured, Row } from '../row.js';

/** Larger ones say no more of the store, and take minutes to write. */
const MOST = 100_000;
const QUESTIONS = 100;
const IN_ONE = 1_000;
const KEY: ScopeKey = { namespace: 'default', scope: 'bench' };
const [WARM_P50, WARM_P95, COLD_MS, LARGE_P50] = [20, 80, 2_000, 200];

export const searchStores: Row = {
  name: 'search-stores',
  async measure(_, { recalled }) {
    const talk = talkOf(Math.min(MOST, Math.max(...recalled)), QUESTIONS, 1);
    const dir = await mkdtemp(join(tmpdir(), 'perdura-bench-'));
    const redis = await startRedis({ appendonly: true });
    const stores = [createFileStore({ dir }), createRedisStore({ url: redis.url })];
    try {
      const measured: Measured[] = [];
      for (const store of stores) measured.push(...(await measureStore(store, talk)));
      return measured;
    } finally {
      for (const store of stores) await store.close();
      await redis.stop();
      await rm(dir, { recursive: true, force: true });
    }
  },
};

async function measureStore(store: Store, talk: Talk): Promise<Measured[]> {
  for (let at = 0; at < talk.said.length; at += IN_ONE) {
    const key = { ...KEY, conversation: `c${at}`, life: `life-${at}` };
    const entries = talk.said.slice(at, at + IN_ONE).map(({ text, ts, session }, i): Entry => ({
      ...{ v: 1, slot: i + 1, session, turn: turnId(i + 1), seq: 1, ts },
      message: { role: 'user', text },
    }));
    await store.entries.append(key, entries);
  }
  const ask = async (recall: Recall, n: number): Promise<number> => {
    const { text, now } = talk.questions[n % talk.questions.length] ?? { text: '', now: 0 };
    const began = performance.now();
    await recall.search(KEY, { question: text, now: new Date(now * 1000), limit: 20 });
    return performance.now() - began;
  };
  const askAll = async (recall: Recall): Promise<readonly [p50: number, p95: number]> => {
    const times: number[] = [];
    for (let n = 0; n < QUESTIONS; n += 1) times.push(await ask(recall, n));
    times.sort((a, b) => a - b);
    return [0.5, 0.95].map((share) => times[Math.floor(times.length * share)] ?? 0) as [number, number];
  };
  const first = await ask(createRecall({ store }), 0);
  const worker = createRecall({ store });
  const cold = await ask(worker, 1);
  const [p50, p95] = await askAll(worker);
  // In ten parts, of which half stay in memory.
  const large = createRecall({ store, cacheBytes: worker.bytes() / 2, sealed: talk.said.length / 10 });
  await store.scopes.removeIndex(KEY, await store.scopes.indexParts(KEY));
  await ask(large, 0);
  const [large50] = await askAll(large);
  const row = `search, ${talk.said.length.toLocaleString('en')} messages, ${store.kind}`;
  const line = (what: string, product: number, most: number, unit = 'ms'): Measured => ({
    ...{ row: `${row}: ${what}`, product, unit, toHold: `≤ ${most.toLocaleString('en')}`, holds: product <= most },
  });
  return [
    line('a question, p50', p50, WARM_P50),
    line('a question, p95', p95, WARM_P95),
    line('the first in a worker that has begun', cold, COLD_MS),
    line('indexing a message, from the store', first / talk.said.length, 1),
    line('a question with half of the index in memory, p50', large50, LARGE_P50),
  ];
}
