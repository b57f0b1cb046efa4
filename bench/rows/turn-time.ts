/** How long a turn takes and what CPU, against as many bare activities. */
import { said } from '../bodies.js';
import type { FloorKind } from '../floors.js';
import { middleOf, repeat, turnAbout } from '../pairs.js';
import type { StoreKind } from '../product.js';
import type { Measured, Row } from '../row.js';

interface Limits {
  readonly time: number;
  /** Without one it is measured and not held. */
  readonly cpu?: number;
}

function turnTimeRow(name: string, kind: FloorKind, stores: Readonly<Partial<Record<StoreKind, Limits>>>): Row {
  return {
    name,
    async measure(surroundings, amount) {
      const floor = await surroundings.floor();
      const text = (number: number): string => said(kind, 1, number);
      const measured: Measured[] = [];
      for (const [store, limits] of Object.entries(stores) as [StoreKind, Limits][]) {
        const product = await surroundings.product(store);
        const pairs = await repeat(amount.pairs, async () => {
          const talks = { product: await product.start(), floor: await floor.start(kind) };
          const from = (turn: number) => ({ floor: { talk: talks.floor, from: turn }, product: { talk: talks.product, from: turn } });
          await turnAbout(from(0), amount.warmUp, text);
          return turnAbout(from(amount.warmUp), amount.turns, text);
        });
        const time = middleOf(pairs.map((pair) => pair.time));
        const cpu = middleOf(pairs.map((pair) => pair.cpu));
        measured.push(
          { row: `${name}, ${store}`, ...time, unit: 'ms', toHold: `≤ ${limits.time}`, holds: time.ratio <= limits.time },
          {
            row: `${name}, ${store}: CPU of client and worker`,
            ...cpu,
            unit: 'ms',
            toHold: limits.cpu === undefined ? '' : `≤ ${limits.cpu}`,
            holds: limits.cpu === undefined || cpu.ratio <= limits.cpu,
          },
        );
      }
      return measured;
    },
  };
}

/** A text turn with all that is stored encrypted, against the same in plain. */
export const encryptedTurn: Row = {
  name: 'encrypted-turn',
  async measure(surroundings, amount) {
    const text = (number: number): string => said('text', 1, number);
    const measured: Measured[] = [];
    for (const store of ['redis', 'file'] as const) {
      const [encrypted, plain] = [await surroundings.encrypted(store), await surroundings.product(store)];
      const pairs = await repeat(amount.pairs, async () => {
        const talks = { product: await encrypted.start(), floor: await plain.start() };
        const from = (turn: number) => ({ floor: { talk: talks.floor, from: turn }, product: { talk: talks.product, from: turn } });
        await turnAbout(from(0), amount.warmUp, text);
        return turnAbout(from(amount.warmUp), amount.turns, text);
      });
      const time = middleOf(pairs.map((pair) => pair.time));
      const cpu = middleOf(pairs.map((pair) => pair.cpu));
      measured.push(
        { row: `encrypted-turn, ${store}`, ...time, unit: 'ms', toHold: '≤ 1.1', holds: time.ratio <= 1.1 },
        { row: `encrypted-turn, ${store}: CPU of client and worker`, ...cpu, unit: 'ms', toHold: '', holds: true },
      );
    }
    return measured;
  },
};

export const textTurn = turnTimeRow('text-turn', 'text', { redis: { time: 1.25, cpu: 1.4 }, file: { time: 1.3 } });
export const quickTool = turnTimeRow('quick-tool', 'quick', { redis: { time: 1.3 } });
export const ordinaryTool = turnTimeRow('ordinary-tool', 'ordinary', { redis: { time: 1.2 } });
