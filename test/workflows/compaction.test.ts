/** Long conversations on a small model: older turns become memory, what was said in them stays known, and every request fits. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { createFileStore } from '../../src/stores/file/index.js';
import { textOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { fin, httpError, overloaded, rateLimited } from '../support/provider-apis/faults.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import { getTime } from '../../src/tools/builtin/index.js';
import { listFiles } from '../../src/tools/builtin/files/list-files.js';
import { readFile } from '../../src/tools/builtin/files/read-file.js';
import { searchFiles } from '../../src/tools/builtin/files/search-files.js';
import { readEpisode, searchHistory } from '../../src/tools/builtin/memory-tools.js';
import { setTask } from '../../src/tools/builtin/conversation-tools.js';
import { heal } from '../../src/heal/heal.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say, type Stage } from '../support/stage.js';
import { testReplays } from '../support/replays.js';
import { startWorld, type World } from '../support/world.js';

/** With all tools there would be little room for anything else. */
const SMALL = {
  maxTokens: 500,
  tools: ['get_time', 'list_files', 'read_file', 'search_files', 'search_history', 'set_task', 'patch'],
  memory: { enabled: false },
  context: { maxTokens: 6_000, safetyMargin: 500 },
};
/** About 400 tokens. */
const LONG = 'The harbour master keeps the ledger. '.repeat(43);

/** Says what it did to files. */
const patch = defineTool({
  name: 'patch',
  description: 'Changes a file.',
  input: z.object({ path: z.string() }),
  run: ({ path }) => ({ ok: true, content: 'changed', files: { edited: [path] } }),
});

const stage: Stage = createStage();
let summaries: ApiRequest[] = [];
let refusesSchemas = false;
let notes: ApiRequest[] = [];
let summarizer: () => string | Reply = () => '';
let world: World;

beforeAll(async () => {
  world = await startWorld({
    agent: SMALL,
    // Named one by one: how much room the tools leave in so small a context decides when it is compacted.
    tools: [getTime, listFiles, readEpisode, readFile, searchFiles, searchHistory, setTask, patch],
    answer: (request) => {
      if (isFor(request, 'You take notes on one piece')) {
        notes.push(request);
        return text(`Notes: ${/FACT-\w+/.exec(JSON.stringify(request.messages))?.[0] ?? 'nothing'}`);
      }
      if (!isFor(request, 'You condense a part of a conversation')) return stage.answer(request);
      summaries.push(request);
      if (refusesSchemas && request.output_config !== undefined) return httpError(400, { message: 'output_config: Extra inputs' });
      const said = summarizer();
      return typeof said === 'string' ? text(said) : said;
    },
  });
});
beforeAll(() => world.writeAgent('roomy', { ...SMALL, context: { maxTokens: 9_000, safetyMargin: 500 } }));
afterAll(() => world.close());
beforeEach(() => {
  summaries = [];
  notes = [];
  refusesSchemas = false;
  summarizer = () =>
    JSON.stringify({
      episodic: { summary: 'They spoke of the harbour. The password of the day is plum.', tags: ['harbour'], salience: 0.7 },
      semantic: [{ fact: 'The person prefers short answers.', tags: ['preference'], confidence: 0.9, salience: 0.8 }],
    });
});
afterEach(() => expect(world.api.problems).toEqual([]));

function isFor({ system }: ApiRequest, words: string): boolean {
  return JSON.stringify(system ?? '').includes(words);
}

async function talk(id: string, turns: number, from = 1): Promise<void> {
  for (let n = from; n < from + turns; n++) {
    stage.play(id, text(`${n}: ${LONG}`));
    expect(await world.client.send(id, { id: `m${n}`, text: say(id, `turn ${n}`) })).toMatchObject({ stopReason: 'end' });
  }
}

const said = (request: ApiRequest | undefined): string[] => (request?.messages ?? []).map(({ content }) => textOf(content));

