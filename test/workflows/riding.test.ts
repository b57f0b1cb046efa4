/** Quick tools ride on the model step that needs their results: what history shows of it, when none may ride, and what may go wrong on the way. */
import { z } from 'zod';
import { callTool, callTools, gate, text, type ToolCall } from '../support/provider-apis/reply.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { RESULT_BYTES } from '../../src/tools/result-text.js';
import type { Tool } from '../../src/tools/tool.js';
import { testReplays } from '../support/replays.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, heardFrom, resultTexts, say } from '../support/stage.js';
import { currentDetails, modelStepsOf, stepsOf } from '../support/steps.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const anything = z.looseObject({});
const quick = { repeatable: true, quick: true } as const;
const never = (): Promise<string> => new Promise(() => undefined);

/** Tools that have begun, by call, so that a test can tell when. */
const begun: string[] = [];
/** When each of those that listen was told to stop. */
const stopped: string[] = [];

const whisper = defineTool({
  name: 'whisper',
  description: 'Says it back, quickly.',
  input: z.object({ words: z.string() }),
  policy: quick,
  run: async ({ words }) => {
    if (words === 'slowly') await new Promise((resolve) => setTimeout(resolve, 150));
    return `heard ${words}`;
  },
});
/** Tried twice, which a quick tool may not be: made past the check of `defineTool`, as an author without it might. */
const stubborn: Tool = { ...whisper, name: 'stubborn', policy: { ...whisper.policy, attempts: 2 } };

/** A mebibyte that nobody has cut, as a tool may that was made without `defineTool`. */
const flood: Tool = { ...whisper, name: 'flood', run: () => Promise.resolve({ ok: true, content: 'ab'.repeat(512 * 1024) }) };

const tools: readonly Tool[] = [
  ...builtinTools,
  whisper,
  stubborn,
  defineTool({
    name: 'shout',
    description: 'Says it back, not declared quick.',
    input: z.object({ words: z.string() }),
    policy: { repeatable: true },
    run: ({ words }) => `HEARD ${words}`,
  }),
  defineTool({
    name: 'trip',
    description: 'Throws.',
    input: anything,
    policy: quick,
    run: () => Promise.reject(new Error('the lamp is out')),
  }),
  defineTool({
    name: 'hang',
    description: 'Hangs, for a second.',
    input: anything,
    policy: quick,
    run: (_, { conversation, callId }) => {
      begun.push(`${conversation} ${callId}`);
      return never();
    },
  }),
  defineTool({ name: 'hang_long', description: 'Hangs.', input: anything, policy: { ...quick, timeoutMs: 60_000 }, run: never }),
  defineTool({ name: 'much', description: 'Says a lot.', input: anything, policy: quick, run: () => 'ab'.repeat(512 * 1024) }),
  flood,
  defineTool({
    name: 'listen',
    description: 'Waits until it is stopped.',
    input: anything,
    policy: { ...quick, timeoutMs: 60_000 },
    run: (_, { conversation, callId, signal }) => {
      begun.push(`${conversation} ${callId}`);
      return new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          stopped.push(`${conversation} ${callId}`);
          resolve('stopped');
        }),
      );
    },
  }),
];

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools });
  await world.writeAgent('asking', { approvals: [{ tool: 'whisper', where: { words: 'secret' }, policy: 'ask' }] });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const heard = (words: string): ToolCall => ({ name: 'whisper', input: { words } });

async function started(options: Parameters<World['client']['start']>[1] = {}): Promise<string> {
  const id = world.id();
  await world.client.start(id, options);
  return id;
}

/** The tools and the model steps of a conversation, and which calls rode on these. */
async function shape(id: string): Promise<string[]> {
  const steps = await stepsOf(world, id);
  return steps.flatMap((step) => {
    if (step.name === 'run-tool') return [`run ${step.input.name}`];
    if (step.name === 'model-step') return [['model', ...step.input.tools.map(({ name }) => name)].join(' ')];
    return [];
  });
}

function untilBegun(id: string, callId: string): Promise<unknown> {
  return waitFor(
    () => begun.includes(`${id} ${callId}`),
    (has) => has,
  );
}

