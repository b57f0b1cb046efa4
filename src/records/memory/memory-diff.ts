/** What is new, gone and the same between two texts of MEMORY.md, line by line. */
import { diffArrays } from 'diff';
import type { MemoryChange } from './documents.js';
import { NO_MEMORY_VERSION, toLines } from './memory-lines.js';

export interface DiffLine {
  readonly kind: 'added' | 'removed' | 'kept';
  readonly line: string;
}

/** Texts further apart than this have nothing to do with each other, and comparing them takes time by its square. */
const MAX_EDITS = 2_000;

/** In the order of reading, what is gone before what stands in its place. */
export function diffMemory(before: string, after: string): DiffLine[] {
  const [old, present] = [toLines(before), toLines(after)];
  const parts = diffArrays(old, present, { maxEditLength: MAX_EDITS });
  if (!parts) return [...of('removed', old), ...of('added', present)];
  return parts.flatMap(({ value, added, removed }) => of(added ? 'added' : removed ? 'removed' : 'kept', value));
}

/** The version in force at that time (epoch seconds), of changes in their order, oldest first. */
export function versionAt(changes: readonly MemoryChange[], ts: number): string {
  return changes.findLast((change) => change.ts <= ts)?.version ?? NO_MEMORY_VERSION;
}

function of(kind: DiffLine['kind'], lines: readonly string[]): DiffLine[] {
  return lines.map((line) => ({ kind, line }));
}
