/** A long text is found by its passages: whole paragraphs or sentences, each about as long as a message. */
import { BOUNDS } from './weights.js';

export interface Passage {
  /** In UTF-16 units of the text; `end` is not in it. */
  readonly start: number;
  readonly end: number;
}

/** They follow on each other without a gap. Of a very long text those of its beginning, BOUNDS.text of it. */
export function splitPassages(text: string): Passage[] {
  const length = Math.min(text.length, BOUNDS.text);
  const passages: Passage[] = [];
  for (let start = 0; start < length || passages.length === 0;) {
    const end = length - start <= BOUNDS.passage ? length : breakBefore(text, start, start + BOUNDS.passage);
    passages.push({ start, end });
    start = end;
    if (end >= length) break;
  }
  return passages;
}

/** Where a reader would stop, in the last half of the passage. */
function breakBefore(text: string, start: number, most: number): number {
  const least = start + Math.floor(BOUNDS.passage / 2);
  for (const [mark, kept] of [
    ['\n\n', 2],
    ['\n', 1],
    ['. ', 2],
    ['。', 1],
    [' ', 1],
  ] as const) {
    const at = text.lastIndexOf(mark, most - kept);
    if (at >= least) return at + kept;
  }
  // Never half of a character.
  return /[\uD800-\uDBFF]/.test(text.charAt(most - 1)) ? most - 1 : most;
}