test('what was said long ago is in the memory that each later request begins with, and every request fits', async () => {
  const id = world.id();
  // Room for the newest four turns and a quarter of it more: else these would not stay.
  await world.client.start(id, { agent: 'roomy' });
  await talk(id, 14);
  const status = await world.client.status(id);
  expect(status.context.compactions).toBeGreaterThanOrEqual(1);
  expect(status.epoch).toBe(1 + status.context.compactions);
  expect(status.context.prefixChanges).toBe(status.context.compactions);
  const last = said(stage.requests(id).at(-1));
  expect(last[0]).toContain('[MEMORY:EPISODIC]\n1) They spoke of the harbour. The password of the day is plum.');
  expect(last[0]).toContain('[MEMORY:SEMANTIC]\n- The person prefers short answers.');
  expect(last[0]).toContain(`${id} turn 1`);
  // The newest four turns are there word for word, and the running one.
  for (const n of [10, 11, 12, 13]) expect(last.join('\n')).toContain(`${n}: The harbour`);
  expect(last.join('\n')).not.toContain(`\n1: The harbour`);
  for (const request of stage.requests(id)) expect(JSON.stringify(request).length / 4).toBeLessThan(9_500);
  expect(await workflowTaskFailures(world, id)).toEqual([]);

  const key = await world.client.key(id);
  const { episodes } = await world.store.episodes.list(key);
  expect(episodes.at(-1)).toMatchObject({ id: 'ep_0001', session: 1, turn_ids: expect.arrayContaining(['turn_0001']) });
  expect((await world.store.facts.list(key)).facts.map(({ fact }) => fact)).toContain('The person prefers short answers.');
  expect((await world.store.entries.archived(key)).length).toBeGreaterThan(0);
  // Nothing is gone: history has it all.
  expect((await world.client.history(id)).filter(({ message }) => message.role === 'user')).toHaveLength(14);
});

test.each([
  ['prose', 'I am sorry, I cannot do that.', 'rules'],
  ['half JSON', '{"episodic": {"summary": "cut', 'rules'],
  ['nothing', '', 'rules'],
])('a summarizer that answers %s fails no turn', async (_, answer, method) => {
  const id = world.id();
  await world.client.start(id);
  await talk(id, 7);
  summaries = [];
  summarizer = () => answer;
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method });
  expect(summaries).toHaveLength(answer === '' ? 2 : 2);
  await talk(id, 1, 8);
  expect(said(stage.requests(id).at(-1))[0]).toContain('[MEMORY:EPISODIC]');
});

/** What the summarizer answers when it has what it needs. */
const summaryOf = (summary: string, ...facts: string[]): string =>
  JSON.stringify({
    episodic: { summary, tags: [], salience: 0.7 },
    semantic: facts.map((fact) => ({ fact, tags: [], confidence: 0.9, salience: 0.8 })),
  });
const asked = ({ messages }: ApiRequest): string => messages.map(({ content }) => textOf(content)).join('\n');

test.each([
  ['is overloaded', overloaded()],
  ['asks for a moment', rateLimited({ retryAfter: 1 })],
  ['breaks off in the middle', fin(4, text('{"episodic": {"summary": "half of'))],
])('a summarizer that %s is asked again, and its summary counts', async (_, weather) => {
  const id = world.id();
  await world.client.start(id);
  await talk(id, 7);
  summaries = [];
  summarizer = () => (summaries.length === 1 ? weather : summaryOf('They spoke of plums.'));
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method: 'model' });
  expect(summaries).toHaveLength(2);
});

test('what rules had to summarize is read by the model at the next compaction, whose summary stands in its place; undone, it is back', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'roomy' });
  await talk(id, 6);
  summarizer = () => 'I cannot.';
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method: 'rules' });
  await talk(id, 3, 7);
  summaries = [];
  summarizer = () => summaryOf('They spoke of plums.');
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method: 'model' });
  for (const n of [1, 2, 3, 4]) expect(asked(summaries[0]!)).toContain(`Turn ${n}:\n  User: ${id} turn ${n}`);

  const key = await world.client.key(id);
  const { episodes } = await world.store.episodes.list(key);
  expect(episodes.map((episode) => [episode.id, episode.supersedes])).toEqual([
    ['ep_0002', ['ep_0001']],
    ['ep_0001', undefined],
  ]);
  expect(episodes[0]!.turn_ids).toEqual(['turn_0001', 'turn_0002', ...episodes[0]!.turn_ids.slice(2)]);
  expect(episodes[0]!.slots[0]).toEqual([1, expect.any(Number)]);
  await talk(id, 1, 10);
  const [first] = said(stage.requests(id).at(-1));
  expect(first).toContain('[MEMORY:EPISODIC]\n1) They spoke of plums.');
  expect(first).not.toContain('asked:');

  // A healed store says the same.
  await world.store.episodes.remove(key, 'ep_0002');
  await heal({ service: world.temporal.workflowService, store: world.store, rememberedBy: () => Promise.resolve([]) }, key);
  expect((await world.store.episodes.list(key)).episodes).toEqual(episodes);

  expect(await world.client.undoCompaction(id)).toMatchObject({ kind: 'undone' });
  expect((await world.store.episodes.list(key)).episodes).toEqual([episodes[1]]);
  // Its turns are read again by the next one.
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method: 'model' });
  expect((await world.store.episodes.list(key)).episodes[0]).toMatchObject({ id: 'ep_0003', supersedes: ['ep_0001'] });
});

