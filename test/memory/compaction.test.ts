import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { turnId } from '../../src/records/identity.js';
import { memoryBundle } from '../../src/memory/compaction/snapshot.js';
import { summarize } from '../../src/memory/compaction/summary.js';
import type { Ask } from '../../src/memory/long-record.js';
import { compactionWindow } from '../../src/memory/compaction/window.js';
import { episodicId } from '../../src/records/memory/items.js';
import { retrieve } from '../../src/memory/facts.js';
import { toTraces } from '../../src/memory/traces.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { conversationDir } from '../../src/stores/file/paths.js';
import type { Store } from '../../src/stores/store.js';
import { chat } from './builders.js';

const KEY = { namespace: 'default', scope: 'default', conversation: 'conv_8', life: 'life-1' };
const SOURCE = { conversation: 'conv_8', turn_ids: ['turn_0001'] };

let dir: string;
let store: Store;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-memory-'));
  store = createFileStore({
    dir,
    traceLines: (entry, { conversation }) => toTraces(entry, conversation).map((trace) => JSON.stringify(trace)),
  });
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true });
});

const answering =
  (summary: string, ...facts: string[]): Ask =>
  async () =>
    Promise.resolve(
      JSON.stringify({
        episodic: { summary, tags: [], salience: 0.5 },
        semantic: facts.map((fact) => ({ fact, tags: [], confidence: 0.9, salience: 0.9 })),
      }),
    );

/** As a compaction does it, each step of which may be done again. */
async function compact(epoch: number, currentTurn: number, ask: Ask): Promise<void> {
  const { entries } = await store.entries.page(KEY, 0, 10_000);
  const archived = new Set(
    (await store.entries.archived(KEY)).flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i)),
  );
  const window = compactionWindow(
    entries.filter(({ slot }) => !archived.has(slot)),
    { currentTurn: turnId(currentTurn) },
  );
  const { episodic, semantic } = await summarize(ask, window.entries);
  const ts = 1738100500 + epoch;
  const episode = { ...episodic, id: episodicId(epoch), ts, turn_ids: window.turnIds, session: 1, epoch, slots: window.slots };
  await store.facts.add(
    KEY,
    `life-1/${epoch}`,
    semantic.map((item) => ({ ...item, ts })),
    SOURCE,
  );
  await store.episodes.add(KEY, episode);
  await store.entries.archive(KEY, window.slots, 1);
}

async function remembered(): Promise<string> {
  const { episodes } = await store.episodes.list(KEY, { session: 1 });
  const { facts } = await store.facts.list(KEY);
  return memoryBundle({ ...retrieve(episodes, facts), goal: 'question 1' });
}

const active = () => readFile(join(conversationDir(dir, KEY), 'raw_traces.jsonl'), 'utf8');

test('compactions in a row keep summaries and facts, and every entry stays readable', async () => {
  await store.entries.append(KEY, chat(30));
  await compact(1, 10, answering('First part.', 'The code is QX-4471.'));
  await compact(2, 20, answering('Second part.', 'The code is  QX-4471.', 'Use pnpm.'));
  await compact(3, 30, answering('Third part.'));
  expect(await remembered()).toBe(
    [
      [
        '[MEMORY:EPISODIC]\n1) Third part.\n   (ep_0003: turns 16–25, 2025-01-28)',
        '2) Second part.\n   (ep_0002: turns 6–15, 2025-01-28)',
        '3) First part.\n   (ep_0001: turns 1–5, 2025-01-28)',
      ].join('\n'),
      '[MEMORY:SEMANTIC]\n- Use pnpm.\n- The code is QX-4471.',
      '[TASK]\nGoal: question 1',
    ].join('\n\n'),
  );
  expect((await store.episodes.list(KEY)).episodes.map(({ turn_ids: [first], slots }) => [first, slots])).toEqual([
    ['turn_0016', [[31, 50]]],
    ['turn_0006', [[11, 30]]],
    ['turn_0001', [[1, 10]]],
  ]);
  expect(await store.entries.archived(KEY)).toEqual([[1, 50]]);
  expect((await store.entries.page(KEY, 0, 100)).entries).toEqual(chat(30));
});

test('a compaction that is done again changes nothing', async () => {
  await store.entries.append(KEY, chat(10));
  await compact(1, 10, answering('First part.', 'Use pnpm.'));
  const before = [await remembered(), await active(), await store.facts.list(KEY)];
  // As an attempt would whose answer was lost: with the window of the first, and another summary.
  const { facts } = await store.facts.list(KEY);
  await store.facts.add(KEY, 'life-1/1', [{ ...(facts[0] as (typeof facts)[0]), fact: 'Use npm.' }], SOURCE);
  await store.episodes.add(KEY, {
    id: 'ep_0001',
    ts: 1,
    turn_ids: [],
    summary: 'Other.',
    tags: [],
    salience: 0,
    session: 1,
    epoch: 1,
    slots: [],
  });
  await store.entries.archive(KEY, [[1, 10]], 1);
  expect([await remembered(), await active(), await store.facts.list(KEY)]).toEqual(before);
});

test('undone, traces and memory are byte for byte as before, and what was known before stays known', async () => {
  await store.entries.append(KEY, chat(20));
  await compact(1, 10, answering('First part.', 'Use pnpm.'));
  const before = [await remembered(), await active()];
  await compact(2, 20, answering('Second part.', 'Use pnpm.', 'A misunderstanding.'));
  const [newest] = (await store.episodes.list(KEY, { limit: 1 })).episodes;
  await store.entries.restore(KEY, newest?.slots ?? [], 2);
  const learnt = (await store.facts.list(KEY)).facts.filter(({ batch }) => batch === 'life-1/2');
  await store.facts.remove(
    KEY,
    learnt.map(({ id }) => id),
  );
  await store.episodes.remove(KEY, newest?.id ?? '');
  expect([await remembered(), await active()]).toEqual(before);
});
