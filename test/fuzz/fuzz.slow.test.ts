/** A few hundred things that nobody has thought of; with PERDURA_LONG=1 tens of thousands. PERDURA_SEED says the same again. */
import * as fc from 'fast-check';
import { seed } from '../storm/random.js';
import { figure, LONG } from '../support/scene.js';
import { standInAWorld, troubleAfter } from './attack.js';
import { anything } from './grammar.js';
import { PHASES } from './phases.js';

const ROUNDS = LONG ? 60 : 1;
const EACH = LONG ? 40 : 24;

standInAWorld();

test.each(Array.from({ length: ROUNDS }, (_, n) => n))(
  'whatever is said, in every phase: all answer, no workflow task fails, every history replays (round %i)',
  async (round) => {
    const phases = Object.keys(PHASES);
    const drawn = fc.sample(anything, { seed: seed + round, numRuns: phases.length * EACH });
    const trouble = await troubleAfter(phases.map((phase, i) => ({ what: 'drawn', phase, said: drawn.slice(i * EACH, (i + 1) * EACH) })));
    figure(`fuzz: PERDURA_SEED=${seed + round} says the same ${drawn.length} things again; ${trouble.length} troubles`);
    expect(trouble).toEqual([]);
  },
);