/** The id that the summarizer was shown for these words. */
const idOf = (words: string): string => new RegExp(`^- (sem_\\d+): ${words}`, 'm').exec(asked(summaries.at(-1)!))?.[1] ?? 'unknown';
const fact = (text: string, supersedes: string[] = []) => ({ fact: text, tags: [], confidence: 0.9, salience: 0.8, supersedes });
const learning = (semantic: object[], retired: string[] = []): string =>
  JSON.stringify({ episodic: { summary: 'They chose.', tags: [], salience: 0.7 }, semantic, retired });

test('a fact that has changed makes way for the newer one, in prompts and in what is learnt; undone or healed it is as it was', async () => {
  const id = world.id();
  await world.client.start(id, { scope: `scope-${id.slice(2, 10)}` });
  const key = await world.client.key(id);
  const factsOf = async () => (await world.store.facts.list(key, { all: true })).facts.sort((a, b) => (a.id < b.id ? -1 : 1));
  await talk(id, 6);
  summarizer = () => learning([fact('The project uses npm.'), fact('The office is in Bergen.'), fact('It is winter.')]);
  await world.client.compact(id);
  await talk(id, 3, 7);
  summarizer = () => learning([fact('The project uses pnpm.', [idOf('The project uses npm'), 'sem_0003'])], ['sem_0077']);
  await world.client.compact(id);
  await talk(id, 1, 10);
  const [first] = said(stage.requests(id).at(-1));
  expect(first).toContain('- The project uses pnpm.');
  expect(first).toContain('- The office is in Bergen.');
  expect(first).not.toMatch(/uses npm|winter/);
  const facts = await factsOf();
  expect(facts.map(({ id: own, replaced }) => [own, replaced?.by])).toEqual([
    ['sem_0001', 'sem_0004'],
    ['sem_0002', undefined],
    ['sem_0003', 'sem_0004'],
    ['sem_0004', undefined],
  ]);
  const shown = await world.client.memory(id);
  expect(shown.facts.map((one) => one.id).sort()).toEqual(['sem_0002', 'sem_0004']);
  expect((await world.client.memory(id, { all: true })).facts).toHaveLength(4);

  // A store that has lost everything.
  const dir = await mkdtemp(join(tmpdir(), 'perdura-lost-'));
  const store = createFileStore({ dir });
  await heal({ service: world.temporal.workflowService, store, rememberedBy: () => Promise.resolve([]) }, key);
  expect((await store.facts.list(key, { all: true })).facts.sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual(facts);
  await store.close();
  await rm(dir, { recursive: true });

  expect(await world.client.undoCompaction(id)).toMatchObject({ kind: 'undone' });
  expect((await factsOf()).map(({ id: own, replaced }) => [own, replaced])).toEqual([
    ['sem_0001', undefined],
    ['sem_0002', undefined],
    ['sem_0003', undefined],
  ]);
});

test('a fact is retired where people alone spoke, and by no tool’s word', async () => {
  const id = world.id();
  await world.client.start(id, { scope: `scope-${id.slice(2, 10)}` });
  const key = await world.client.key(id);
  const retiredIn = async () => (await world.store.facts.list(key, { all: true })).facts.flatMap((one) => (one.replaced ? [one.fact] : []));
  await talk(id, 6);
  summarizer = () => learning([fact('It is winter.'), fact('The door is locked.')]);
  await world.client.compact(id);
  stage.play(id, callTool('patch', { path: 'a.ts' }), text('Done.'));
  await world.client.send(id, { id: 'patch', text: say(id, 'change it') });
  await talk(id, 4, 7);
  summarizer = () => learning([], [idOf('The door is locked')]);
  await world.client.compact(id);
  expect(asked(summaries.at(-1)!)).toContain('Tool result: patch');
  expect(await retiredIn()).toEqual([]);
  await talk(id, 3, 11);
  summarizer = () => learning([], [idOf('It is winter')]);
  await world.client.compact(id);
  expect(asked(summaries.at(-1)!)).not.toContain('Tool result: patch');
  expect(await retiredIn()).toEqual(['It is winter.']);
});

test('of many compactions three summaries are shown, the others as one text that the same answers make, and all can be read', async () => {
  await world.writeAgent('reader', { ...SMALL, tools: [...SMALL.tools, 'read_episode'] });
  const id = world.id();
  await world.client.start(id, { agent: 'reader' });
  await talk(id, 6);
  for (let n = 1; n <= 5; n++) {
    summaries = [];
    const folds = (): boolean => asked(summaries.at(-1)!).includes('to be folded into one text');
    summarizer = () =>
      JSON.stringify({
        episodic: { summary: `Part ${n}.`, tags: [], salience: 0.7 },
        semantic: [],
        fold: folds() ? `All before part ${n - 2}.` : 'Nobody asked for this.',
      });
    expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method: 'model' });
    expect(summaries).toHaveLength(1);
    await talk(id, 1, 6 + n);
  }
  const [first] = said(stage.requests(id).at(-1));
  const day = new Date().toISOString().slice(0, 7);
  expect(first).toMatch(
    new RegExp(
      `^\\[This is not from the person: .*\\]\\n\\n\\[MEMORY:EPISODIC\\]\\n` +
        `Before these: turns 1–3, ${day}-\\d\\d, in 2 summaries \\(ep_0001 to ep_0002\\); in short:\\n   All before part 3\\.\\n` +
        `1\\) Part 3\\.\\n.*\\n2\\) Part 4\\.\\n[^]*3\\) Part 5\\.\\n   \\(ep_0005: turn 6, ${day}-\\d\\d\\)\\nread_episode shows`,
    ),
  );
  expect(first).not.toContain('Nobody asked');

  const key = await world.client.key(id);
  const { episodes } = await world.store.episodes.list(key);
  stage.play(id, callTool('read_episode', { id: 'ep_0001' }), callTool('read_episode', { id: 'ep_0001', turn: 2 }), text('Read.'));
  await world.client.send(id, { id: 'read', text: say(id, 'what was part 1?') });
  const results = (await world.client.history(id)).flatMap(({ message }) => (message.role === 'tool' ? [String(message.text)] : []));
  expect(results[0]).toMatch(
    /^ep_0001, turns 1, 2, summarized [^]*\n\nPart 1\.\n\nIts turns[^]*\nTurn 1: asked: .* turn 1 \| answered: 1: The harbour/,
  );
  expect(results[1]).toMatch(/\n\nTurn 2:\n {2}User: .* turn 2\n {2}Assistant: 2: The harbour/);
  expect(results[1]).not.toContain('1: The harbour');

  // A healed store has the same folds.
  expect(episodes.map(({ fold }) => fold?.through)).toEqual(['ep_0002', 'ep_0001', undefined, undefined, undefined]);
  await world.store.episodes.remove(key, 'ep_0005');
  await heal({ service: world.temporal.workflowService, store: world.store, rememberedBy: () => Promise.resolve([]) }, key);
  expect((await world.store.episodes.list(key)).episodes).toEqual(expect.arrayContaining(episodes));
});

