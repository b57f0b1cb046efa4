import { replayRuns } from '../../src/heal/replay-runs.js';
import { startWorld, workflowBundle, type World } from '../support/world.js';

let world: World;
afterEach(() => world.close());

test('a run that no worker has begun is no problem, and nothing waits for it', async () => {
  world = await startWorld({ worker: false });
  const id = world.id();
  await world.client.start(id);
  const { histories, complete } = await world.client.runs(id);
  const code = {
    workflowBundle: await workflowBundle(),
    dataConverter: { payloadConverterPath: require.resolve('../../src/workflows/payload-converter') },
  };
  expect(histories).toHaveLength(1);
  expect(complete).toBe(true);
  expect(await replayRuns(code, id, histories)).toEqual({ runs: [undefined], problems: [] });
});
