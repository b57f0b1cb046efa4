/** Stop means stop: within two seconds, in every state of a turn, and the conversation stays usable. */
import { z } from 'zod';
import { rateLimited, silence } from '../support/provider-apis/faults.js';
import { callTool, callTools, gate, text } from '../support/provider-apis/reply.js';
import { toToolInteractions, toTraces } from '../../src/memory/traces.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { outside, type Outside } from '../support/outside.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, heardFrom, resultTexts, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { testReplays } from '../support/replays.js';
import { startWorld, type World } from '../support/world.js';

const deaf = defineTool({
  name: 'deaf',
  description: 'Never ends, and listens to nobody.',
  input: z.object({}),
  policy: { timeoutMs: 600_000 },
  run: () => new Promise<string>(() => undefined),
});
const shipped = { done: (): void => undefined };
const ship = defineTool({
  name: 'ship',
  description: 'Sends a parcel, and cannot be stopped.',
  input: z.object({}),
  run: () => new Promise<string>((resolve) => (shipped.done = () => resolve('Sent: parcel 7731.'))),
});
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({}),
  policy: { repeatable: true },
  run: () => 'I looked.',
});

const stage = createStage();
let world: World;
/** Where a tool has reported. */
const reported = new Set<string>();
let program: Outside;

beforeAll(async () => {
  world = await startWorld({
    answer: stage.answer,
    tools: [deaf, ship, look],
    holds: (why) => why.endsWith('rate-limit'),
    observe: (id, event) => event.kind === 'effect-completed' && event.effect === 'run-tool' && reported.add(id),
  });
  program = outside(world);
  await world.writeAgent('brief', { limits: { handOver: { updates: 2 } } });
});
// The end of a worker waits for no tool that was stopped and never listens.
afterAll(() => world.close(), 120_000);
afterEach(() => expect(world.api.problems).toEqual([]));

async function started(): Promise<string> {
  const id = world.id();
  await program.start(id);
  return id;
}

async function interrupted(id: string, sent: Promise<unknown>, ...args: unknown[]): Promise<unknown> {
  await program.signal(id, 'interrupt', ...args);
  return sent;
}

async function expectUsable(id: string): Promise<void> {
  stage.play(id, text('Still here.'));
  expect(await program.update(id, 'send', say(id, 'go on'))).toMatchObject({ text: 'Still here.', stopReason: 'end' });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
}

test('while the model streams, what was said is kept and marked, up to the word', async () => {
  const id = await started();
  const whole = 'This paragraph is whole.';
  const begun = 'This one is not finished';
  const hold = gate({ chars: whole.length + begun.length });
  stage.play(id, { text: [whole, 'This one is not finished and never will be.'], holdAfter: hold });
  const sent = program.update(id, 'send', say(id, 'tell me'));
  await heardFrom(world, id, begun);
  expect(await interrupted(id, sent, { reason: 'enough' })).toMatchObject({
    turnId: 'turn_0001',
    text: `${whole}\n\n${begun}`,
    stopReason: 'interrupted',
  });
  expect((await world.client.history(id)).at(-1)?.message).toEqual({
    role: 'assistant',
    blocks: [
      { kind: 'text', text: whole },
      { kind: 'text', text: begun },
    ],
    model: 'anthropic/claude-test',
    stop: 'interrupted',
  });
  await expectUsable(id);
  const prompt = JSON.stringify(stage.requests(id)[1]?.messages);
  expect(prompt).toContain(whole);
  expect(prompt).toContain(begun);
  expect(prompt).not.toContain('never will be');
  // Each word of the person is followed by one of the model.
  expect(stage.requests(id)[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  expect(prompt).toContain('[The person stopped the answer here.]');
});

test('while the API is silent', async () => {
  const id = await started();
  stage.play(id, silence('before-headers'));
  const sent = program.update(id, 'send', say(id, 'hello?'));
  await stage.waitForRequest(id, 1);
  expect(await interrupted(id, sent)).toMatchObject({ stopReason: 'interrupted', text: '' });
  await expectUsable(id);
});

test('while a tool runs that never listens, and the model is told that its outcome is unknown', async () => {
  const id = await started();
  stage.play(id, callTools({ name: 'deaf' }, { name: 'look' }));
  const sent = program.update(id, 'send', say(id, 'use it'));
  await waitFor(
    () => program.query(id, 'status'),
    (status) => (status as { phase: string }).phase === 'running-tools',
  );
  expect(await interrupted(id, sent)).toMatchObject({ stopReason: 'interrupted', toolCalls: 2 });
  await expectUsable(id);
  const told = JSON.stringify(stage.requests(id)[1]?.messages);
  expect(told).toMatch(/Interrupted/);
  expect(told.match(/tool_result/g)).toHaveLength(2);
});

test('what a tool that never listens brings after the stop is told in the next turn, and is the result in its trace', async () => {
  const id = await started();
  stage.play(id, callTool('ship'));
  const sent = program.update(id, 'send', say(id, 'ship it'));
  await waitFor(
    () => program.query(id, 'status'),
    (status) => (status as { phase: string }).phase === 'running-tools',
  );
  expect(await interrupted(id, sent)).toMatchObject({ stopReason: 'interrupted', toolCalls: 1 });
  shipped.done();
  await waitFor(() => Promise.resolve(reported.has(id)), Boolean);
  await expectUsable(id);
  const told = JSON.stringify(stage.requests(id)[1]?.messages);
  // One that comes before the stop is in the trace stands there itself.
  expect(told).toMatch(/Interrupted, outcome unknown.*has finished since.*parcel 7731|Sent: parcel 7731\.\\n\[The person stopped/);
  const entries = await world.client.history(id);
  const traces = entries.flatMap((entry) => toTraces(entry, id));
  expect(toToolInteractions(traces)).toMatchObject([
    { turn_id: 'turn_0001', status: 'SUCCESS', result: expect.stringMatching(/^Sent: parcel 7731\./) },
  ]);
});

test('a run that waits for such a tool hands over later', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'brief' });
  stage.play(id, callTool('ship'));
  const sent = program.update(id, 'send', say(id, 'ship it'));
  await waitFor(
    () => program.query(id, 'status'),
    (status) => (status as { phase: string }).phase === 'running-tools',
  );
  expect(await interrupted(id, sent)).toMatchObject({ stopReason: 'interrupted', toolCalls: 1 });
  await expectUsable(id);
  shipped.done();
  await waitFor(() => Promise.resolve(reported.has(id)), Boolean);
  await expectUsable(id);
  expect(JSON.stringify(stage.requests(id)[2]?.messages)).toMatch(/has finished since.*parcel 7731/);
});

