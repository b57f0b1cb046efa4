/** The first of the random providers; all of them: hostile-provider.slow.test.ts. */
import { startHostileRuns, type HostileRuns } from '../support/hostile-runs.js';

let runs: HostileRuns;
beforeAll(async () => {
  runs = await startHostileRuns();
});
afterAll(() => runs.close());

test('after whatever a provider does, the second hello is answered, within bounds, and what was billed is counted', async () => {
  for (let seed = 1; seed <= 25; seed++) await runs.run(seed);
  await runs.checkUsage();
});
