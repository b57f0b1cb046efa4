/**
 * What a model step finds changes what it does: it comes back without a call (`deferred`), once for each reason; and what it has written,
 * run or paid for survives a store that goes away before, in or after it.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { TurnResult } from '../../src/conversation/protocol/contract.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTool, callTools, gate, text, type ToolCall } from '../support/provider-apis/reply.js';
import { StoreUnavailable } from '../../src/stores/store.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { outage } from '../support/scene.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { testReplays } from '../support/replays.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { modelStepsOf, stepsOf } from '../support/steps.js';
import { startSwitchedProxy, type SwitchedProxy } from '../support/switched-proxy.js';
import { startWorld, type World } from '../support/world.js';

/** What is paid for is offered to the store four times, two seconds each; a step that reads then finds it back. */
const LONGER_THAN_A_COMMIT_MS = 10_300;
/** About 400 tokens. */
const LONG = 'The harbour master keeps the ledger. '.repeat(43);
const anything = z.looseObject({});
const quick = { repeatable: true, quick: true, timeoutMs: 60_000 } as const;

/** What each of these does when it is run: the test's own. */
const doing = new Map<string, () => Promise<unknown>>();
const runs: string[] = [];

const act = defineTool({
  name: 'act',
  description: 'Does what the test wants.',
  input: z.object({ what: z.string() }),
  policy: quick,
  run: async ({ what }, { conversation, callId }) => {
    runs.push(`${conversation} ${callId}`);
    await doing.get(`${conversation} ${what}`)?.();
    return `did ${what}`;
  },
});
const digest = defineTool({
  name: 'digest',
  description: 'Has a model read something long.',
  input: anything,
  policy: quick,
  run: async (_, { memory }) => {
    const id = await memory.store({ content: LONG });
    const item = await memory.retrieve(id, { type: 'summary', params: { goal: 'the harbour' } });
    return `digested: ${String(item?.content)}`;
  },
});

const stage = createStage();
let summaries = 0;
let dir: string;
let redis: RedisServer;
let proxy: SwitchedProxy;
let world: World;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-aof-'));
  redis = await startRedis({ dir, appendonly: true });
  proxy = await startSwitchedProxy(redis.port);
  world = await startWorld({
    redisUrl: `redis://127.0.0.1:${proxy.port}`,
    tools: [act, digest],
    answer: (request) => besideTheStage(request) ?? stage.answer(request),
  });
});
afterAll(async () => {
  proxy.back();
  await world.close();
  await proxy.close();
  await redis.stop();
  await rm(dir, { recursive: true, force: true });
});
afterEach(() => {
  expect(world.api.problems).toEqual([]);
});

/** Summaries of texts and of turns have no conversation of their own. */
function besideTheStage(request: ApiRequest) {
  const system = JSON.stringify(request.system ?? '');
  if (system.includes('You summarize one stored text')) {
    summaries += 1;
    return { ...text('ships'), usage: { input_tokens: 5_000, output_tokens: 10 } };
  }
  if (!system.includes('You condense a part of a conversation')) return undefined;
  return text(JSON.stringify({ episodic: { summary: 'They spoke of the harbour.', tags: [], salience: 0.7 }, semantic: [] }));
}

const acts = (what: string): ToolCall => ({ name: 'act', input: { what } });

async function started(agent?: object): Promise<string> {
  const id = world.id();
  if (agent) await world.writeAgent(id, agent);
  await world.client.start(id, agent ? { agent: id } : {});
  return id;
}

/** How the model steps of the conversation came back, and why. */
async function outcomes(id: string): Promise<string[]> {
  return (await modelStepsOf(world, id)).map(({ output }) =>
    output?.kind === 'deferred' ? `deferred: ${output.reason}` : (output?.kind ?? 'thrown'),
  );
}

async function rolesOf(id: string): Promise<string[]> {
  return (await world.client.history(id)).map(({ slot, message }) => `${slot} ${message.role}`);
}

/** A door that a tool or a test waits at. */
function createDoor(): { readonly open: () => void; readonly through: Promise<void> } {
  let open = (): void => undefined;
  const through = new Promise<void>((resolve) => (open = resolve));
  return { open, through };
}

