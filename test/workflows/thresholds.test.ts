/** A context that fills (seed 004): a hint, a compaction that the model asks for, and truncation where nobody compacts. */
import type { TokenUsageTotals } from '../../src/records/token-usage.js';
import { textOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, resultTexts, say, type Stage } from '../support/stage.js';
import { testReplays } from '../support/replays.js';
import { startWorld, type World } from '../support/world.js';

const FEW_TOOLS = { tools: ['get_time', 'compact_context'], memory: { memoryWindow: 1_000 } };
/** About 400 tokens. */
const LONG = 'The harbour master keeps the ledger. '.repeat(43);

const stage: Stage = createStage();
let summaries: ApiRequest[] = [];
let world: World;

beforeAll(async () => {
  world = await startWorld({
    agent: { ...FEW_TOOLS, context: { advanced: { softThreshold: 2_500, hardThreshold: 60_000, truncationThreshold: 90_000 } } },
    tools: builtinTools,
    answer: (request) => {
      if (!JSON.stringify(request.system ?? '').includes('You condense a part of a conversation')) return stage.answer(request);
      summaries.push(request);
      const episodic = { summary: 'They spoke of the harbour.', tags: [], salience: 0.7 };
      return text(JSON.stringify({ episodic, semantic: [] }));
    },
  });
  await world.writeAgent('uncompacted', {
    ...FEW_TOOLS,
    context: { advanced: { softThreshold: 2_000, hardThreshold: 3_000, truncationThreshold: 4_500 }, autoCompactEnabled: false },
  });
});
afterAll(() => world.close());
beforeEach(() => (summaries = []));
afterEach(() => expect(world.api.problems).toEqual([]));

async function talk(id: string, turns: number, from = 1): Promise<void> {
  for (let n = from; n < from + turns; n++) {
    stage.play(id, text(`${n}: ${LONG}`));
    expect(await world.client.send(id, { id: `m${n}`, text: say(id, `turn ${n}`) })).toMatchObject({ stopReason: 'end' });
  }
}

const said = (request: ApiRequest | undefined): string => (request?.messages ?? []).map(({ content }) => textOf(content)).join('\n');

test('over the soft threshold the model is told once, and may compact at a task’s end', async () => {
  const id = world.id();
  await world.client.start(id);
  await talk(id, 9);
  const hint = 'When a task has just been completed, compact_context does it';
  const hinted = stage.requests(id).findIndex((request) => said(request).includes(hint));
  expect(hinted).toBeGreaterThan(0);
  expect(said(stage.requests(id).at(-1)).split(hint)).toHaveLength(2);
  expect(summaries).toHaveLength(0);

  stage.play(id, callTool('compact_context'), text('Done.'));
  expect(await world.client.send(id, { id: 'end', text: say(id, 'that is all') })).toMatchObject({ text: 'Done.', toolCalls: 1 });
  expect(resultTexts(stage.requests(id).at(-1))[0]).toContain('become memory before your next step');
  expect(summaries).toHaveLength(1);
  expect(said(stage.requests(id).at(-1))).toContain('They spoke of the harbour.');
  expect((await world.client.status(id)).context.compactions).toBe(1);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('an agent that does not compact keeps all up to the truncation line, then the oldest is left out with a notice, and a summary asked for later has it', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'uncompacted' });
  let turns = 0;
  const notice = 'were left out of this prompt';
  while (!said(stage.requests(id).at(-1)).includes(notice)) {
    if (turns > 0) expect(said(stage.requests(id).at(-1))).toContain(`${id} turn 1`);
    await talk(id, 1, ++turns);
    if (turns > 20) throw new Error('nothing was truncated');
  }
  const last = said(stage.requests(id).at(-1));
  expect(turns).toBeGreaterThan(4);
  const hints = stage
    .requests(id)
    .map(said)
    .filter((words) => words.includes('Here the context had about'));
  for (const words of hints) expect(words).toContain('beyond 4500 its oldest messages are left out of the prompt');
  expect(hints.length).toBeGreaterThan(0);
  expect(last).not.toContain('\n1: The harbour');
  expect(last).toContain(`${id} turn ${turns}`);
  const status = await world.client.status(id);
  expect(status.context).toMatchObject({ compactions: 0 });
  expect(status.context.tokens).toBeLessThan(4_500);
  expect(summaries).toHaveLength(0);
  const control = await world.client.control(id);
  expect(control).toMatchObject({ thresholds: { soft: 2_000, hard: 3_000, truncation: 4_500, autoCompact: false } });
  expect(control.leftOut).toBeGreaterThan(0);
  // Nothing is gone: the traces have it, and what was dropped is in what is summarized next.
  expect((await world.client.history(id)).some(({ turn }) => turn === 'turn_0001')).toBe(true);
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted' });
  expect(said(summaries[0])).toContain('1: The harbour');
  expect((await world.client.control(id)).leftOut).toBe(0);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('by hand the context is truncated down to the hard threshold, and below it there is nothing to do', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'uncompacted' });
  await talk(id, 1);
  expect(await world.client.truncate(id)).toEqual({ kind: 'nothing-to-truncate' });
  let turns = 1;
  while ((await world.client.status(id)).context.tokens <= 3_000) await talk(id, 1, ++turns);
  const outcome = await world.client.truncate(id);
  expect(outcome).toMatchObject({ kind: 'truncated' });
  expect((await world.client.status(id)).context.tokens).toBeLessThanOrEqual(3_050);
});

