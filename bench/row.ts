import type { Surroundings } from './surroundings.js';

/** How much is measured; `--quick` is less of all. */
export interface Amount {
  /** Interleaved pairs of floor and product, of which the middle one counts; and as many of product and product. */
  readonly pairs: number;
  /** Turns before the first pair, of each side: so many until its code is compiled, as that of a worker that has run for long is. */
  readonly first: number;
  /** Turns of each pair that do not count. */
  readonly warmUp: number;
  readonly turns: number;
  /** Turns of each of the many that talk at once. */
  readonly atOnce: number;
  /** Where "turn 500" lies. */
  readonly late: number;
  readonly toolCalls: number;
  /** Turns of the conversation that is healed. */
  readonly healed: number;
  /** Turns of the conversation whose past is folded. */
  readonly folded: number;
  /** Turns of the conversation that is forked at its middle. */
  readonly forked: number;
  /** Messages that wait in a conversation that is stopped. */
  readonly queued: number;
  /** Conversations that nobody talks to. */
  readonly idle: number;
  /** Of workers, in each place of a turn. */
  readonly kills: number;
  /** Of the lengths of the conversations that are asked what they remember. */
  readonly memoryScale: number;
  /** Messages of the talks that are searched. */
  readonly recalled: readonly number[];
}

export const FULL: Amount = {
  pairs: 5,
  first: 2_000,
  warmUp: 10,
  turns: 50,
  atOnce: 5,
  late: 500,
  toolCalls: 500,
  healed: 1_000,
  folded: 2_000,
  forked: 1_000,
  queued: 10_000,
  idle: 10_000,
  kills: 20,
  memoryScale: 1,
  recalled: [6_000, 100_000, 1_000_000],
};
export const QUICK: Amount = {
  pairs: 1,
  first: 100,
  warmUp: 5,
  turns: 20,
  atOnce: 2,
  late: 100,
  toolCalls: 50,
  healed: 100,
  folded: 500,
  forked: 1_000,
  queued: 2_000,
  idle: 1_000,
  kills: 3,
  memoryScale: 0.1,
  recalled: [6_000],
};

/** One line of the table. Times in ms unless `unit` says otherwise. */
export interface Measured {
  readonly row: string;
  /** ISO time, in a file of results. */
  readonly date?: string;
  readonly product: number;
  readonly floor?: number;
  readonly unit: string;
  /** What is compared with `toHold`: product over floor, or what `ratio` stands for in this row. */
  readonly ratio?: number;
  /** Of the ratio, as a part of it, where pairs of equal sides were measured as well. */
  readonly noise?: number;
  readonly toHold: string;
  readonly holds: boolean;
  /** What else was seen, for the reader who asks why. */
  readonly notes?: readonly string[];
}

export interface Row {
  readonly name: string;
  measure(surroundings: Surroundings, amount: Amount): Promise<readonly Measured[]>;
}
