/**
 * An update of MEMORY.md that a person's edit overtook (design section 4: edits by hand are never overwritten).
 *
 * A change of one side alone is taken from that side. If both changed, the person's lines stay, and our new ones come after them.
 *
 * @rule consolidation/deleted-stays-deleted: A line that the person deleted or rewrote does not come back: not in its place, not in
 *   another, not in other words. (test: test/memory/consolidation-merge.test.ts)
 */
import { diff3Merge } from 'node-diff3';
import { foldedLine, lineCounts, splitLines } from '../../records/memory/documents.js';
import { allWords, indexWords, significantWords } from '../documents/significant-words.js';

export interface MemoryVersions {
  /** What the model saw. */
  readonly base: string;
  /** What a person made of it meanwhile. */
  readonly theirs: string;
  /** What the model made of it. */
  readonly ours: string;
}

/** Of a deleted line's words in a new one: the same thing again. */
const AGAIN_SHARE = 0.6;
/** A line of one word has it in common with too many. */
const AGAIN_WORDS = 2;
/** Merging takes time with the pairs of lines that are alike. A document of more is one conflict; none that we write has so many. */
const MAX_PAIRS = 250_000;

export function mergeMemory({ base, theirs, ours }: MemoryVersions): string {
  const [a, o, b] = [splitLines(theirs), splitLines(base), splitLines(ours)];
  const theirLines = lineCounts(a);
  const isBack = comesBack(o, theirLines);
  // (consolidation/deleted-stays-deleted) holds for every line of `ours`, also for one that was moved to a place where nothing else was
  // changed.
  const fits = (line: string): boolean => theirLines.has(foldedLine(line)) || !isBack(line);
  const isLong = Math.max(pairsIn(o, a), pairsIn(o, b)) > MAX_PAIRS;
  const regions = isLong ? [{ conflict: { a, o, b } }] : diff3Merge(a, o, b, { excludeFalseConflicts: true });
  const stands = lineCounts(regions.flatMap(({ ok, conflict }) => ok ?? conflict.a));
  return regions
    .flatMap(({ ok, conflict }) => ok ?? [...conflict.a, ...notYet(conflict.b, stands)])
    .filter(fits)
    .join('\n');
}

function pairsIn(a: readonly string[], b: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const line of a) counts.set(line, (counts.get(line) ?? 0) + 1);
  return b.reduce((sum, line) => sum + (counts.get(line) ?? 0), 0);
}

function notYet(lines: readonly string[], stands: Map<string, number>): string[] {
  return lines.filter((line) => {
    const folded = foldedLine(line);
    if (folded === '' || stands.has(folded)) return false;
    stands.set(folded, 1);
    return true;
  });
}

/** Whether a line is one that the person took out, or says it again (consolidation/deleted-stays-deleted). */
function comesBack(base: readonly string[], theirs: ReadonlyMap<string, number>): (line: string) => boolean {
  const deleted = [...lineCounts(base).keys()].filter((line) => !theirs.has(line));
  const exactly = new Set(deleted);
  const deletedWords = deleted.map(splitWords).filter(({ size }) => size >= AGAIN_WORDS);
  const index = indexWords(deletedWords);
  return (line) => {
    const folded = foldedLine(line);
    if (folded === '') return false;
    let isAgain = exactly.has(folded);
    index.forEachSharing(splitWords(folded), (at, count) => (isAgain ||= count / (deletedWords[at]?.size ?? Infinity) >= AGAIN_SHARE));
    return isAgain;
  };
}

function splitWords(text: string): Set<string> {
  return allWords(significantWords(text));
}