test('chunks that a program names are left out, or become memory, below every threshold; others are refused by name', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'uncompacted' });
  await talk(id, 3);
  const query = await world.temporal.workflow.getHandle(id).query<TokenUsageTotals>('checkTokenUsage');
  expect(query).toMatchObject({ needsTruncation: false, chunksToCompact: [[1, 6]], thresholds: { hardThreshold: 3_000 } });
  expect(query.compressibleTokens).toBeLessThan(query.totalTokens);
  expect(await world.client.executeTruncation(id, ['chunk_4'])).toMatchObject({ kind: 'truncated', entries: 1 });
  expect(await world.client.triggerCompaction(id, ['chunk_1', 'chunk_2'])).toMatchObject({ kind: 'compacted', method: 'model' });
  await talk(id, 1, 4);
  const words = said(stage.requests(id).at(-1));
  // They are in the summary by now.
  expect(words).not.toContain('left out of this prompt, as the application asked');
  expect(words).toContain('They spoke of the harbour.');
  expect([1, 2, 3].map((n) => words.includes(`${n}: The harbour`))).toEqual([false, false, true]);
  expect(said(summaries[0])).toContain('1: The harbour');
  await expect(world.client.executeTruncation(id, ['chunk_99'])).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining('chunk_99 is not in the context'),
  });
  await expect(world.client.triggerCompaction(id, ['chunk'])).rejects.toMatchObject({ kind: 'invalid' });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('in stepping truncation and compaction are steps of their own, before the model', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'uncompacted' });
  let turns = 0;
  while ((await world.client.status(id)).context.tokens <= 4_500 && turns < 20) await talk(id, 1, ++turns);
  await world.client.setMode(id, 'stepping');
  await world.client.message(id, say(id, 'go on'));
  const did = [];
  for (let n = 0; n < 4; n++) did.push(await world.client.step(id));
  expect(did.map((result) => result.did)).toEqual(['event', 'truncation', 'model-call', 'nothing']);
  expect(did[0]).toMatchObject({ hasPendingOperations: true });
  expect(did[1]).toMatchObject({ truncationPerformed: true, compactionPerformed: false });
  expect(did[1]?.dispatchResult?.removedChunkIds).toContain('chunk_1');
});

test('what a model’s public tokenizer counts is said to be counted, anything else to be an estimate', async () => {
  const [counted, estimated] = [world.id(), world.id()];
  await world.client.send(counted, say(counted, 'hello'), { start: { model: 'openai/gpt-4o' } });
  stage.play(estimated, text('Hello.'));
  await world.client.send(estimated, say(estimated, 'hello'), { start: {} });
  expect(await world.client.context(counted)).toMatchObject({ tokenizer: 'o200k_base' });
  expect(await world.client.context(estimated)).not.toHaveProperty('tokenizer');
});

testReplays(() => world);
