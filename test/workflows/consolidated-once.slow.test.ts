/** Long-term memory gets each turn once: random lives. */
import fc from 'fast-check';
import { closeWorld, lives, openWorld, tryLives } from './consolidated-once.js';

jest.setTimeout(30 * 60_000);

const RUNS = process.env['PERDURA_LONG'] === '1' ? 200 : 10;

beforeAll(openWorld);
afterAll(closeWorld);

test.each(['default', 'small'])('each turn of the past is in one consolidation (%s)', async (agent) => {
  const property = fc.asyncProperty(lives, fc.integer({ min: 1, max: 9 }), (actions, first) => tryLives(agent, first, actions));
  await fc.assert(property, { numRuns: RUNS });
});
