/** Files are changed one after the other in one worker: of two edits of one file at the same time, one would be lost. */
import pLimit from 'p-limit';

const one = pLimit(1);

export function inTurn<T>(work: () => Promise<T>): Promise<T> {
  return one(work);
}
