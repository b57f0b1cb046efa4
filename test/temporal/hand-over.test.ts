/** Runs hand over to the next, again and again, and nobody who talks to the conversation can tell. */
import { z } from 'zod';
import { callTool, callTools, gate, text } from '../support/provider-apis/reply.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { testReplays } from '../support/replays.js';
import { startWorld, type World } from '../support/world.js';

const look = defineTool({
  name: 'look',
  description: 'Looks at a thing.',
  input: z.object({ at: z.string() }),
  policy: { repeatable: true },
  run: ({ at }) => `I saw ${at}.`,
});

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({
    engine: 'temporal',
    answer: stage.answer,
    tools: [look],
    agent: { limits: { handOver: { events: 20 } }, memory: { memoryWindow: 1_000 } },
  });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

async function started(): Promise<string> {
  const id = world.id();
  await world.client.start(id);
  return id;
}

/** Each run ends within reach of its limit: what is in flight is finished, and nothing else begun. */
async function expectHandedOver(id: string): Promise<void> {
  const runs = await runsOf(world, id);
  expect(runs.length).toBeGreaterThan(1);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
}

test('thirty messages are answered in order over many runs, and the status can be read all the while', async () => {
  const id = await started();
  stage.play(id, ...Array.from({ length: 30 }, (_, n) => text(`Answer ${n + 1}.`)));
  const watching = waitFor(
    async () => [await world.client.status(id), await world.client.queue(id)] as const,
    ([{ turns }]) => turns === 30,
  );
  for (let n = 1; n <= 30; n++) {
    expect(await world.client.send(id, say(id, `${n}`))).toMatchObject({ text: `Answer ${n}.`, stopReason: 'end' });
  }
  const [status, queue] = await watching;
  expect(status).toMatchObject({ phase: 'idle', turn: 30, turns: 30, queued: 0 });
  expect(queue).toEqual([]);
  expect((await runsOf(world, id)).length).toBeGreaterThan(3);
  expect(await world.client.history(id)).toHaveLength(60);
  expect(stage.requests(id).at(-1)?.messages).toHaveLength(59);
  await expectHandedOver(id);
});

test('a turn with many rounds of tools goes on in the next run, and every call has its result', async () => {
  const id = await started();
  const rounds = Array.from({ length: 6 }, (_, n) =>
    callTools(...['a', 'b', 'c'].map((at) => ({ name: 'look', input: { at: `${at}${n}` } }))),
  );
  stage.play(id, ...rounds, text('Seen.'));
  expect(await world.client.send(id, say(id, 'look around'))).toMatchObject({ turnId: 'turn_0001', text: 'Seen.', toolCalls: 18 });
  for (const [n] of rounds.entries()) {
    expect(resultTexts(stage.requests(id)[n + 1])).toEqual(['a', 'b', 'c'].map((at) => `I saw ${at}${n}.`));
  }
  const runs = await runsOf(world, id);
  const scheduled = runs.map((events) => events.filter((event) => event.activityTaskScheduledEventAttributes).length);
  expect(scheduled.reduce((sum, count) => sum + count, 0)).toBe(7 + 18);
  await expectHandedOver(id);
});

test('forty calls at once are more than a run may have, and all are answered', async () => {
  const id = await started();
  const many = Array.from({ length: 40 }, (_, n) => `thing ${n}`);
  // The first turn brings the settings, and with them the early hand-over.
  await world.client.send(id, say(id, 'hi'));
  stage.play(id, callTools(...many.map((at) => ({ name: 'look', input: { at } }))), text('Seen.'));
  expect(await world.client.send(id, say(id, 'look'))).toMatchObject({ text: 'Seen.', toolCalls: 40 });
  expect(resultTexts(stage.requests(id)[2])).toEqual(many.map((at) => `I saw ${at}.`));
  await expectHandedOver(id);
});