test('a message that was said 257 messages ago is the same message: its sender gets that turn, its slot stays empty, nothing is called', async () => {
  const id = await started({ memory: { memoryWindow: 1_000 } });
  stage.play(id, text('The first answer.'));
  expect(await world.client.send(id, { id: 'm1', text: say(id, 'hi') })).toMatchObject({ turnId: 'turn_0001' });
  const hold = gate();
  stage.play(id, { ...callTool('act', { what: 'a' }), holdAfter: hold }, text('So many.'));
  const many = world.client.send(id, say(id, 'and'));
  await hold.reached;
  const handle = world.temporal.workflow.getHandle(id);
  for (let n = 1; n <= 256; n += 64) {
    const some = Array.from({ length: 64 }, (_, i) => ({ id: `other ${n + i}`, text: say(id, `${n + i}`), delivery: 'steer' }));
    await Promise.all(some.map((message) => handle.signal('message', message)));
  }
  hold.release();
  expect(await many).toMatchObject({ turnId: 'turn_0002', text: 'So many.' });
  const { turn } = await world.client.status(id);
  const before = await rolesOf(id);

  // Not by our client, whose update ids are those of the messages: Temporal itself would answer the second.
  const again = handle.executeUpdate('send', { args: [{ id: 'm1', text: say(id, 'hi') }] });
  expect(await again).toMatchObject({ turnId: 'turn_0001', text: 'The first answer.' });
  expect(stage.requests(id)).toHaveLength(3);
  expect((await outcomes(id)).at(-1)).toBe('deferred: duplicate');
  expect(await rolesOf(id)).toEqual(before);
  expect(await world.client.status(id)).toMatchObject({ phase: 'idle', turns: 2 });
  const after = await world.client.send(id, { id: 'm2', text: say(id, 'and now?') });
  expect(after).toMatchObject({ text: 'Understood.' });
  expect(Number(after.turnId?.slice(5))).toBeGreaterThan(turn);
  const spoken = stage.requests(id)[3]?.messages ?? [];
  expect(JSON.stringify(spoken).split(`${id} hi`)).toHaveLength(2);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('an agent.json that breaks between two turns fails the turn with the words, before any call, and the mended one is read for the next', async () => {
  const id = await started({});
  await world.client.send(id, say(id, 'hi'));
  await writeFile(join(world.dir, 'agents', id, 'agent.json'), '{ "model": ');
  const failed = await world.client.send(id, say(id, 'still there?'));
  expect(failed).toMatchObject({
    turnId: 'turn_0002',
    stopReason: 'failed',
    error: { type: 'bad-config', message: expect.stringContaining('is not JSON') },
  });
  expect(stage.requests(id)).toHaveLength(1);
  await world.writeAgent(id, { maxTokens: 777 });
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ turnId: 'turn_0003', text: 'Understood.' });
  expect(stage.requests(id)[1]?.max_tokens).toBe(777);
  expect(JSON.stringify(stage.requests(id)[1]?.messages)).toContain('still there?');
  expect(await outcomes(id)).toEqual(['answered', 'deferred: unusable', 'answered']);
});

test('a budget that agent.json lowers between two turns holds from the next call on, and more of it lets the next turn be', async () => {
  const id = await started({ limits: { maxTokens: 100_000 } });
  stage.play(id, { ...text('One.'), usage: { input_tokens: 900, output_tokens: 200 } });
  await world.client.send(id, say(id, 'one'));
  await world.writeAgent(id, { limits: { maxTokens: 1_000 } });
  expect(await world.client.send(id, say(id, 'two'))).toMatchObject({
    stopReason: 'budget',
    error: { type: 'budget', message: expect.stringContaining('1100 of its 1000 tokens') },
  });
  expect(stage.requests(id)).toHaveLength(1);
  await world.writeAgent(id, { limits: { maxTokens: 2_000 } });
  expect(await world.client.send(id, say(id, 'three'))).toMatchObject({ stopReason: 'end', text: 'Understood.' });
  expect((await outcomes(id)).slice(0, 2)).toEqual(['answered', 'deferred: budget']);
  expect((await outcomes(id)).at(-1)).toBe('answered');
});

