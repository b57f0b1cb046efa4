import { runInNewContext } from 'node:vm';

const HANG_MS = 120_000;

/**
 * Runs what never pauses, and ends it with an error when it hangs. What grows by the square of its input hangs too, if the input is large
 * enough: a megabyte. Nothing else comes near the bound, however busy the machine is.
 */
export function ends<T>(work: () => T): T {
  return runInNewContext('work()', { work }, { timeout: HANG_MS }) as T;
}
