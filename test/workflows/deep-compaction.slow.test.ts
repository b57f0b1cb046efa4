/** Turns, messages and models for which older turns alone are not enough: whatever happens, the next request fits and has the question. */
import { z } from 'zod';
import { textOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { promptTooLong } from '../support/provider-apis/faults.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, resultTexts, say, type Stage } from '../support/stage.js';
import { testReplays } from '../support/replays.js';
import { startWorld, type World } from '../support/world.js';

const FEW_TOOLS = { tools: ['measure', 'weigh', 'retrieve_from_memory'], maxTokens: 500, memory: { memoryWindow: 1_000 } };
/** Tokens that the model behind `halved` takes, whatever the agent assumes. */
const REAL_WINDOW = 10_000;

/** About 450 tokens: too short to be an item of the memory channel. */
const measured = (n: number): string => `Measurement ${n}: ${'the tide stands at the third mark. '.repeat(50)}`;
const measuring = { description: 'Measures.', input: z.object({ n: z.int() }) };

const stage: Stage = createStage();
let summaries: ApiRequest[] = [];
let refused = 0;
let world: World;

beforeAll(async () => {
  world = await startWorld({
    agent: { memory: { memoryWindow: 1_000 } },
    tools: [
      ...builtinTools,
      // One has an activity of its own, the other rides on the model step.
      defineTool({ ...measuring, name: 'measure', policy: { repeatable: true }, run: ({ n }) => measured(n) }),
      defineTool({ ...measuring, name: 'weigh', policy: { repeatable: true, quick: true }, run: ({ n }) => measured(n) }),
    ],
    answer: (request) => {
      if (JSON.stringify(request.system ?? '').includes('You take notes on one piece')) return text('The tide was measured.');
      if (JSON.stringify(request.system ?? '').includes('You condense a part of a conversation')) {
        summaries.push(request);
        const episodic = {
          summary: `Summary ${summaries.length}: the tide was measured, and the plum key was chosen.`,
          tags: [],
          salience: 0.7,
        };
        return text(JSON.stringify({ episodic, semantic: [] }));
      }
      if (said(request).includes('[halved]') && sizeOf(request) > REAL_WINDOW) {
        refused += 1;
        return promptTooLong(sizeOf(request), REAL_WINDOW);
      }
      return stage.answer(request);
    },
  });
  await world.writeAgent('small', { ...FEW_TOOLS, context: { maxTokens: 12_000, safetyMargin: 500 } });
  await world.writeAgent('unchannelled', { ...FEW_TOOLS, memory: { enabled: false }, context: { maxTokens: 12_000, safetyMargin: 500 } });
  await world.writeAgent('halved', { ...FEW_TOOLS, context: { maxTokens: 21_000, safetyMargin: 500 } });
});
afterAll(() => world.close());
beforeEach(() => {
  summaries = [];
  refused = 0;
});
afterEach(() => expect(world.api.problems).toEqual([]));

function said(request: ApiRequest | undefined): string {
  return (request?.messages ?? []).map(({ content }) => textOf(content)).join('\n');
}

function sizeOf({ system, tools, messages }: ApiRequest): number {
  return Math.ceil(JSON.stringify([system, tools, messages]).length / 4);
}

test.each(['measure', 'weigh'])(
  'a turn of 44 rounds of %s is summarized while it runs, and goes on with its question, the summary and its last rounds',
  async (tool) => {
    const id = world.id();
    await world.client.start(id, { agent: 'small' });
    stage.play(id, ...Array.from({ length: 44 }, (_, n) => callTool(tool, { n })), text('All is measured.'));
    const result = await world.client.send(id, { id: 'm1', text: say(id, 'measure the tide, and mind the plum key') });
    expect(result).toMatchObject({ text: 'All is measured.', stopReason: 'end', toolCalls: 44 });

    expect(summaries.length).toBeGreaterThanOrEqual(1);
    expect(summaries.length).toBeLessThanOrEqual(8);
    // Whoever summarizes knows what was asked.
    for (const summary of summaries) expect(said(summary)).toContain('mind the plum key');
    const requests = stage.requests(id);
    expect(requests).toHaveLength(45);
    requests.forEach((request, n) => {
      expect(sizeOf(request)).toBeLessThan(12_000);
      expect(said(request)).not.toContain('left out');
      expect(said(request)).toContain(`${id} measure the tide, and mind the plum key`);
      if (n > 0) expect(resultTexts(request).at(-1)).toContain(`Measurement ${n - 1}:`);
    });
    const last = said(requests.at(-1));
    expect(last).toContain(`${Math.min(3, summaries.length)}) Summary ${summaries.length}: the tide was measured`);
    expect(last).toContain('[SUMMARIZED IN PART]');
    // Each step of the turn is summarized or shown, counted over all of its compactions.
    const summarized = Number(/the first (\d+) steps of the work on it are in the summaries above/.exec(last)?.[1]);
    expect(summarized + (requests.at(-1)?.messages ?? []).filter(({ role }) => role === 'assistant').length).toBe(44);
    const status = await world.client.status(id);
    expect(status.context.compactions).toBe(summaries.length);
    expect((await world.client.control(id)).leftOut).toBe(0);
    expect(await workflowTaskFailures(world, id)).toEqual([]);

    // Nothing is gone, and what was taken can be taken back.
    expect((await world.client.history(id)).filter(({ message }) => message.role === 'tool')).toHaveLength(44);
    const before = (await world.client.context(id)).chunks.length;
    expect(await world.client.undoCompaction(id)).toMatchObject({ kind: 'undone' });
    expect((await world.client.context(id)).chunks.length).toBeLessThanOrEqual(before);
    stage.play(id, text('Going on.'));
    expect(await world.client.send(id, { id: 'm2', text: say(id, 'and now?') })).toMatchObject({ text: 'Going on.', stopReason: 'end' });
  },
);

test('a fork of a turn that was summarized in part has the summary and the rest, and not both', async () => {
  const [id, fork] = [world.id(), world.id()];
  await world.client.start(id, { agent: 'small' });
  stage.play(id, ...Array.from({ length: 20 }, (_, n) => callTool('measure', { n })), text('All is measured.'));
  await world.client.send(id, { id: 'm1', text: say(id, 'measure the tide') });
  expect(summaries.length).toBeGreaterThan(0);
  await world.client.fork(id, { at: 'turn_0001', id: fork });
  stage.play(id, text('From here.'));
  expect(await world.client.send(fork, { id: 'm2', text: 'go on from there' })).toMatchObject({ text: 'From here.', stopReason: 'end' });
  const request = stage.requests(id).at(-1);
  expect(said(request)).toContain('[MEMORY:EPISODIC]');
  expect(said(request)).toContain('measure the tide');
  expect(JSON.stringify(request?.messages)).toContain('Measurement 19:');
  expect(JSON.stringify(request?.messages)).not.toContain('Measurement 0:');
});

test('a model that takes half of what is assumed says once that it is full; then it answers, and the next turns fit at once', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'halved' });
  const long = 'The harbour master keeps the ledger. '.repeat(100);
  for (let n = 1; n <= 14; n++) {
    stage.play(id, text(`${n}: ${'Aye. '.repeat(100)}`));
    const result = await world.client.send(id, { id: `m${n}`, text: say(id, `[halved] turn ${n} ${long}`) });
    expect(result).toMatchObject({ stopReason: 'end' });
  }
  expect(refused).toBe(1);
  const index = await world.client.context(id);
  expect(index.assumedBudget).toBe(20_000);
  expect(index.budget).toBeLessThan(REAL_WINDOW);
  expect(index.compactsAt).toBeLessThan(index.budget);
  for (const request of stage.requests(id)) expect(sizeOf(request)).toBeLessThanOrEqual(REAL_WINDOW);
  expect(said(stage.requests(id).at(-1))).toContain('[halved] turn 14');
  // A new session has learned it too.
  await world.client.reset(id);
  expect(await world.client.context(id)).toMatchObject({ assumedBudget: 20_000, budget: index.budget });
});