test('a reset that waits while runs hand over is done once, in its place', async () => {
  const id = await started();
  for (let n = 1; n <= 3; n++) await world.client.send(id, say(id, `${n}`));
  const hold = gate();
  stage.play(id, callTool('look', { at: 'it' }), { text: 'Never said.', hold });
  const last = world.client.send(id, say(id, 'the last of the session'));
  await hold.reached;
  // Signals until the run is over its limit: it hands over as soon as the turn is stopped.
  for (let n = 1; n <= 20; n++) await world.temporal.workflow.getHandle(id).signal('nothing', n);
  const resets = Promise.all([world.client.reset(id), world.client.reset(id), world.client.send(id, '/new')]);
  expect(await resets).toMatchObject([{ session: 2 }, { session: 2 }, { stopReason: 'reset' }]);
  expect(await last).toMatchObject({ turnId: 'turn_0004', stopReason: 'interrupted' });
  expect(await world.client.send(id, say(id, 'hi'))).toMatchObject({ turnId: 'turn_0005', stopReason: 'end' });
  expect(stage.requests(id).at(-1)?.messages).toHaveLength(1);
  expect(await world.client.status(id)).toMatchObject({ session: 2, turns: 5 });
  await expectHandedOver(id);
});

test('a send that waits while its run hands over is told to ask again, and the client does', async () => {
  const id = await started();
  await world.client.send(id, say(id, 'settings come with the first turn'));
  stage.play(id, callTool('look', { at: 'one' }), callTool('look', { at: 'two' }), callTool('look', { at: 'three' }), text('Seen.'));
  const raw = world.temporal.workflow.getHandle(id).executeUpdate('send', { args: [say(id, 'look thrice')] });
  await stage.waitForRequest(id, 2);
  const through = world.client.send(id, { id: 'again', text: say(id, 'and then') });
  expect(await raw).toMatchObject({ turnId: 'turn_0002', text: '', stopReason: 'continues' });
  expect(await through).toMatchObject({ turnId: 'turn_0003', stopReason: 'end' });
  expect(await world.client.turn(id, 'turn_0002')).toMatchObject({ text: 'Seen.', toolCalls: 3 });
  await expectHandedOver(id);
});

test('what is in flight when a hand-over is due is waited for', async () => {
  const id = await started();
  await world.client.send(id, say(id, 'hi'));
  const hold = gate();
  stage.play(id, { text: 'Said in full.', hold });
  const sent = world.client.send(id, say(id, 'long'));
  await hold.reached;
  for (let n = 1; n <= 20; n++) await world.temporal.workflow.getHandle(id).signal('nothing', n);
  await waitFor(
    () => world.client.status(id),
    ({ historyEvents, rejectedInputs }) => historyEvents > 20 && rejectedInputs.count === 20,
  );
  hold.release();
  expect(await sent).toMatchObject({ turnId: 'turn_0002', text: 'Said in full.', stopReason: 'end' });
  expect(stage.requests(id)).toHaveLength(2);
  await world.client.send(id, say(id, 'and now?'));
  await expectHandedOver(id);
});

test('an interrupt while a hand-over is due stops the turn', async () => {
  const id = await started();
  await world.client.send(id, say(id, 'hi'));
  const hold = gate();
  stage.play(id, { text: 'Never said.', hold }, text('Still here.'));
  const sent = world.client.send(id, say(id, 'long'));
  await hold.reached;
  for (let n = 1; n <= 20; n++) await world.temporal.workflow.getHandle(id).signal('nothing', n);
  await waitFor(
    () => world.client.status(id),
    ({ historyEvents }) => historyEvents > 20,
  );
  await world.client.interrupt(id);
  expect(await sent).toMatchObject({ stopReason: 'interrupted' });
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ text: 'Still here.' });
  await expectHandedOver(id);
});

test('a close that races a hand-over completes the conversation with the sums of all runs', async () => {
  const id = await started();
  await Promise.all(Array.from({ length: 12 }, (_, n) => world.client.message(id, say(id, `${n}`))));
  await world.client.closeConversation(id);
  expect(await world.temporal.workflow.getHandle(id).result()).toMatchObject({ turns: 12, sessions: 1 });
  expect(stage.requests(id)).toHaveLength(12);
  await expectHandedOver(id);
});

testReplays(() => world);