test('a threshold that agent.json lowers between two turns defers the call once, until older turns have become memory', async () => {
  const roomy = { maxTokens: 500, tools: [], memory: { enabled: false }, context: { maxTokens: 100_000, safetyMargin: 500 } };
  const id = await started(roomy);
  for (const n of [1, 2, 3, 4, 5]) {
    stage.play(id, text(`${n}: ${LONG}`));
    await world.client.send(id, say(id, `turn ${n}`));
  }
  await world.writeAgent(id, {
    ...roomy,
    context: { ...roomy.context, advanced: { softThreshold: 500, hardThreshold: 1_000, truncationThreshold: 50_000 } },
  });
  expect(await world.client.send(id, say(id, 'go on'))).toMatchObject({ text: 'Understood.', stopReason: 'end' });
  const [, , , , , ...then] = (await stepsOf(world, id)).filter(({ name }) => name === 'model-step' || name === 'compact');
  expect(then.map(({ name }) => name)).toEqual(['model-step', 'compact', 'model-step']);
  expect((await outcomes(id)).slice(5)).toEqual(['deferred: compaction', 'answered']);
  expect(JSON.stringify(stage.requests(id).at(-1)?.messages)).toContain('They spoke of the harbour.');
  expect((await world.client.status(id)).context.compactions).toBe(1);
});

test('a tool that rode and has used up the budget by asking a model itself: its result is kept and paid for once, the model is not called', async () => {
  const id = await started({ limits: { maxTokens: 3_000 } });
  stage.play(id, { ...callTools({ name: 'digest' }, acts('a')), usage: { input_tokens: 100, output_tokens: 20 } }, text('After all.'));
  const before = summaries;
  expect(await world.client.send(id, say(id, 'read it'))).toMatchObject({ stopReason: 'budget', toolCalls: 2, error: { type: 'budget' } });
  expect(summaries - before).toBe(1);
  expect(stage.requests(id)).toHaveLength(1);
  expect(await outcomes(id)).toEqual(['answered', 'deferred: budget']);
  expect((await world.client.status(id)).usage).toMatchObject({ inputTokens: 5_100, outputTokens: 30 });
  expect(await rolesOf(id)).toEqual(['1 user', '2 assistant', '3 tool', '4 tool']);
  await world.client.raiseBudget(id, { maxTokens: 100_000 });
  expect(await world.client.send(id, say(id, 'continue'))).toMatchObject({ text: 'After all.' });
  expect(JSON.stringify(stage.requests(id)[1]?.messages)).toContain('digested: ships');
  expect(summaries - before).toBe(1);
});

