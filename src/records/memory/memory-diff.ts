/** What is new, gone and the same between two texts of MEMORY.md, line by line. */
import { diffArrays } from 'diff';
import type { MemoryChange } from './documents.js';
import { createHash } from 'node:crypto';

export interface DiffLine {
  readonly kind: 'added' | 'removed' | 'kept';
  readonly line: string;
}

/** Texts further apart than this have nothing to do with each other, and comparing them takes time by its square. */
const MOST_EDITS = 2_000;

/** In the order of reading, what is gone before what stands in its place. */
export function diffMemory(before: string, after: string): DiffLine[] {
  const [old, present] = [toLines(before), toLines(after)];
  const parts = diffArrays(old, present, { maxEditLength: MOST_EDITS });
  if (!parts) return [...of('removed', old), ...of('added', present)];
  return parts.flatMap(({ value, added, removed }) => of(added ? 'added' : removed ? 'removed' : 'kept', value));
}

/** Lines of `after` that `before` does not have anywhere; one that was only moved is not new. */
export function newLines(before: string, after: string): string[] {
  const known = new Set(toLines(before).map(foldedLine));
  return toLines(after).filter((line) => foldedLine(line) !== '' && !known.has(foldedLine(line)));
}

/** The version in force at that time (epoch seconds), of changes in their order, oldest first. */
export function versionAt(changes: readonly MemoryChange[], ts: number): string {
  return changes.findLast((change) => change.ts <= ts)?.version ?? NO_MEMORY_VERSION;
}

/** The newline at the end of the last one begins no further line. */
function toLines(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/);
}

function of(kind: DiffLine['kind'], lines: readonly string[]): DiffLine[] {
  return lines.map((line) => ({ kind, line }));
}

/** The lines of a document, and when two of them say the same. */

/** Without its list mark and with single spaces: what is moved, indented or numbered anew stays the same line. */
export function foldedLine(line: string): string {
  return line
    .normalize('NFC')
    .replace(/^\s*(?:[-*+•]|\d{1,4}[.)])\s+/, '')
    .replace(/\s+/g, ' ')
    .trim();
}

export function linesOf(text: string): string[] {
  return text.replace(/\r\n?/g, '\n').split('\n');
}

/** How often each folded line stands in `lines`; blank ones do not count. */
export function lineCounts(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) {
    const folded = foldedLine(line);
    if (folded !== '') counts.set(folded, (counts.get(folded) ?? 0) + 1);
  }
  return counts;
}

/** Whether `counts` still has this line; takes it out if so. Blank lines are always there. */
export function takeLine(counts: Map<string, number>, line: string): boolean {
  const folded = foldedLine(line);
  if (folded === '') return true;
  const count = counts.get(folded) ?? 0;
  if (count > 0) counts.set(folded, count - 1);
  return count > 0;
}

/** The version of a MEMORY.md that is empty, or not there. */
export const NO_MEMORY_VERSION = 'empty';

/** Names the bytes of a MEMORY.md. */
export function memoryVersion(text: string): string {
  return text === '' ? NO_MEMORY_VERSION : createHash('sha256').update(text).digest('hex').slice(0, 16);
}