test('an agent says how many turns, summaries and facts its prompts have', async () => {
  const little = { ...SMALL.context, keepTurns: 1, maxEpisodic: 1, maxSemantic: 1 };
  await world.writeAgent('little', { ...SMALL, context: little });
  const id = world.id();
  await world.client.start(id, { agent: 'little', scope: id });
  await talk(id, 5);
  for (let n = 1; n <= 2; n++) {
    summarizer = () =>
      JSON.stringify({
        episodic: { summary: `Part ${n}.`, tags: [], salience: 0.7 },
        semantic: [{ fact: `Fact ${n} is true.`, tags: [], confidence: 0.9, salience: 0.8 }],
        fold: n === 2 ? 'All before.' : '',
      });
    expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method: 'model' });
    await talk(id, 1, 5 + n);
  }
  const [first = '', ...after] = said(stage.requests(id).at(-1));
  expect(first).toMatch(/\n\[MEMORY:EPISODIC\]\nBefore these: turns 1–4, .*in short:\n {3}All before\.\n1\) Part 2\.\n/);
  expect(first.match(/^- Fact/gm)).toHaveLength(1);
  // The newest turn that had ended, and the one that ran.
  expect(after.filter((text) => text.includes('The harbour'))).toHaveLength(1);
  await world.client.reset(id);
  await talk(id, 1, 8);
  expect(said(stage.requests(id).at(-1))[0]).toMatch(
    /^\[This is not from the person: .*\]\n\n\[MEMORY:SEMANTIC\]\n- Fact \d is true\.(?!\n-)/,
  );
});

