/** One budget for a tree of conversations, with real workflows: sub-agents draw from it while they run, and a larger one frees them. */
import { z } from 'zod';
import { NOTHING_USED } from '../../src/records/shared-budget.js';
import { delegate } from '../../src/tools/builtin/conversation-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { callTool, callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const CALL = 600;
const priced = (reply: Reply): Reply => ({ ...reply, usage: { input_tokens: 500, output_tokens: 100 } });

const held = new Map<string, () => void>();
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ at: z.number() }),
  policy: { repeatable: true },
  run: ({ at }) => `saw ${at}`,
});
const hold = defineTool({
  name: 'hold',
  description: 'Waits until it is let go.',
  input: z.object({ name: z.string() }),
  policy: { timeoutMs: 200_000 },
  run: ({ name }) => new Promise<string>((resolve) => held.set(name, () => resolve('let go'))),
});

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [look, hold, delegate], agent: { delegation: { maxChildren: 16 } } });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const task = (key: string, words: string) => ({ name: 'delegate', input: { task: say(key, words), title: words } });

test('16 sub-agents at once use no more of it than is there, and one call in flight for each of them', async () => {
  const id = world.id();
  const children = Array.from({ length: 16 }, () => world.id());
  stage.play(id, priced(callTools(...children.map((child) => task(child, 'look around')))), priced(text('Never said.')));
  for (const child of children)
    stage.play(child, ...Array.from({ length: 8 }, (_, at) => priced(callTool('look', { at }))), priced(text('All seen.')));
  const limit = 10_000;
  const ended = await world.client.send(id, say(id, 'go'), { start: { budget: { maxTokens: limit } } });
  const used = CALL * [id, ...children].reduce((sum, one) => sum + stage.requests(one).length, 0);
  expect(ended).toMatchObject({ stopReason: 'budget', error: { type: 'budget' } });
  expect(used).toBeGreaterThanOrEqual(limit);
  expect(used).toBeLessThan(limit + 16 * CALL);
  const { usage } = await world.client.status(id);
  expect(usage.inputTokens + usage.outputTokens).toBe(used);

  // Without a limit all of them would have come to 16 times 9 calls; with more of it the conversation goes on.
  await world.client.raiseBudget(id, { maxTokens: 1_000_000 });
  stage.play(id, priced(text('Going on.')));
  expect(await world.client.send(id, say(id, 'continue'))).toMatchObject({ stopReason: 'end' });
});

test('a larger budget frees the sub-agents that run, and a used-up one is said by whose it is', async () => {
  const id = world.id();
  const [freed, late] = [world.id(), world.id()];
  stage.play(id, priced(callTools(task(freed, 'hold on'), task(late, 'hold on'))), priced(text('Both are back.')));
  for (const child of [freed, late]) stage.play(child, priced(callTool('hold', { name: child })), priced(text('Done.')));
  const sent = world.client.send(id, say(id, 'go'), { start: { budget: { maxTokens: 1_300 } } });
  await waitFor(
    () => held.size,
    (size) => size === 2,
  );
  held.get(late)?.();
  await waitFor(
    () => world.client.status(`${id}:turn_0001:2`).then(({ turns }) => turns),
    (turns) => turns === 1,
  );
  expect(stage.requests(late)).toHaveLength(1);

  await world.client.raiseBudget(id, { maxTokens: 100_000 });
  const { life } = await world.client.describe(id);
  const key = { namespace: world.client.namespace, scope: 'default', conversation: id, life };
  const probe = { id: 'probe', estimate: NOTHING_USED, now: Date.now(), limit: {}, at: -1, used: [], atLeast: NOTHING_USED, waits: false };
  await waitFor(
    () => world.store.budgets.reserve(key, probe).then(({ limit }) => limit.maxTokens),
    (most) => most === 100_000,
  );
  held.get(freed)?.();
  expect(await sent).toMatchObject({ stopReason: 'end', text: 'Both are back.' });
  expect(stage.requests(freed)).toHaveLength(2);
  expect(resultTexts(stage.requests(id).at(-1))).toEqual([
    'Done.',
    expect.stringContaining(`${id} and its sub-agents have together used 1800 of its 1300 tokens; raise the budget of ${id}`),
  ]);
});

test('a fork, and a conversation that is resumed, start with what is left of the budget, or with one that is named', async () => {
  const id = world.id();
  stage.play(id, priced(text('One.')));
  await world.client.send(id, say(id, 'one'), { start: { budget: { maxTokens: 1_000, maxCostUsd: 5 } } });
  const { costUsd } = (await world.client.status(id)).usage;
  const left = { maxTokens: 1_000 - CALL, maxCostUsd: 5 - (costUsd ?? 0) };
  const budgetOf = async (of: string): Promise<unknown> => (await world.client.status(of)).budget;
  expect(await budgetOf((await world.client.fork(id, { at: 'turn_0001' })).id)).toEqual(left);
  expect(await budgetOf((await world.client.fork(id, { at: 'turn_0001', budget: { maxTokens: 7 } })).id)).toEqual({ maxTokens: 7 });
  await world.client.terminate(id);
  await world.client.resume(id);
  expect(await budgetOf(id)).toEqual(left);
});
