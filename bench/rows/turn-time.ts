/** How long a turn takes, against as many bare activities. */
import { said } from '../bodies.js';
import type { FloorKind } from '../floors.js';
import { bestPair, turnAbout } from '../pairs.js';
import type { StoreKind } from '../product.js';
import type { Row } from '../row.js';

function turnTimeRow(name: string, kind: FloorKind, stores: readonly StoreKind[], limit: number): Row {
  return {
    name,
    async measure(surroundings, amount) {
      const floor = await surroundings.floor();
      const text = (number: number): string => said(kind, 1, number);
      const measured = [];
      for (const store of stores) {
        const product = await surroundings.product(store);
        const { cpu: _, ...best } = await bestPair(amount.pairs, async () => {
          const own = { talk: await product.start(), from: amount.warmUp };
          const bare = { talk: await floor.start(kind), from: amount.warmUp };
          await turnAbout({ ...own, from: 0 }, { ...bare, from: 0 }, amount.warmUp, text);
          return turnAbout(own, bare, amount.turns, text);
        });
        measured.push({
          row: `${name}, ${store}`,
          ...best,
          unit: 'ms',
          toHold: `≤ ${limit}`,
          holds: best.ratio <= limit,
        });
      }
      return measured;
    },
  };
}

export const textTurn = turnTimeRow('text-turn', 'text', ['redis', 'file'], 1.5);
export const quickTool = turnTimeRow('quick-tool', 'quick', ['redis'], 1.4);
export const ordinaryTool = turnTimeRow('ordinary-tool', 'ordinary', ['redis'], 1.3);