test('what is summarized by rules again stands beside what was', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'roomy' });
  await talk(id, 6);
  summarizer = () => 'I cannot.';
  await world.client.compact(id);
  await talk(id, 3, 7);
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method: 'rules' });
  const { episodes } = await world.store.episodes.list(await world.client.key(id));
  expect(episodes.map(({ supersedes }) => supersedes)).toEqual([undefined, undefined]);
  const [newer = [], older = []] = episodes.map(({ turn_ids }) => turn_ids);
  expect(older).toEqual(['turn_0001', 'turn_0002']);
  expect(newer).not.toContain('turn_0001');
});

test('of a message that is longer than the summarizer takes at once its middle is read in pieces', async () => {
  const id = world.id();
  await world.client.start(id);
  const paste = `${'a ledger line. '.repeat(500)} FACT-plum ${'a ledger line. '.repeat(500)}`;
  stage.play(id, text('Read.'));
  await world.client.send(id, { id: 'paste', text: say(id, paste) });
  // It is too long to stay: the first turn after it finds it summarized.
  summarizer = () => summaryOf(`They read of ${/FACT-\w+/.exec(asked(summaries.at(-1)!))?.[0] ?? 'nothing'}.`);
  await talk(id, 5, 2);
  await world.client.compact(id);
  expect(notes.length).toBeGreaterThan(0);
  for (const request of [...notes, ...summaries]) expect(JSON.stringify(request).length / 4).toBeLessThan(6_000);
  await talk(id, 1, 7);
  expect(said(stage.requests(id).at(-1))[0]).toContain('They read of FACT-plum.');
});

test('a compaction that is tried again reads no piece twice, and what the first attempt cost counts', async () => {
  const id = world.id();
  await world.client.start(id);
  const paste = `${'a ledger line. '.repeat(500)} FACT-plum ${'a ledger line. '.repeat(500)}`;
  stage.play(id, text('Read.'));
  await world.client.send(id, { id: 'paste', text: say(id, paste) });
  summaries = [];
  notes = [];
  summarizer = () => (summaries.length === 1 ? overloaded() : summaryOf('They read.'));
  await talk(id, 5, 2);
  await world.client.compact(id);
  expect(summaries.length).toBeGreaterThan(1);
  const read = notes.map((request) => asked(request));
  expect(read.length).toBeGreaterThan(0);
  expect(new Set(read).size).toBe(read.length);
});

test('undone, the next request is byte for byte what it would have been', async () => {
  const [one, other] = [world.id(), world.id()];
  for (const id of [one, other]) {
    await world.client.start(id);
    await talk(id, 6);
  }
  expect(await world.client.compact(one)).toMatchObject({ kind: 'compacted', epoch: 2, turns: 2 });
  expect(await world.client.context(one)).toMatchObject({ epoch: 2, canUndo: true });
  expect(await world.client.undoCompaction(one)).toMatchObject({ kind: 'undone', epoch: 3 });
  expect(await world.client.undoCompaction(one)).toEqual({ kind: 'nothing-to-undo' });
  for (const id of [one, other]) await talk(id, 1, 7);
  const bytes = (id: string): string => JSON.stringify(stage.requests(id).at(-1)).replaceAll(id, 'ID');
  expect(bytes(one)).toBe(bytes(other));
  const key = await world.client.key(one);
  expect((await world.store.episodes.list(key)).episodes).toEqual([]);
  expect(await world.store.entries.archived(key)).toEqual([]);
});

test('asked too early there is nothing to do, and asked again later there is', async () => {
  const id = world.id();
  await world.client.start(id);
  await talk(id, 2);
  expect(await world.client.compact(id)).toEqual({ kind: 'nothing-to-compact' });
  await talk(id, 4, 3);
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', epoch: 2 });
});

