/** Who brought which line of MEMORY.md. */
import type { LineSource, MemoryChange } from '../../records/memory/documents.js';
import { foldedLine } from '../../records/memory/memory-diff.js';

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
