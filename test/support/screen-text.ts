/** What stands on a terminal once all of this has been written to it. Long lines are not wrapped: give the program a wide one. */
export function screenText(written: string): string {
  const rows: string[][] = [[]];
  let [row, column] = [0, 0];
  const current = (): string[] => (rows[row] ??= []);
  for (const [piece, , amount = '', order] of written.matchAll(/\u001b\[(\??)([\d;]*)([A-Za-z])|[^]/gu)) {
    if (order !== undefined) {
      const count = Number(amount || 1);
      if (order === 'A') row = Math.max(0, row - count);
      else if (order === 'G') column = count - 1;
      else if (order === 'K' || order === 'J') current().length = Math.min(current().length, column);
      if (order === 'J') rows.length = row + 1;
    } else if (piece === '\r') column = 0;
    else if (piece === '\n') [row, column] = [row + 1, 0];
    else current()[column++] = piece;
  }
  return Array.from(rows, (cells = []) =>
    Array.from(cells, (cell = ' ') => cell)
      .join('')
      .trimEnd(),
  ).join('\n');
}
