/** Turns per second when many talk at once, on one worker. */
import { said } from '../bodies.js';
import { bestPair, timeTurns } from '../pairs.js';
import type { StoreKind } from '../product.js';
import type { Measured, Row } from '../row.js';
import type { Talk } from '../talk.js';

const CONVERSATIONS = 100;
const TURNS = 5;
const LIMIT = 0.8;

export const throughput: Row = {
  name: 'throughput',
  async measure(surroundings, { pairs }) {
    const floor = await surroundings.floor();
    const measured: Measured[] = [];
    for (const store of ['redis', 'file'] satisfies StoreKind[]) {
      const product = await surroundings.product(store);
      const { cpu: _, ...best } = await bestPair(
        pairs,
        async () => ({
          product: await turnsPerSecond(() => product.start()),
          floor: await turnsPerSecond(() => floor.start('text')),
        }),
        true,
      );
      measured.push({
        row: `throughput: ${CONVERSATIONS} conversations, ${store}`,
        ...best,
        unit: '/s',
        toHold: `≥ ${LIMIT}`,
        holds: best.ratio >= LIMIT,
      });
    }
    return measured;
  },
};

async function turnsPerSecond(start: () => Promise<Talk>): Promise<number> {
  const talks = await Promise.all(Array.from({ length: CONVERSATIONS }, start));
  const text = (number: number): string => said('text', 0, number);
  await Promise.all(talks.map((talk) => timeTurns(talk, 1, text)));
  const begin = performance.now();
  await Promise.all(talks.map((talk) => timeTurns(talk, TURNS, text, 1)));
  return (CONVERSATIONS * TURNS * 1000) / (performance.now() - begin);
}
