/** What a trim leaves in the store and in the prompt: on the file store, with no model. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { summariesByRequest, trim } from '../../src/activities/memory/evict.js';
import type { TrimInput, TrimmedTurns } from '../../src/conversation/context/compaction-effects.js';
import type { Entry } from '../../src/records/message.js';
import { turnId } from '../../src/records/identity.js';
import type { HistoryEntry } from '../../src/records/memory/documents.js';
import { createFileStore } from '../../src/stores/file/index.js';
import type { Store } from '../../src/stores/store.js';

const KEY = { namespace: 'default', scope: 's', conversation: 'c1', life: 'l1' };
const STORY = 'the whole story once more '.repeat(40);
const SINCE = Date.UTC(2026, 10, 1);

let dir: string;
let store: Store;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-trim-'));
  store = createFileStore({ dir });
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

/** Turns of a question and an answer, two slots each, from the first on. */
async function talked(turns: number, words = STORY): Promise<void> {
  const entries = Array.from({ length: turns }, (_, i): Entry[] => {
    const common = { v: 1, session: 1, turn: turnId(i + 1), ts: SINCE / 1000 + i } as const;
    return [
      { ...common, slot: 2 * i + 1, seq: 1, message: { role: 'user', text: `question ${i + 1}: ${words}` }, messageId: `m${i}` },
      {
        ...common,
        ...{ slot: 2 * i + 2, seq: 2 },
        message: { role: 'assistant', blocks: [{ kind: 'text', text: `answer ${i + 1}` }], model: 'a/b', stop: 'end' },
      },
    ];
  });
  await store.entries.append(KEY, entries.flat());
}

async function remembered(requestId: string, text: string, kind: HistoryEntry['kind'] = 'summary', ts = SINCE / 1000 + 60): Promise<void> {
  await store.documents.appendHistory(KEY, { id: `c1/l1/${requestId}`, kind, ts, text });
}

function trimmedBy(
  slots: readonly (readonly [number, number])[],
  more: Partial<TrimInput> = {},
  shows?: Parameters<typeof trim>[3],
): Promise<TrimmedTurns | undefined> {
  const covered = slots.map(([first, last]) => ({ requestId: `s1/${first}-${last}`, slots: [[first, last]] as const }));
  const of = { leftOut: [], before: [], epoch: 2, number: 1, since: SINCE, task: null, baseTokens: 0, session: 1, move: 1 };
  return trim(store, KEY, { covered, ...of, ...more }, shows);
}

test('the consolidation’s own summary stands for what leaves, with the goal and the open tasks; traces are archived', async () => {
  await talked(10);
  await remembered('s1/1-8', 'of another life', 'raw-fallback');
  await remembered('s1/1-8', '[2026-11-01 00:10] They chose pnpm.');
  const trimmed = await trimmedBy([[1, 8]], { task: { goal: '', openTasks: ['write the notes'] } });
  expect(trimmed).toMatchObject({ archived: [[1, 8]], messages: 8, unsummarized: 0 });
  expect(trimmed?.base.text).toMatch(
    /^\[MEMORY:EPISODIC\]\n1\) \[2026-11-01 00:10\] They chose pnpm\.\n {3}\(ep_0001: turns 1–4, \d{4}-\d\d-\d\d\)\n\n\[TASK\]\nThe session began with: question 1: the whole story [^]*… \[1052 characters in all\]\nOpen tasks:\n- write the notes$/,
  );
  expect(await store.bodies.get(KEY, trimmed!.base.ref)).toBe(trimmed!.base.text);
  expect(await store.entries.archived(KEY)).toEqual([[1, 8]]);
  expect((await store.episodes.list(KEY)).episodes).toMatchObject([
    {
      id: 'ep_0001',
      summary: '[2026-11-01 00:10] They chose pnpm.',
      turn_ids: [1, 2, 3, 4].map(turnId),
      session: 1,
      epoch: 2,
      slots: [[1, 8]],
    },
  ]);
});