test('a new session knows what the scope knows, and nothing of the turns of the old one', async () => {
  const id = world.id();
  await world.client.start(id, { scope: `scope-${id.slice(2, 10)}` });
  await talk(id, 7);
  await world.client.compact(id);
  await world.client.reset(id);
  await talk(id, 1, 8);
  const [first, ...rest] = said(stage.requests(id).at(-1));
  expect(first).toContain('[MEMORY:SEMANTIC]\n- The person prefers short answers.');
  expect(first).not.toContain('EPISODIC');
  expect(first).not.toContain('harbour');
  expect(rest.join('')).not.toContain('turn 7');
});

test('the goal and the open tasks that set_task has pinned are in every request after a compaction; a goal stays until another is said', async () => {
  const id = world.id();
  await world.client.start(id);
  await talk(id, 3);
  stage.play(
    id,
    callTool('set_task', { goal: 'Find the plum thief', openTasks: ['ask the harbour master', 'read the ledger'] }),
    text('Pinned.'),
  );
  await world.client.send(id, { id: 'pin', text: say(id, 'find the thief') });
  await talk(id, 4, 4);
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted' });
  await talk(id, 1, 8);
  const task = '[TASK]\nGoal: Find the plum thief\nOpen tasks:\n- ask the harbour master\n- read the ledger';
  expect(said(stage.requests(id).at(-1))[0]).toContain(task);

  stage.play(id, callTool('set_task', { openTasks: ['rest'] }), text('Pinned.'));
  await world.client.send(id, { id: 'pin again', text: say(id, 'that is done') });
  await talk(id, 4, 9);
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted' });
  await talk(id, 1, 13);
  expect(said(stage.requests(id).at(-1))[0]).toContain('[TASK]\nGoal: Find the plum thief\nOpen tasks:\n- rest');
});

test('the files that a tool says it changed are in its entry and in the summary of its turn', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(id, callTool('patch', { path: 'harbour.ts' }), text('Done.'));
  await world.client.send(id, { id: 'patch', text: say(id, 'change it') });
  await talk(id, 5);
  const history = await world.client.history(id);
  expect(history.find(({ message }) => message.role === 'tool')?.message).toMatchObject({ files: { edited: ['harbour.ts'] } });
  await world.client.compact(id);
  await talk(id, 1, 6);
  expect(said(stage.requests(id).at(-1))[0]).toMatch(/harbour\.ts/);
});

test('a model that says its context is full is asked again with less', async () => {
  const id = world.id();
  await world.client.start(id);
  await talk(id, 6);
  stage.play(id, { ...text(''), stopReason: 'model_context_window_exceeded' }, text('That fits.'));
  expect(await world.client.send(id, { id: 'more', text: say(id, 'more') })).toMatchObject({ stopReason: 'end', text: 'That fits.' });
  expect((await world.client.status(id)).context.compactions).toBe(1);
});

test('a summarizer that is known to hold its answer to a schema is given that of a summary, and no other call is', async () => {
  await world.writeAgent('schema', { ...SMALL, context: { ...SMALL.context, summaryModel: 'anthropic/claude-haiku-4-5' } });
  const id = world.id();
  await world.client.start(id, { agent: 'schema' });
  await talk(id, 11);
  expect(summaries[0]).toMatchObject({
    model: 'claude-haiku-4-5',
    output_config: {
      format: {
        type: 'json_schema',
        schema: { required: ['episodic', 'semantic', 'retired', 'fold', 'goal', 'openTasks'], additionalProperties: false },
      },
    },
  });
  expect(stage.requests(id).map((request) => request.output_config)).toEqual(Array(11).fill(undefined));
});

test('one that is refused the schema after all is asked without it', async () => {
  refusesSchemas = true;
  await world.writeAgent('schema', { ...SMALL, context: { ...SMALL.context, summaryModel: 'anthropic/claude-haiku-4-5' } });
  const id = world.id();
  await world.client.start(id, { agent: 'schema' });
  await talk(id, 11);
  expect(summaries.slice(0, 2).map((request) => request.output_config !== undefined)).toEqual([true, false]);
  expect(said(stage.requests(id).at(-1))[0]).toContain('The password of the day is plum.');
});

testReplays(() => world);
