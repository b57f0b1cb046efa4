/** How long it takes to have any state of a long conversation again: the whole fold, and then a state far back. */
import { createPast } from '../../src/conversation/replay/past.js';
import { manyTurns } from '../../test/support/many-turns.js';
import type { Row } from '../row.js';

const LIMIT_S = 2;

export const fold: Row = {
  name: 'fold',
  measure(_, { folded: turns }) {
    const run = manyTurns(turns);
    const began = performance.now();
    const past = createPast([run]);
    const whole = (performance.now() - began) / 1000;
    const far = Array.from({ length: 101 }, (_unused, n) => {
      const from = performance.now();
      past.at(Math.floor((past.last * ((n * 37) % 101)) / 100));
      return performance.now() - from;
    });
    const worst = Math.max(...far);
    const seconds = whole + worst / 1000;
    return Promise.resolve([
      {
        row: `fold: ${turns} turns back to any state`,
        product: seconds,
        unit: 's',
        toHold: `≤ ${LIMIT_S} s`,
        holds: seconds <= LIMIT_S,
        notes: [`${past.last} events folded in ${whole.toFixed(2)} s, then any state in at most ${worst.toFixed(1)} ms`],
      },
    ]);
  },
};