test('what a consolidation has handed over stands for what leaves, with what tools did; the sources of HISTORY do not', async () => {
  await talked(8);
  await store.entries.append(KEY, [
    {
      ...{ v: 1, session: 1, turn: turnId(4), ts: SINCE / 1000 + 3, slot: 20, seq: 3 },
      message: { role: 'tool', callId: 'c1', name: 'check', outcome: 'error', text: 'no such port', files: { edited: ['src/port.ts'] } },
    },
  ]);
  await remembered('s1/1-8', '[2026-11-01 00:10] They chose pnpm.\n[from: read_file · turn_0002, turn_0004]');
  const { ref } = await store.bodies.put(
    KEY,
    JSON.stringify({ goal: 'Move the port.', summary: 'They moved it to pnpm.', openTasks: ['rename it'] }),
  );
  const covered = [
    { requestId: 's1/1-8', slots: [[1, 8], [20, 20]] as const, handover: ref }, // prettier-ignore
    { requestId: 's1/9-12', slots: [[9, 12]] as const, handover: 'lost' },
  ];
  await remembered('s1/9-12', '[2026-11-01 00:20] They shipped.\n[from: read_file · turn_0005]');
  const trimmed = await trimmedBy([], { covered, task: { goal: 'question 1', goalFrom: 'beginning', openTasks: [] } });
  expect(trimmed?.base.text).toBe(
    '[MEMORY:EPISODIC]\n1) They moved it to pnpm.\n   [2026-11-01 00:20] They shipped.\n   Files edited: src/port.ts\n' +
      '   Tool failures:\n   - turn 4: check (error): no such port\n   (ep_0001: turns 1–6, 2026-11-01)\n\n' +
      '[TASK]\nGoal: Move the port.\nOpen tasks:\n- rename it',
  );
  expect(trimmed).toMatchObject({ unsummarized: 0, task: { goal: 'Move the port.', goalFrom: 'summary' } });
  // What the agent has set stands above it.
  const set = { goal: 'Ship it.', openTasks: ['test'] };
  expect((await trimmedBy([], { covered, task: set, number: 2 }))?.task).toEqual(set);
});

test('what no model has summarized is shown by shortened lines, and counted as it is', async () => {
  await talked(10);
  await remembered('s1/1-8', 'nothing of use', 'raw-fallback');
  await remembered('s1/9-16', '[2026-11-01 00:20] They shipped.');
  const trimmed = await trimmedBy([[1, 8], [9, 16]]); // prettier-ignore
  expect(trimmed).toMatchObject({ messages: 16, unsummarized: 8 });
  const { text } = trimmed!.base;
  expect(text).toContain('1) [2026-11-01 00:20] They shipped.');
  expect(text).toMatch(/Of 8 earlier messages, which no model has summarized, the newest 8 stand here/);
  expect(text).toContain('USER: question 4: the whole story');
  expect(text).not.toContain('question 5');
});

test('where the prompt would not become smaller nothing is written', async () => {
  await talked(10, 'short');
  await remembered('s1/1-8', `[2026-11-01 00:10] ${'They talked. '.repeat(20)}`);
  expect(await trimmedBy([[1, 8]])).toBeUndefined();
  expect(await store.entries.archived(KEY)).toEqual([]);
  expect((await store.episodes.list(KEY)).episodes).toEqual([]);
  // What goes with it counts too.
  expect(await trimmedBy([[1, 8]], { baseTokens: 100 })).toBeDefined();
});

test('what was left out of the prompt before takes nothing there', async () => {
  await talked(10);
  expect(await trimmedBy([[1, 8]], { leftOut: [[1, 8]] })).toBeUndefined();
});

test('done again it says the same, also when a summary has come meanwhile', async () => {
  await talked(10);
  const first = await trimmedBy([[1, 8]]);
  await remembered('s1/1-8', '[2026-11-01 00:10] They chose pnpm.');
  const second = await trimmedBy([[1, 8]]);
  expect(second?.episode).toEqual(first?.episode);
  expect(second?.base).toEqual(first?.base);
});

