/** Chance that can be repeated. */
import { createRandom } from '../support/scene.js';

/** From 0 up to 1. */
export type Random = () => number;

export const { seed, next: chance } = createRandom();

/** Chance of its own for one of many that run side by side: what it does depends on the seed and on its number alone. */
export function chanceOf(number: number): Random {
  return createRandom(seed + 7919 * (number + 1)).next;
}

export function pick<T>(random: Random, of: readonly T[]): T {
  return of[Math.floor(of.length * random())] as T;
}
