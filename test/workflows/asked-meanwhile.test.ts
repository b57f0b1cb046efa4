/** Who asks for a conversation's status must not change it: what was decided first is decided first again on replay. */
import { askMeanwhile, doorkeeper, hasOutlivedItsTask } from '../support/asked-meanwhile.js';
import { replayProblems } from '../support/replays.js';
import { runsOf } from '../support/run-chain.js';
import { createStage } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

/** At one of these moments the answer comes when it is to come; of those, half did not replay. */
const MOMENTS_MS = [0, 10, 20, 30, 40, 50, 60, 70];

const stage = createStage();
let world: World;
beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, processors: { input: [doorkeeper] } });
});
afterAll(() => world.close());

test('a local step that outlives its task, because somebody asked for the status, replays', async () => {
  let outlived = 0;
  for (const laterMs of MOMENTS_MS) {
    const id = world.id();
    await askMeanwhile(world, id, (reply) => stage.play(id, reply), laterMs);
    await waitFor(
      () => world.client.status(id),
      ({ phase, queued }) => phase === 'idle' && queued === 0,
    );
    if ((await runsOf(world, id)).some(hasOutlivedItsTask)) outlived += 1;
  }
  expect(outlived).toBeGreaterThan(0);
  expect(await replayProblems(world)).toEqual([]);
}, 120_000);
