/** The lines of a MEMORY.md, and when two of them say the same. */

/** Without its list mark and with single spaces: what is moved, indented or numbered anew stays the same line. */
export function foldedLine(line: string): string {
  return line
    .normalize('NFC')
    .replace(/^\s*(?:[-*+•]|\d{1,4}[.)])\s+/, '')
    .replace(/\s+/g, ' ')
    .trim();
}

export function splitLines(text: string): string[] {
  return text.replace(/\r\n?/g, '\n').split('\n');
}

/** The newline at the end of the last one begins no further line. */
export function toLines(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/);
}

/** Lines of `after` that `before` does not have anywhere; one that was only moved is not new. */
export function newLines(before: string, after: string): string[] {
  const known = new Set(toLines(before).map(foldedLine));
  return toLines(after).filter((line) => foldedLine(line) !== '' && !known.has(foldedLine(line)));
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
