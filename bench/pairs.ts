import type { Talk } from './talk.js';

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[half] ?? NaN) : ((sorted[half - 1] ?? NaN) + (sorted[half] ?? NaN)) / 2;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Both in one unit, measured in the same weather. */
export interface Pair {
  readonly product: number;
  readonly floor: number;
  /** What of it this process spent on the CPU, client and worker together. */
  readonly cpu?: { readonly product: number; readonly floor: number };
}

export interface Best extends Pair {
  readonly ratio: number;
  /** Every pair, for who asks how far they lie apart. */
  readonly notes: readonly string[];
}

/** Measures several pairs. The quietest counts, that in which both together did best: the best ratio may be a disturbed floor's. */
export async function bestPair(pairs: number, measure: () => Promise<Pair>, higherIsBetter = false): Promise<Best> {
  const all: Pair[] = [];
  for (let number = 0; number < pairs; number++) all.push(await measure());
  const notes = [`pairs: ${all.map(({ product, floor }) => inWords(product, floor)).join(', ')}`];
  const [best] = all.sort((a, b) => (a.product + a.floor - b.product - b.floor) * (higherIsBetter ? -1 : 1));
  if (!best) throw new Error('no pair was measured');
  if (best.cpu) notes.push(`CPU of client and worker in it: ${inWords(best.cpu.product, best.cpu.floor)} ms`);
  return { ...best, ratio: best.product / best.floor, notes };
}

function inWords(product: number, floor: number): string {
  return `${product.toFixed(1)} / ${floor.toFixed(1)} = ${(product / floor).toFixed(2)}`;
}

/** Milliseconds of each turn. */
export async function timeTurns(talk: Talk, turns: number, text: (number: number) => string, from = 0): Promise<number[]> {
  const times: number[] = [];
  for (let number = from; number < from + turns; number++) {
    const begin = performance.now();
    await talk.say(text(number));
    times.push(performance.now() - begin);
  }
  return times;
}

export interface Side {
  readonly talk: Talk;
  /** Number of its next turn. */
  readonly from: number;
}

/** Median times of a turn of two conversations that talk turn about: what disturbs the one disturbs the other. */
export async function turnAbout(product: Side, floor: Side, turns: number, text: (number: number) => string): Promise<Pair> {
  const times: Times = { product: [], floor: [] };
  const cpu: Times = { product: [], floor: [] };
  for (let turn = 0; turn < turns; turn++) {
    for (const [side, { talk, from }] of [['product', product] as const, ['floor', floor] as const]) {
      const before = process.cpuUsage();
      times[side].push(...(await timeTurns(talk, 1, text, from + turn)));
      const { user, system } = process.cpuUsage(before);
      cpu[side].push((user + system) / 1000);
    }
  }
  return {
    product: median(times.product),
    floor: median(times.floor),
    cpu: { product: median(cpu.product), floor: median(cpu.floor) },
  };
}

type Times = Readonly<Record<'product' | 'floor', number[]>>;