describe('the store goes away as the result of a quick tool is on its way to it, for ten seconds', () => {
  const steps = { before: '', answer: '', result: '', last: '' };
  let during: readonly string[];
  let sent: Record<keyof typeof steps, TurnResult>;

  beforeAll(async () => {
    for (const name of Object.keys(steps) as (keyof typeof steps)[]) steps[name] = await started();
    const { before, answer, result, last } = steps;
    const [answerHeld, lastHeld, began, ends] = [gate(), gate(), createDoor(), createDoor()];
    stage.play(answer, { ...callTools(acts('a'), acts('b')), holdAfter: answerHeld }, text('Done.'));
    stage.play(last, callTool('act', { what: 'a' }), { text: 'This was paid for.', hold: lastHeld });
    doing.set(`${result} slowly`, async () => {
      began.open();
      await ends.through;
    });
    stage.play(result, callTools(acts('slowly'), acts('b')), text('Done.'));
    const sending = [answer, result, last].map((id) => world.client.send(id, say(id, 'go')));
    await Promise.all([answerHeld.reached, lastHeld.reached, began.through]);
    const trap = proxy.awayBefore('did slowly');
    ends.open();
    await trap;
    const asked = world.client.send(before, say(before, 'hi'));
    answerHeld.release();
    lastHeld.release();
    await outage(LONGER_THAN_A_COMMIT_MS);
    during = [...stage.requests(before), ...stage.requests(answer).slice(1)].map(() => 'asked');
    proxy.back();
    const [ofBefore, ofAnswer, ofResult, ofLast] = await Promise.all([asked, ...sending]);
    sent = { before: ofBefore, answer: ofAnswer, result: ofResult, last: ofLast } as typeof sent;
  });

  test('before a step: nothing is called until it is back, then the message is written and answered once', async () => {
    expect(during).toEqual([]);
    expect(sent.before).toMatchObject({ text: 'Understood.', turnId: 'turn_0001' });
    expect(stage.requests(steps.before)).toHaveLength(1);
    expect(await rolesOf(steps.before)).toEqual(['1 user', '2 assistant']);
  });

  test('after an answer that asks for quick tools: the step that they ride on writes it, and it is not paid for again', async () => {
    const id = steps.answer;
    expect(sent.answer).toMatchObject({ text: 'Done.', toolCalls: 2 });
    expect(stage.requests(id)).toHaveLength(2);
    expect(resultTexts(stage.requests(id)[1])).toEqual(['did a', 'did b']);
    const [first, ...others] = await modelStepsOf(world, id);
    expect(first?.output).toMatchObject({ answer: { persisted: false } });
    expect(others.at(-1)?.input.write.entries.map(({ slot }) => slot)).toEqual([2]);
    expect(await rolesOf(id)).toEqual(['1 user', '2 assistant', '3 tool', '4 tool', '5 assistant']);
    expect(runs.filter((run) => run.startsWith(id))).toHaveLength(2);
  });

  test('as a tool that rides has ended: the model reads its result and no gap, and the store gets it', async () => {
    const id = steps.result;
    expect(sent.result).toMatchObject({ text: 'Done.', toolCalls: 2 });
    expect(resultTexts(stage.requests(id)[1])).toEqual(['did slowly', 'did b']);
    expect(stage.requests(id)).toHaveLength(2);
    expect(await rolesOf(id)).toEqual(['1 user', '2 assistant', '3 tool', '4 tool', '5 assistant']);
  });

  test('after the last answer: its sender has it, the next step writes it, and no tool runs again', async () => {
    const id = steps.last;
    expect(sent.last).toMatchObject({ text: 'This was paid for.', stopReason: 'end' });
    await world.client.send(id, say(id, 'and now?'));
    expect(JSON.stringify(stage.requests(id)[2]?.messages)).toContain('This was paid for.');
    expect(stage.requests(id)).toHaveLength(3);
    expect((await modelStepsOf(world, id))[1]?.output).toMatchObject({ answer: { persisted: false }, tools: [{ persisted: true }] });
    const carried = (await stepsOf(world, id)).flatMap((step) =>
      step.name === 'model-step' || step.name === 'store-step' ? step.input.write.entries.map(({ slot }) => slot) : [],
    );
    expect(new Set(carried)).toEqual(new Set([4]));
    expect(await rolesOf(id)).toEqual(['1 user', '2 assistant', '3 tool', '4 assistant', '5 user', '6 assistant']);
    expect(runs.filter((run) => run.startsWith(id))).toHaveLength(1);
  });
});

test('a result that the store does not take while its tool rides, and that nothing after it misses: the model reads it and no gap', async () => {
  const id = await started();
  const { effects } = world.store;
  const { commit } = effects;
  // As often as one attempt offers it.
  let refusals = 4;
  effects.commit = (key, claim, ...rest) =>
    key.conversation === id && claim.id === 'turn_0001/c1' && refusals-- > 0
      ? Promise.reject(new StoreUnavailable('the disk was full for a moment'))
      : commit(key, claim, ...rest);
  stage.play(id, callTools(acts('a'), acts('b')), text('Done.'));
  const result = await world.client.send(id, say(id, 'go'));
  effects.commit = commit;
  expect(result).toMatchObject({ text: 'Done.', toolCalls: 2 });
  expect(resultTexts(stage.requests(id)[1])).toEqual(['did a', 'did b']);
  expect(stage.requests(id)).toHaveLength(2);
  expect(runs.filter((run) => run.startsWith(id))).toHaveLength(2);
  expect(await rolesOf(id)).toEqual(['1 user', '2 assistant', '3 tool', '4 tool', '5 assistant']);
});

testReplays(() => world);
