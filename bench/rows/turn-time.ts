/** How long a turn takes and what CPU, against as many bare activities. */
import { said } from '../bodies.js';
import type { FloorKind } from '../floors.js';
import { middleOf, overAll, repeat, turnAbout, warmUp, type Middle, type Pair, type TurnAbout } from '../pairs.js';
import type { StoreKind } from '../product.js';
import type { Amount, Measured, Row } from '../row.js';
import type { Talk } from '../talk.js';

interface Limits {
  readonly time: number;
  /** Without one it is measured and not held. */
  readonly cpu?: number;
}

type Start = () => Promise<Talk>;

/** Pairs of a product and its floor, and pairs of the product and itself. */
async function measureTurns(
  { pairs, first, warmUp: uncounted, turns }: Amount,
  { product, floor, kind }: { readonly product: Start; readonly floor: Start; readonly kind: FloorKind },
): Promise<{ readonly time: Middle; readonly cpu: Middle }> {
  const text = (number: number): string => said(kind, 1, number);
  const pair = async (startFloor: Start): Promise<TurnAbout> => {
    const talks = { product: await product(), floor: await startFloor() };
    const from = (turn: number) => ({ floor: { talk: talks.floor, from: turn }, product: { talk: talks.product, from: turn } });
    await turnAbout(from(0), uncounted, text);
    return turnAbout(from(uncounted), turns, text);
  };
  for (const start of [floor, product]) await warmUp(start, first, text);
  const different = await repeat(pairs, () => pair(floor));
  const equal = await repeat(pairs, () => pair(product));
  const both = (of: (pair: TurnAbout) => Pair) => [different.map(of), equal.map(of)] as const;
  return { time: middleOf(...both(({ time }) => time)), cpu: overAll(...both(({ cpu }) => cpu)) };
}

function rowOf(row: string, middle: Middle, limit?: number): Measured {
  const toHold = limit === undefined ? '' : `≤ ${limit}`;
  return { row, ...middle, unit: 'ms', toHold, holds: limit === undefined || middle.ratio <= limit };
}

function turnTimeRow(name: string, kind: FloorKind, stores: Readonly<Partial<Record<StoreKind, Limits>>>): Row {
  return {
    name,
    async measure(surroundings, amount) {
      const floor = await surroundings.floor();
      const measured: Measured[] = [];
      for (const [store, limits] of Object.entries(stores) as [StoreKind, Limits][]) {
        const product = await surroundings.product(store);
        const { time, cpu } = await measureTurns(amount, { product: () => product.start(), floor: () => floor.start(kind), kind });
        measured.push(rowOf(`${name}, ${store}`, time, limits.time), rowOf(`${name}, ${store}: CPU of client and worker`, cpu, limits.cpu));
      }
      return measured;
    },
  };
}

/** A text turn with all that is stored encrypted, against the same in plain. */
export const encryptedTurn: Row = {
  name: 'encrypted-turn',
  async measure(surroundings, amount) {
    const measured: Measured[] = [];
    for (const store of ['redis', 'file'] as const) {
      const [encrypted, plain] = [await surroundings.encrypted(store), await surroundings.product(store)];
      const sides = { product: () => encrypted.start(), floor: () => plain.start(), kind: 'text' as const };
      const { time, cpu } = await measureTurns(amount, sides);
      measured.push(rowOf(`encrypted-turn, ${store}`, time, 1.1), rowOf(`encrypted-turn, ${store}: CPU of client and worker`, cpu));
    }
    return measured;
  },
};

export const textTurn = turnTimeRow('text-turn', 'text', { redis: { time: 1.17, cpu: 1.33 }, file: { time: 1.19, cpu: 1.42 } });
export const quickTool = turnTimeRow('quick-tool', 'quick', { redis: { time: 1.24, cpu: 1.5 } });
export const ordinaryTool = turnTimeRow('ordinary-tool', 'ordinary', { redis: { time: 1.16 } });