test('results come in the order of the calls, though the first takes longest, and lie in the store under their slots and numbers', async () => {
  const id = await started();
  stage.play(id, { ...callTools(heard('slowly'), heard('b'), heard('c')), text: 'Let me hear.' }, text('Done.'));
  await world.client.send(id, say(id, 'go'));
  expect(resultTexts(stage.requests(id)[1])).toEqual(['heard slowly', 'heard b', 'heard c']);
  const history = await world.client.history(id);
  expect(
    history.map(({ slot, seq, turn, message }) => [
      slot,
      seq,
      turn,
      message.role === 'tool' ? `${message.callId} ${message.outcome}` : message.role,
    ]),
  ).toEqual([
    [1, 1, 'turn_0001', 'user'],
    [2, 2, 'turn_0001', 'assistant'],
    [3, 6, 'turn_0001', 'turn_0001/c1 ok'],
    [4, 7, 'turn_0001', 'turn_0001/c2 ok'],
    [5, 8, 'turn_0001', 'turn_0001/c3 ok'],
    [6, 9, 'turn_0001', 'assistant'],
  ]);
  const [, last] = await modelStepsOf(world, id);
  expect(last?.output?.tools.map(({ callId, slot, outcome, persisted }) => [callId, slot, outcome, persisted])).toEqual([
    ['turn_0001/c1', 3, 'ok', true],
    ['turn_0001/c2', 4, 'ok', true],
    ['turn_0001/c3', 5, 'ok', true],
  ]);
  const [slow, quick] = last?.output?.tools ?? [];
  expect(slow?.ms).toBeGreaterThanOrEqual(140);
  expect(quick?.ms).toBeLessThan(slow?.ms ?? 0);
});

test('the Temporal UI names the tools that rode, with their targets, and the last one with its outcome', async () => {
  const id = await started();
  stage.play(
    id,
    callTools(heard('the sea'), { name: 'get_time' }),
    callTools(heard('the wind'), { name: 'trip', input: { over: 'a rope' } }),
  );
  await world.client.send(id, say(id, 'go'));
  expect((await modelStepsOf(world, id)).map(({ summary }) => summary)).toEqual([
    expect.stringMatching(/^first call · turn 1 step 1 · ~\d+k in$/),
    expect.stringMatching(/^anthropic\/claude-test · turn 1 step 2 · ~\d+k in · after whisper: the sea, get_time$/),
    expect.stringMatching(/ · turn 1 step 3 · ~\d+k in · after whisper: the wind, trip: a rope$/),
  ]);
  expect(await currentDetails(world, id)).toContain('**last tool** `trip: a rope` · error');
});

test('one ordinary call among quick ones, and none rides', async () => {
  const id = await started();
  stage.play(id, callTools(heard('a'), { name: 'shout', input: { words: 'b' } }, heard('c')), text('Done.'));
  await world.client.send(id, say(id, 'go'));
  expect(resultTexts(stage.requests(id)[1])).toEqual(['heard a', 'HEARD b', 'heard c']);
  expect((await shape(id)).sort()).toEqual(['model', 'model', 'run shout', 'run whisper', 'run whisper']);
});

test('a tool that is tried more than once does not ride, nor do more than sixteen calls', async () => {
  const [tried, many] = [await started(), await started()];
  stage.play(tried, callTools(heard('a'), { name: 'stubborn', input: { words: 'b' } }), text('Done.'));
  stage.play(
    many,
    callTools(...Array.from({ length: 16 }, (_, n) => heard(`${n}`))),
    callTools(...Array.from({ length: 17 }, (_, n) => heard(`${n}`))),
    text('Done.'),
  );
  await Promise.all([tried, many].map((id) => world.client.send(id, say(id, 'go'))));
  expect((await shape(tried)).sort()).toEqual(['model', 'model', 'run stubborn', 'run whisper']);
  const shapes = await shape(many);
  expect(shapes.slice(0, 2)).toEqual(['model', `model${' whisper'.repeat(16)}`]);
  expect(shapes.slice(2)).toEqual([...Array<string>(17).fill('run whisper'), 'model']);
  expect(resultTexts(stage.requests(many)[2])).toEqual(Array.from({ length: 17 }, (_, n) => `heard ${n}`));
});

test('a call that a person must allow, or a question to a person, keeps the quick ones beside it from riding', async () => {
  const [secret, question] = [await started({ agent: 'asking' }), await started()];
  stage.play(secret, callTools(heard('a'), heard('secret')), text('Done.'));
  stage.play(question, callTools(heard('a'), { name: 'ask_user', input: { question: 'Which?' } }), text('Done.'));
  const sent = [secret, question].map((id) => world.client.send(id, say(id, 'go')));
  for (const id of [secret, question]) {
    const [one] = await waitFor(
      () => world.client.approvals(id).catch(() => []),
      (list) => list.length === 1,
    );
    await world.client.decide(id, {
      callId: one?.callId ?? '',
      decision: 'approve',
      ...(one?.kind === 'question' && { note: 'this one' }),
    });
  }
  await Promise.all(sent);
  expect(await shape(secret)).toEqual(['model', 'run whisper', 'run whisper', 'model']);
  expect(resultTexts(stage.requests(secret)[1])).toEqual(['heard a', expect.stringContaining('heard secret')]);
  expect(await shape(question)).toEqual(['model', 'run whisper', 'model']);
  expect(resultTexts(stage.requests(question)[1])).toEqual(['heard a', expect.stringContaining('this one')]);
});

