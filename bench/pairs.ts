import { setTimeout as sleep } from 'node:timers/promises';
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
}

export interface Middle extends Pair {
  readonly ratio: number;
  /** Of the ratio, as a part of it: how far the ratios of equal sides were from 1. Absent where none were measured. */
  readonly noise?: number;
  /** Every pair, for who asks how far they lie apart. */
  readonly notes: readonly string[];
}

/**
 * The pair whose ratio lies in the middle: of one that was disturbed nobody knows which side it was. `equal`: pairs of the same kind whose
 * two sides are the same (A/A).
 */
export function middleOf(pairs: readonly Pair[], equal: readonly Pair[] = []): Middle {
  const byRatio = [...pairs].sort((a, b) => ratioOf(a) - ratioOf(b));
  const middle = byRatio[Math.floor((byRatio.length - 1) / 2)];
  if (!middle) throw new Error('no pair was measured');
  const notes = [`pairs: ${pairs.map(inWords).join(', ')}`];
  if (equal.length === 0) return { ...middle, ratio: ratioOf(middle), notes };
  const noise = Math.max(...equal.map((pair) => Math.abs(ratioOf(pair) - 1)));
  return { ...middle, ratio: ratioOf(middle), noise, notes: [...notes, `equal sides: ${equal.map(inWords).join(', ')}`] };
}

/** All pairs together: CPU is spent unevenly, when garbage is collected, and no one pair says what it costs. */
export function overAll(pairs: readonly Pair[], equal: readonly Pair[] = []): Middle {
  const all = { product: mean(pairs.map(({ product }) => product)), floor: mean(pairs.map(({ floor }) => floor)) };
  return { ...middleOf(pairs, equal), ...all, ratio: ratioOf(all) };
}

/** One after the other. */
export async function repeat<T>(times: number, measure: () => Promise<T>): Promise<T[]> {
  const all: T[] = [];
  for (let number = 0; number < times; number++) all.push(await measure());
  return all;
}

function ratioOf({ product, floor }: Pair): number {
  return product / floor;
}

function inWords(pair: Pair): string {
  return `${pair.product.toFixed(1)} / ${pair.floor.toFixed(1)} = ${ratioOf(pair).toFixed(2)}`;
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

const TALKS = 20;

/**
 * Lets so many turns pass, of many conversations at once, before something is measured: V8 compiles for a long time. With one quick tool its
 * threads take 4 ms of a turn of the first thousand, 1.6 ms of one after 2,000 (measured; the bare floor: 1.7 ms, and 0.9).
 */
export async function warmUp(start: () => Promise<Talk>, turns: number, text: (number: number) => string): Promise<void> {
  await Promise.all(
    Array.from({ length: TALKS }, async () => {
      await timeTurns(await start(), Math.ceil(turns / TALKS), text);
    }),
  );
}

export interface Side {
  readonly talk: Talk;
  /** Number of its next turn. */
  readonly from: number;
}

export interface TurnAbout {
  /** Median milliseconds of a turn. */
  readonly time: Pair;
  /** Mean milliseconds of CPU of a turn that this process spent, client and worker together. */
  readonly cpu: Pair;
}

/** Turns that one side makes before it is the other's turn: what disturbs the one disturbs the other. */
const AT_ONCE = 5;
/** What a turn leaves to be done after its answer is its own. */
const AFTERWARDS_MS = 20;
const SIDES = ['floor', 'product'] as const;

export async function turnAbout(
  sides: Readonly<Record<(typeof SIDES)[number], Side>>,
  turns: number,
  text: (number: number) => string,
): Promise<TurnAbout> {
  const times = { product: [] as number[], floor: [] as number[] };
  const cpu = { product: 0, floor: 0 };
  for (let turn = 0; turn < turns; turn += AT_ONCE) {
    for (const side of SIDES) {
      const { talk, from } = sides[side];
      const cpuNow = cpuMeter();
      times[side].push(...(await timeTurns(talk, Math.min(AT_ONCE, turns - turn), text, from + turn)));
      await sleep(AFTERWARDS_MS);
      cpu[side] += cpuNow();
    }
  }
  return {
    time: { product: median(times.product), floor: median(times.floor) },
    cpu: { product: cpu.product / turns, floor: cpu.floor / turns },
  };
}

/** Milliseconds that all threads of this process have spent since. */
export function cpuMeter(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
}
