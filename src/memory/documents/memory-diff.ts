/** MEMORY.md line by line: what changed between two texts, how much a change did, and who brought which line. */
import { diffArrays } from 'diff';
import { type LineSource, type MemoryChange, foldedLine, NO_MEMORY_VERSION, toLines } from '../../records/memory/documents.js';

export interface DiffLine {
  readonly kind: 'added' | 'removed' | 'kept';
  readonly line: string;
}

/** Texts further apart than this have nothing to do with each other, and comparing them takes time by its square. */
const MAX_EDITS = 400;

/** In the order of reading, what is gone before what replaces it. */
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

/** A change with what it did to the lines. */
export interface CountedChange extends MemoryChange {
  readonly added: number;
  readonly removed: number;
}

/** A version whose text is gone counts for nothing here: the list of changes is worth showing without it. */
export async function countedChange(
  memory: { textOf(version: string): Promise<string | undefined> },
  change: MemoryChange,
): Promise<CountedChange> {
  const readVersion = async (version: string): Promise<string> =>
    version === NO_MEMORY_VERSION ? '' : ((await memory.textOf(version).catch(() => undefined)) ?? '');
  const [before, after] = await Promise.all([readVersion(change.from), readVersion(change.version)]);
  const lines = diffMemory(before, after);
  const count = (wanted: 'added' | 'removed'): number => lines.filter(({ kind }) => kind === wanted).length;
  return { ...change, added: count('added'), removed: count('removed') };
}

export interface BlamedLine {
  readonly line: string;
  /** In the file, from 1. */
  readonly number: number;
  readonly source: LineSource;
  /** Of the newest change that brought it; absent where none did. */
  readonly change?: Pick<MemoryChange, 'id' | 'ts' | 'cause'>;
}

/** Every line that is not empty. One that no change names a person wrote: whatever else writes does so by a change. */
export function blame(text: string, changes: readonly MemoryChange[]): BlamedLine[] {
  const brought = new Map<string, Pick<BlamedLine, 'source' | 'change'>>();
  for (const { id, ts, cause, lines } of changes) {
    for (const { line, source } of lines) brought.set(foldedLine(line), { source, change: { id, ts, cause } });
  }
  return text.split('\n').flatMap((raw, at) => {
    const line = raw.replace(/\r$/, '');
    const folded = foldedLine(line);
    if (folded === '') return [];
    return [{ line, number: at + 1, ...(brought.get(folded) ?? { source: { trust: 'person' as const } }) }];
  });
}