test('a paste of 450 KB is whole while it is talked about, then cited, and can be read again', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(id, text('A boat, then.'), text('Read it.'));
  await world.client.send(id, { id: 'm1', text: say(id, 'the goal is to mend the boat') });
  const paste = `${'one line of the long ledger of the harbour\n'.repeat(5_000)}the keel is of elm\n${'more lines of it\n'.repeat(14_000)}`;
  expect(paste.length).toBeGreaterThan(450_000);
  await world.client.send(id, { id: 'm2', text: say(id, paste) });
  const whole = stage.requests(id).at(-1);
  expect(said(whole)).toContain('the keel is of elm');
  // Over the last line what was said before it leaves the prompt, and is summarized first.
  expect(said(whole)).toContain('the goal is to mend the boat');

  stage.play(
    id,
    (request) => {
      const memoryId = /retrieve_from_memory with the id (mem_msg_\d+)/.exec(said(request))?.[1];
      return callTool('retrieve_from_memory', { id: memoryId, transform: 'filtered', match: 'keel' });
    },
    text('Of elm.'),
  );
  expect(await world.client.send(id, { id: 'm3', text: say(id, 'what is the keel of?') })).toMatchObject({ text: 'Of elm.', toolCalls: 1 });
  const [asking, answering] = stage.requests(id).slice(-2);
  expect(sizeOf(asking!)).toBeLessThan(20_000);
  expect(said(asking)).not.toContain('the keel is of elm');
  expect(resultTexts(answering)[0]).toContain('the keel is of elm');
  expect(said(answering)).toContain('the goal is to mend the boat');
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test.each(['small', 'unchannelled'])(
  'a message that is too large for the model fails its own turn alone, and costs no other its place: %s',
  async (agent) => {
    const id = world.id();
    await world.client.start(id, { agent });
    stage.play(id, text('Yes.'));
    await world.client.send(id, { id: 'm1', text: say(id, 'remember the plum key') });
    const huge = say(id, `BEGIN ${'x '.repeat(40_000)}\nthe keel is of elm\n${'y '.repeat(20_000)} END`);
    expect(await world.client.send(id, { id: 'm2', text: huge })).toMatchObject({ stopReason: 'failed', error: { type: 'too-large' } });
    const asked = stage.requests(id).length;
    summaries = [];
    const compactions = (await world.client.status(id)).context.compactions;
    const reads = callTool('retrieve_from_memory', { id: 'mem_msg_3', transform: 'filtered', match: 'keel' });
    stage.play(id, ...(agent === 'small' ? [reads] : []), text('Elm.'));
    const result = await world.client.send(id, { id: 'm3', text: say(id, 'what did I send?') });
    expect(result).toMatchObject({ text: 'Elm.', stopReason: 'end' });
    const request = stage.requests(id)[asked];
    expect(said(request)).toContain('remember the plum key');
    const where = agent === 'small' ? 'mem_msg_3' : 'kept in the traces';
    expect(said(request)).toMatch(new RegExp(`BEGIN x.*of \\d+ characters of this message are left out here.*${where}.* END`, 's'));
    expect(sizeOf(request!)).toBeLessThan(4_000);
    expect(summaries).toEqual([]);
    expect((await world.client.status(id)).context.compactions).toBe(compactions);
    if (agent === 'small') expect(resultTexts(stage.requests(id)[asked + 1])[0]).toContain('the keel is of elm');
  },
);

testReplays(() => world);
