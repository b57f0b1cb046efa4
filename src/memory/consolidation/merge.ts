/**
 * An update of MEMORY.md that a person's edit overtook (design section 4: edits by hand are never overwritten).
 *
 * A change of one side alone is taken from that side. If both changed, the person's lines stay, and our new ones come after them.
 *
 * @rule consolidation/deleted-stays-deleted: A line that the person deleted or rewrote does not come back: not in its place, not in
 *   another, not in other words. (test: test/memory/consolidation-merge.test.ts)
 */
import { diffArrays } from 'diff';
import { diff3Merge } from 'node-diff3';
import { foldedLine, lineCounts, splitLines, takeLine } from '../../records/memory/documents.js';
import { bySalience, foldedFact, type SemanticItem } from '../../records/memory/items.js';
import { allWords, indexWords, shareIn, significantWords, type SignificantWords } from '../documents/significant-words.js';

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

// What waits for a person is left out of an update, and what it would have replaced stays. So does what must not go by itself.

/** From here on a new line is a rewriting of an old one. */
export const REWRITTEN_SHARE = 0.5;
/** Comparing takes time by its square. */
const MAX_EDITS = 1_000;

interface Update {
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** Of the lines of `after`, and the next two too. */
  readonly isNew: readonly boolean[];
  readonly isProposed: readonly boolean[];
  readonly isTyped: readonly boolean[];
  /** Whether only a person's typed words can replace a line of `before`. */
  readonly mustStay: (line: string) => boolean;
}

/** Removed lines go back to where the proposed line stands that replaced them (consolidation/untrusted-waits), or to their place. */
export function withoutProposed({ before, after, isNew, isProposed, isTyped, mustStay }: Update): string {
  const places = after.flatMap((_, at) => (isNew[at] ? [at] : []));
  const index = indexWords(places.map((at) => splitWords(foldedLine(after[at] ?? ''))));
  const restored = new Map<number, string[]>();
  const proposedIn = ({ from, to }: Range): number | undefined => {
    const at = isProposed.indexOf(true, from);
    return at !== -1 && at < to ? at : undefined;
  };
  for (const { line, besides } of removedLines(before, after)) {
    const words = splitWords(foldedLine(line));
    let best: { readonly at: number; readonly count: number } | undefined;
    // The same in a line that stays and in a proposed one: it is not lost.
    const isBetter = (at: number, count: number): boolean =>
      best === undefined || (count - best.count || Number(isProposed[best.at]) - Number(isProposed[at]) || best.at - at) > 0;
    index.forEachSharing(words, (place, count) => {
      const at = places[place];
      if (at !== undefined && isBetter(at, count)) best = { at, count };
    });
    const home = best !== undefined && best.count / words.size >= REWRITTEN_SHARE ? best.at : proposedIn(besides);
    const isReplaced = home !== undefined && isTyped[home] === true;
    const place = home !== undefined && isProposed[home] ? home : !isReplaced && mustStay(line) ? besides.from : undefined;
    if (place !== undefined) restored.set(place, [...(restored.get(place) ?? []), line]);
  }
  const lines = after.flatMap((line, at) => [...(restored.get(at) ?? []), ...(isProposed[at] ? [] : [line])]);
  return [...lines, ...(restored.get(after.length) ?? [])].join('\n');
}

/** Places of lines, from the first to before the last. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Lines of `before` that are nowhere in `after`, each with the lines of `after` that are in its place. */
function removedLines(before: readonly string[], after: readonly string[]): { readonly line: string; readonly besides: Range }[] {
  const still = lineCounts(after);
  const isGone = before.map((line) => !takeLine(still, line));
  const gone: { line: string; besides: Range }[] = [];
  let from = 0;
  let to = 0;
  let pending: { line: string; besides: Range }[] = [];
  // Texts further apart have one part that is gone, and one that is new.
  const parts = diffArrays(before.map(foldedLine), after.map(foldedLine), { maxEditLength: MAX_EDITS }) ?? [
    { added: false, removed: true, count: before.length },
    { added: true, removed: false, count: after.length },
  ];
  for (const { added, removed, count } of parts) {
    if (removed) {
      const besides = { from: to, to };
      pending = before.slice(from, from + count).flatMap((line, at) => (isGone[from + at] ? [{ line, besides }] : []));
      for (const removal of pending) gone.push(removal);
      from += count;
    } else if (added) {
      for (const removal of pending) removal.besides = { from: to, to: to + count };
      to += count;
      pending = [];
    } else {
      from += count;
      to += count;
      pending = [];
    }
  }
  return gone;
}

// The part of care that needs no model: it removes what is there twice, and nothing else.

const NEAR = 0.9;

/**
 * MEMORY.md without lines that are above already, under the same heading and, where indented, under the same line: "yes" below
 * two questions is two facts. Headings, blank lines, code and lines without a letter or digit stay, and so does what has lines below it.
 */
export function withoutDuplicateLines(text: string): string {
  const lines = splitLines(text);
  const seen = new Set<string>();
  /** The lines that the current one is below, outermost first. */
  let parents: { readonly indent: number; readonly line: string }[] = [];
  let section = 0;
  let inCode = false;
  const kept = lines.filter((line, at) => {
    if (/^\s*(?:```|~~~)/.test(line)) {
      inCode = !inCode;
      return true;
    }
    const folded = foldedLine(line);
    if (inCode || !/[\p{L}\p{N}]/u.test(folded)) return true;
    if (/^#{1,6}\s/.test(line)) {
      section = at;
      parents = [];
      return true;
    }
    const indent = countIndent(line);
    parents = parents.filter((parent) => parent.indent < indent);
    const key = JSON.stringify([section, ...parents.map((parent) => parent.line), folded]);
    parents.push({ indent, line: folded });
    const isTwice = seen.has(key) && countIndent(lines[at + 1] ?? '') <= indent;
    seen.add(key);
    return !isTwice;
  });
  return kept.length === lines.length ? text : kept.join('\n');
}

/** Ids of facts that say what a more salient one says: 0.9 of their words are the same, and all that is hard in them. */
export function nearDuplicateFacts(facts: readonly SemanticItem[]): string[] {
  const kept: { readonly fact: string; readonly words: SignificantWords }[] = [];
  const removed: string[] = [];
  for (const { id, fact } of [...facts].sort(bySalience)) {
    const entry = { fact: foldedFact(fact), words: significantWords(fact) };
    if (kept.some((other) => other.fact === entry.fact || saysTheSame(entry.words, other.words))) removed.push(id);
    else kept.push(entry);
  }
  return removed;
}

/** Another port or a "not" is another fact, however long the rest. */
function saysTheSame(a: SignificantWords, b: SignificantWords): boolean {
  if (a.hard.size !== b.hard.size || (a.hard.size > 0 && shareIn(a.hard, b.hard) < 1)) return false;
  const both = new Set([...a.soft, ...b.soft]).size;
  const shared = a.soft.size + b.soft.size - both;
  const hard = a.hard.size;
  return both + hard > 0 && (shared + hard) / (both + hard) >= NEAR;
}

function countIndent(line: string): number {
  return line.trim() === '' ? 0 : line.length - line.trimStart().length;
}