test('while a retry waits for an hour, which the status shows with its time', async () => {
  const id = await started();
  stage.play(id, rateLimited({ retryAfter: 3600 }));
  const sent = program.update(id, 'send', say(id, 'hi'));
  const { waiting } = (await waitFor(
    () => program.query(id, 'status'),
    (status) => (status as { phase: string }).phase === 'waiting-to-retry',
  )) as { waiting: { kind: string; until: string } };
  expect(waiting.kind).toBe('retry');
  expect(Date.parse(waiting.until) - world.now()).toBeGreaterThan(3_400_000);
  expect(await interrupted(id, sent)).toMatchObject({ stopReason: 'interrupted' });
  expect(stage.requests(id)).toHaveLength(1);
  await expectUsable(id);
});

test('when nothing runs an interrupt does nothing, and one that cannot be read still stops', async () => {
  const id = await started();
  await program.signal(id, 'interrupt');
  const hold = gate();
  stage.play(id, text('Hello.'), { text: 'long', hold });
  expect(await program.update(id, 'send', say(id, 'hi'))).toMatchObject({ stopReason: 'end' });
  const sent = program.update(id, 'send', say(id, 'again'));
  await hold.reached;
  expect(await interrupted(id, sent, { why: 42 }, 'extra')).toMatchObject({ stopReason: 'interrupted' });
  await expectUsable(id);
});

test('only the running turn is stopped: what waits behind it is answered', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { text: 'long', hold }, text('Second.'));
  const first = program.update(id, 'send', say(id, 'one'));
  await hold.reached;
  const second = program.update(id, 'send', say(id, 'two'));
  await waitFor(
    () => program.query(id, 'queue'),
    (queue) => (queue as unknown[]).length === 1,
  );
  expect(await interrupted(id, first)).toMatchObject({ stopReason: 'interrupted' });
  expect(await second).toMatchObject({ text: 'Second.', stopReason: 'end' });
});

test('a message with delivery interrupt stops the turn and is answered next, before what waits', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, callTool('look'), { text: 'long', hold }, text('Urgent answer.'), text('Patient answer.'));
  const first = program.update(id, 'send', say(id, 'one'));
  await hold.reached;
  const patient = program.update(id, 'send', say(id, 'no hurry'));
  await waitFor(
    () => program.query(id, 'queue'),
    (queue) => (queue as unknown[]).length === 1,
  );
  const urgent = program.update(id, 'send', { text: say(id, 'fire!'), delivery: 'interrupt' });
  expect(await first).toMatchObject({ stopReason: 'interrupted', toolCalls: 1 });
  expect(await urgent).toMatchObject({ text: 'Urgent answer.' });
  expect(await patient).toMatchObject({ text: 'Patient answer.' });
  expect(resultTexts(stage.requests(id)[1])).toEqual(['I looked.']);
});

testReplays(() => world);
