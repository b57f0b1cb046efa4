/** What is new, gone and the same between two texts of MEMORY.md, line by line. */
import { diffArrays } from 'diff';
import type { MemoryChange } from './documents.js';
import { NO_MEMORY_VERSION } from './memory-version.js';
import { foldedLine } from './memory-lines.js';

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
