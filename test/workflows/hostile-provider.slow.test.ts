/** Five thousand random providers (support/hostile-runs.ts). `FIRST_SEED` begins elsewhere. */
import { startHostileRuns } from '../support/hostile-runs.js';

const RUNS = 5_000;
const EACH = 500;
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
