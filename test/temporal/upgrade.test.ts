/** Workers of two builds whose steps differ in order: a turn ends where it began, and the next begins on the build that takes new runs. */
import { z } from 'zod';
import { buildsOf, createRollout, replayProblem, twoBuilds, type Rollout } from '../support/builds.js';
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';
import { defineTool } from '../../src/tools/define-tool.js';

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ to: z.string() }),
  policy: { repeatable: false, approval: 'ask' },
  run: ({ to }) => `Paid ${to}.`,
});

const stage = createStage();
let world: World;
let rollout: Rollout;
const ends: (() => Promise<void>)[] = [];

beforeAll(async () => {
  world = await startWorld({ engine: 'temporal', answer: stage.answer, tools: [pay], worker: false });
  rollout = createRollout(world);
  const { v1, v2 } = await twoBuilds();
  ends.push(await world.startWorker({ workflows: v1, build: rollout.build('v1') }));
  ends.push(await world.startWorker({ workflows: v2, build: rollout.build('v2') }));
  await rollout.makeCurrent('v1');
});
afterAll(async () => {
  for (const end of ends) await end();
  await world.close();
});

const isOn = (id: string, build: string) =>
  waitFor(
    () => buildsOf(world, id).catch(() => []),
    (builds) => builds.at(-1) === build,
  );

test('idle conversations move when they are spoken to and when they are woken, a turn ends where it began, and a parked one moves on demand', async () => {
  const { client } = world;
  const [spoken, woken, busy, parked] = [world.id(), world.id(), world.id(), world.id()];
  for (const id of [spoken, woken, busy, parked]) await client.start(id);
  const held = gate();
  stage.play(spoken, text('One.'), text('Two.'), text('Three.'));
  stage.play(busy, { ...text('At last.'), hold: held });
  stage.play(parked, callTool('pay', { to: 'Ada' }), text('Paid.'));
  expect(await client.send(spoken, say(spoken, '1'))).toMatchObject({ text: 'One.' });
  const answer = client.send(busy, say(busy, 'wait'));
  const paid = client.send(parked, say(parked, 'pay Ada'));
  await held.reached;
  const asked = await waitFor(
    () => client.approvals(parked),
    (list) => list.length === 1,
  );

  await rollout.makeCurrent('v2');
  // What is current reaches workers after a moment: until then a conversation stays.
  let turns = 1;
  await waitFor(
    async () => {
      await client.send(spoken, say(spoken, `${++turns}`));
      return buildsOf(world, spoken);
    },
    (builds) => builds.at(-1) === 'v2',
  );
  await rollout.makeCurrent('v1');
  await waitFor(
    async () => {
      await client.send(spoken, say(spoken, `${++turns}`));
      return buildsOf(world, spoken);
    },
    (builds) => builds.at(-1) === 'v1',
  );
  await rollout.makeCurrent('v2');
  const { deploymentName } = rollout.build('v2');
  await waitFor(
    async () => {
      await rollout.deployments.wake(deploymentName, ['v2']);
      return rollout.conversations();
    },
    ({ v2 }) => v2 === 2,
  );
  expect((await buildsOf(world, busy)).at(-1)).toBe('v1');
  expect(await client.approvals(parked)).toEqual(asked);
  held.release();
  expect(await answer).toMatchObject({ text: 'At last.', stopReason: 'end' });
  await isOn(busy, 'v2');

  await rollout.deployments.wake(deploymentName, ['v2'], { parked: true });
  await isOn(parked, 'v2');
  expect(await client.approvals(parked)).toEqual(asked);
  await client.decide(parked, { callId: asked[0]!.callId, decision: 'approve', hash: asked[0]!.hash });
  expect(await paid).toMatchObject({ text: 'Paid.', stopReason: 'end', toolCalls: 1 });

  const history = await client.history(spoken);
  expect(history.filter(({ message }) => message.role === 'user')).toHaveLength(turns);
  for (const id of [spoken, woken, busy, parked]) expect(await workflowTaskFailures(world, id)).toEqual([]);
  await client.send(spoken, say(spoken, 'once more'));
  // Else the two builds would not differ.
  const { v1, v2 } = await twoBuilds();
  expect(await replayProblem(world, spoken, v2)).toBeUndefined();
  expect(await replayProblem(world, spoken, v1)).toMatch(/[Nn]ondeterminism/);
}, 120_000);
