/** Long conversations on a small model: older turns become memory, what was said in them stays known, and every request fits. */
import { z } from 'zod';
import { textOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { httpError } from '../support/provider-apis/faults.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { getTime } from '../../src/tools/builtin/get-time.js';
import { listFiles } from '../../src/tools/builtin/files/list-files.js';
import { readFile } from '../../src/tools/builtin/files/read-file.js';
import { searchFiles } from '../../src/tools/builtin/files/search-files.js';
import { searchHistory } from '../../src/tools/builtin/memory/search-history.js';
import { setTask } from '../../src/tools/builtin/conversation-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say, type Stage } from '../support/stage.js';
import { replayProblems } from '../support/replays.js';
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
let summarizer: () => string = () => '';
let world: World;

beforeAll(async () => {
  world = await startWorld({
    agent: SMALL,
    // Named one by one: how much room the tools leave in so small a context decides when it is compacted.
    tools: [getTime, listFiles, readFile, searchFiles, searchHistory, setTask, patch],
    answer: (request) => {
      if (!isSummary(request)) return stage.answer(request);
      summaries.push(request);
      if (refusesSchemas && request.output_config !== undefined) return httpError(400, { message: 'output_config: Extra inputs' });
      return text(summarizer());
    },
  });
});
beforeAll(() => world.writeAgent('roomy', { ...SMALL, context: { maxTokens: 9_000, safetyMargin: 500 } }));
afterAll(() => world.close());
beforeEach(() => {
  summaries = [];
  refusesSchemas = false;
  summarizer = () =>
    JSON.stringify({
      episodic: { summary: 'They spoke of the harbour. The password of the day is plum.', tags: ['harbour'], salience: 0.7 },
      semantic: [{ fact: 'The person prefers short answers.', tags: ['preference'], confidence: 0.9, salience: 0.8 }],
    });
});
afterEach(() => expect(world.api.problems).toEqual([]));

function isSummary({ system }: ApiRequest): boolean {
  return JSON.stringify(system ?? '').includes('You condense a part of a conversation');
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
}, 120_000);

test.each([
  ['prose', 'I am sorry, I cannot do that.', 'rules'],
  ['half JSON', '{"episodic": {"summary": "cut', 'rules'],
  ['nothing', '', 'rules'],
])(
  'a summarizer that answers %s fails no turn',
  async (_, answer, method) => {
    const id = world.id();
    await world.client.start(id);
    await talk(id, 7);
    summaries = [];
    summarizer = () => answer;
    expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method });
    expect(summaries).toHaveLength(answer === '' ? 2 : 2);
    await talk(id, 1, 8);
    expect(said(stage.requests(id).at(-1))[0]).toContain('[MEMORY:EPISODIC]');
  },
  120_000,
);

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
}, 120_000);

test('asked too early there is nothing to do, and asked again later there is', async () => {
  const id = world.id();
  await world.client.start(id);
  await talk(id, 2);
  expect(await world.client.compact(id)).toEqual({ kind: 'nothing-to-compact' });
  await talk(id, 4, 3);
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', epoch: 2 });
}, 60_000);

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
}, 120_000);

test('the goal and the open tasks that set_task has pinned are in every request after a compaction; what was left out is the first message again', async () => {
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
  expect(said(stage.requests(id).at(-1))[0]).toContain(`[TASK]\nGoal: ${id} turn 1\nOpen tasks:\n- rest`);
}, 120_000);

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
}, 120_000);

test('a model that says its context is full is asked again with less', async () => {
  const id = world.id();
  await world.client.start(id);
  await talk(id, 6);
  stage.play(id, { ...text(''), stopReason: 'model_context_window_exceeded' }, text('That fits.'));
  expect(await world.client.send(id, { id: 'more', text: say(id, 'more') })).toMatchObject({ stopReason: 'end', text: 'That fits.' });
  expect((await world.client.status(id)).context.compactions).toBe(1);
}, 120_000);

test('a summarizer that is known to hold its answer to a schema is given that of a summary, and no other call is', async () => {
  await world.writeAgent('schema', { ...SMALL, context: { ...SMALL.context, summaryModel: 'anthropic/claude-haiku-4-5' } });
  const id = world.id();
  await world.client.start(id, { agent: 'schema' });
  await talk(id, 11);
  expect(summaries[0]).toMatchObject({
    model: 'claude-haiku-4-5',
    output_config: { format: { type: 'json_schema', schema: { required: ['episodic', 'semantic'], additionalProperties: false } } },
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

test('every history that was made here replays', async () => {
  expect(await replayProblems(world)).toEqual([]);
}, 120_000);