test('nothing rides beside a sub-agent, or beside a call that compacts the context', async () => {
  const [parent, child, compacting] = [await started(), world.id(), await started()];
  stage.play(parent, callTools(heard('a'), { name: 'delegate', input: { task: say(child, 'help'), title: 'help' } }), text('Done.'));
  stage.play(compacting, callTools(heard('a'), { name: 'compact_context' }), text('Done.'));
  await Promise.all([parent, compacting].map((id) => world.client.send(id, say(id, 'go'))));
  for (const id of [parent, compacting]) {
    const steps = await shape(id);
    expect(steps.filter((name) => name.startsWith('run'))).toEqual(['run whisper']);
    expect(steps.filter((name) => name.startsWith('model'))).toEqual(['model', 'model']);
    expect(resultTexts(stage.requests(id)[1])[0]).toBe('heard a');
  }
});

test('who steps, or has put a breakpoint on one of the tools, sees each of them by itself', async () => {
  const [stepping, breaking] = [await started({ mode: 'stepping' }), await started()];
  for (const id of [stepping, breaking]) stage.play(id, callTools(heard('a'), heard('b')), text('Done.'));
  await world.client.setBreakpoints(breaking, { tools: ['whisper'] });
  for (const id of [stepping, breaking]) await world.client.message(id, say(id, 'go'));
  await waitFor(
    () => world.client.status(breaking),
    ({ mode }) => mode === 'stepping',
  );
  const did: string[] = [];
  for (const id of [stepping, breaking]) {
    for (let step = await world.client.step(id); step.did !== 'nothing'; step = await world.client.step(id)) did.push(step.did);
  }
  expect(did).toEqual([...['event', 'model-call', 'tool-run', 'tool-run', 'model-call'], ...['tool-run', 'tool-run', 'model-call']]);
  for (const id of [stepping, breaking]) {
    expect(await shape(id)).toEqual(['model', 'run whisper', 'run whisper', 'model']);
    expect(resultTexts(stage.requests(id)[1])).toEqual(['heard a', 'heard b']);
  }
});

test('a tool that throws while it rides, and one that is not there, are errors that the model reads beside the other results', async () => {
  const id = await started();
  stage.play(id, callTools(heard('a'), { name: 'trip' }, { name: 'teleport' }, heard('b')), text('I see.'));
  expect(await world.client.send(id, say(id, 'go'))).toMatchObject({ text: 'I see.', toolCalls: 4 });
  expect(await shape(id)).toEqual(['model', 'model whisper trip teleport whisper']);
  expect(resultTexts(stage.requests(id)[1])).toEqual([
    'heard a',
    expect.stringContaining('the lamp is out'),
    expect.stringContaining('There is no tool "teleport"'),
    'heard b',
  ]);
});

test('a tool that hangs while it rides is stopped after its own second, and the model is called with the other results', async () => {
  const id = await started();
  stage.play(id, callTools({ name: 'hang' }, heard('a')), text('Never mind.'));
  expect(await world.client.send(id, say(id, 'go'))).toMatchObject({ text: 'Never mind.', toolCalls: 2 });
  expect(resultTexts(stage.requests(id)[1])).toEqual(['The tool did not finish within 1000 ms and was stopped.', 'heard a']);
  const [, step] = await modelStepsOf(world, id);
  expect(step).toMatchObject({ attempt: 1, output: { kind: 'answered', tools: [{ outcome: 'error' }, { outcome: 'ok' }] } });
  expect(step?.output?.tools[0]?.ms).toBeLessThan(1_000 + 1_500);
});

test('five tools that hang together have five seconds together, whatever they allow themselves, and the model is called all the same', async () => {
  const id = await started();
  stage.play(id, callTools(...Array.from({ length: 5 }, () => ({ name: 'hang_long' }))), text('Never mind.'));
  const sent = world.client.send(id, say(id, 'go'));
  await stage.waitForRequest(id, 1);
  expect(await sent).toMatchObject({ text: 'Never mind.', toolCalls: 5 });
  expect(resultTexts(stage.requests(id)[1])).toEqual(
    Array<string>(5).fill('The tool did not finish within the time of its step and was stopped.'),
  );
  expect((await modelStepsOf(world, id)).map(({ attempt }) => attempt)).toEqual([1, 1]);
});

