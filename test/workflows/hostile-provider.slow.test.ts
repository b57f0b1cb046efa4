/** Five hundred random providers (support/hostile-runs.ts), five thousand with PERDURA_LONG=1. `FIRST_SEED` begins elsewhere. */
import { startHostileRuns } from '../support/hostile-runs.js';
import { LONG } from '../support/scene.js';

const RUNS = LONG ? 5_000 : 500;
const EACH = RUNS / 10;
const FIRST = Number(process.env['FIRST_SEED'] ?? 1);

test.each(Array.from({ length: RUNS / EACH }, (_, at) => FIRST + at * EACH))(
  'after whatever a provider does, the second hello is answered: from seed %d',
  async (from) => {
    // One store for a part of them: a scope remembers what its conversations have learnt.
    const runs = await startHostileRuns();
    for (let seed = from; seed < from + EACH; seed++) await runs.run(seed);
    await runs.checkUsage();
    await runs.close();
  },
  1_800_000,
);
