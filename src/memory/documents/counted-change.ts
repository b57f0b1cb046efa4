/** How much a change of MEMORY.md has done to its lines. */
import type { MemoryChange } from '../../records/memory/documents.js';
import { diffMemory } from '../../records/memory/memory-diff.js';
import { NO_MEMORY_VERSION } from '../../records/memory/memory-lines.js';

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