test('a tool that answers with a mebibyte while it rides: history has a reference, the store all of it, and the model reads what a result may have', async () => {
  const advanced = { softThreshold: 1_000_000, hardThreshold: 1_500_000, truncationThreshold: 1_800_000 };
  await world.writeAgent('roomy', { memory: { enabled: false }, context: { maxTokens: 2_000_000, advanced } });
  const big = await started({ agent: 'roomy' });
  stage.play(big, callTools({ name: 'flood', input: { words: '' } }, { name: 'much' }, heard('a')), text('That was a lot.'));
  expect(await world.client.send(big, say(big, 'go'))).toMatchObject({ text: 'That was a lot.' });
  const [whole, bounded, short] = resultTexts(stage.requests(big)[1]);
  expect([whole?.length, short]).toEqual([1024 * 1024, 'heard a']);
  expect(bounded?.length).toBeLessThanOrEqual(RESULT_BYTES);
  const [, step] = await modelStepsOf(world, big);
  expect(step?.output?.tools[0]?.text).toMatchObject({ bytes: 1024 * 1024 });
  expect(JSON.stringify(step?.output).length).toBeLessThan(8_000);
});

test('an interrupt while tools ride ends the turn in time; each call has one answer and the next turn is taken', async () => {
  const id = await started();
  stage.play(id, callTools({ name: 'listen' }, { name: 'hang_long' }, heard('a')));
  const sent = world.client.send(id, say(id, 'go'));
  await untilBegun(id, 'turn_0001/c1');
  await world.client.interrupt(id);
  expect(await sent).toMatchObject({ stopReason: 'interrupted', toolCalls: 3 });
  expect(stopped).toContain(`${id} turn_0001/c1`);
  stage.play(id, text('Still here.'));
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ text: 'Still here.', turnId: 'turn_0002' });
  expect(stage.requests(id)).toHaveLength(2);
  const answered = (await world.client.history(id)).flatMap(({ message }) =>
    message.role === 'tool' ? [`${message.callId} ${message.outcome}`] : [],
  );
  // The third is quick: whether it was done before the interrupt came is chance.
  const third = expect.stringMatching(/^turn_0001\/c3 (ok|error)$/) as unknown;
  expect(answered).toEqual(['turn_0001/c1 error', 'turn_0001/c2 error', third]);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('an interrupt while the model speaks after tools that rode keeps their results and what was said', async () => {
  const id = await started();
  const whole = 'This is whole.';
  const hold = gate({ chars: whole.length + 4 });
  stage.play(id, callTools(heard('a'), heard('b')), { text: [whole, 'And this is not finished.'], holdAfter: hold });
  const sent = world.client.send(id, say(id, 'go'));
  await heardFrom(world, id, whole);
  await world.client.interrupt(id);
  expect(await sent).toMatchObject({ stopReason: 'interrupted', text: expect.stringContaining(whole) });
  await world.client.send(id, say(id, 'go on'));
  const told = JSON.stringify(stage.requests(id)[2]?.messages);
  for (const words of ['heard a', 'heard b', whole]) expect(told).toContain(words);
  expect(told).not.toContain('not finished');
  expect((await world.client.history(id)).map(({ slot }) => slot)).toEqual([1, 2, 3, 4, 5, 6, 7]);
});

test('what is said while tools ride waits for the next call, and becomes the next turn where none follows', async () => {
  const [joined, next] = [await started(), await started()];
  const holds = [gate(), gate()];
  stage.play(joined, callTool('hang'), { ...callTool('whisper', { words: 'a' }), holdAfter: holds[0] as never }, text('Both.'));
  stage.play(next, callTool('hang'), { ...text('The first.'), hold: holds[1] as never }, text('The second.'));
  const sent = [joined, next].map((id) => world.client.send(id, say(id, 'go')));
  await Promise.all([joined, next].map((id) => untilBegun(id, 'turn_0001/c1')));
  const steered = [joined, next].map((id) => world.client.send(id, { id: 'steer', text: say(id, 'and this'), delivery: 'steer' }));
  await Promise.all(holds.map(({ reached }) => reached));
  holds.forEach(({ release }) => release());
  expect(await Promise.all(sent)).toMatchObject([{ text: 'Both.' }, { text: 'The first.' }]);
  expect(await Promise.all(steered)).toMatchObject([
    { turnId: 'turn_0001', text: 'Both.' },
    { turnId: 'turn_0002', text: 'The second.' },
  ]);
  expect(JSON.stringify(stage.requests(joined)[2]?.messages)).toContain('and this');
  expect(stage.requests(joined)).toHaveLength(3);
});

testReplays(() => world);