test('shortened lines go as soon as a model has summarized what they are about, all of it', async () => {
  await talked(14);
  await trimmedBy([[1, 8]]);
  await remembered('s1/9-16', '[2026-11-01 00:20] They shipped.');
  const still = await trimmedBy([[9, 16]], { number: 2 });
  expect(still?.base.text).toContain('USER: question 4: the whole story');
  expect(still).not.toHaveProperty('covers');
  await remembered('s1/1-8', '[2026-11-01 00:10] They chose pnpm.');
  await remembered('s1/17-24', '[2026-11-01 00:30] They slept.');
  const { base, episode, covers, archived } = (await trimmedBy([[17, 24]], { number: 3 }))!;
  expect(base.text).not.toContain('USER: question');
  expect(base.text).toContain('2) [2026-11-01 00:10] They chose pnpm.\n   [2026-11-01 00:30] They slept.\n   (ep_0003: turns 1–12,');
  expect(base.text).toContain('1) [2026-11-01 00:20] They shipped.');
  expect(episode).toMatchObject({ id: 'ep_0003', supersedes: ['ep_0001'], tags: ['trimmed'] });
  expect([archived, covers]).toEqual([[[17, 24]], [[1, 8], [17, 24]]]); // prettier-ignore
});

test('an agent says how much of the memory is shown, and a model that can read a summary is told the tool for it', async () => {
  await talked(10);
  await store.facts.add(
    KEY,
    'batch',
    ['They use pnpm.', 'It rains.'].map((fact) => ({ ts: SINCE / 1000, fact, tags: [], confidence: 0.9, salience: 0.9 })),
    { conversation: 'c1', turn_ids: ['turn_0001'] },
  );
  await remembered('s1/1-4', '[2026-11-01 00:10] They chose pnpm.');
  await trimmedBy([[1, 4]]);
  await remembered('s1/5-8', '[2026-11-01 00:20] They shipped.');
  const base = async (shows?: Parameters<typeof trim>[3]): Promise<string> =>
    (await trimmedBy([[5, 8]], { number: 2 }, shows))?.base.text ?? '';
  const all = await base();
  expect(all).toMatch(/\n1\) .*They chose pnpm\.\n[^]*\n2\) /);
  expect(all).not.toMatch(/Before these|read_episode/);
  const little = await base({ limits: { maxEpisodic: 1, maxSemantic: 1 }, tools: { canRead: true } });
  expect(little).toMatch(/\nBefore these: turns 1–2, [^]* one summary \(ep_0001\)[^]*\nread_episode shows what a summary stands for/);
  expect(little).not.toContain('\n2) ');
  expect(little.match(/^- /gm)).toHaveLength(1);
});

test('what stands before the messages is small beside the line at which a compaction is due', async () => {
  await talked(10);
  await remembered('s1/1-8', 'They told the first tale. '.repeat(60));
  await trimmedBy([[1, 8]]);
  await remembered('s1/9-16', 'They told another tale. '.repeat(60));
  const base = async (line?: number): Promise<string> =>
    (await trimmedBy([[9, 16]], { number: 2, ...(line && { line }) }))?.base.text ?? '';
  expect((await base()).length).toBeGreaterThan(2_800);
  const bounded = await base(1_200);
  expect(bounded.length / 4).toBeLessThanOrEqual(400);
  expect(bounded).toMatch(/another tale[^]*\[TASK\]\nThe session began with: question 1/);
});

test('the goal is what the session began with, also where that stays and later turns leave', async () => {
  await talked(10);
  const trimmed = await trimmedBy([[9, 16]], { before: [[1, 8]] });
  expect(trimmed?.task.goal).toMatch(/^question 1: /);
});

test('of more summaries than one text takes the newest stand there, and how the others are found', async () => {
  await talked(10);
  for (let n = 0; n < 5; n++) await remembered(`s1/${4 * n + 1}-${4 * n + 4}`, `[2026-11-01 00:1${n}] ${`They did ${n}. `.repeat(390)}`);
  const trimmed = await trimmedBy(
    [0, 1, 2, 3, 4].map((n) => [4 * n + 1, 4 * n + 4] as const),
    { baseTokens: 100_000 },
  );
  const { summary } = trimmed!.episode;
  expect(summary.length).toBeLessThan(12_200);
  expect(summary).toContain('They did 4.');
  expect(summary).toMatch(/^\[left out here: [123] earlier summar(y|ies); search_history finds them\]/);
});

test('a summary is found by its request, and a raw fallback is none', async () => {
  await remembered('s1/1-8', 'x');
  await remembered('s1/9-16', 'x', 'raw-fallback');
  const summaries = await summariesByRequest(store.documents, KEY, { requestIds: ['s1/1-8', 's1/9-16'], since: SINCE });
  expect([...summaries.keys()]).toEqual(['s1/1-8']);
});
