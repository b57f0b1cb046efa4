/** Lines cut between words, by the cells that they take on a screen. */
import type wrapAnsi from 'wrap-ansi';

/** A column for the rest of a line is worth it while this share of the screen is left for it. */
const LEAST_ROOM = 0.5;

/**
 * Cuts each line that is wider than `columns` between two words, a word that is wider than a line within itself. What follows
 * begins where the line's text began: behind its blanks, or behind its first column (`  /new      clear the session`).
 * Colours stay whole.
 */
export function wrapWords(text: string, columns: number): string {
  // No character takes more than two cells.
  if (text.length * 2 <= columns) return text;
  // Loaded by who has a screen alone.
  const wrap = require('wrap-ansi') as typeof wrapAnsi;
  return text
    .split('\n')
    .map((line) => {
      const indent = indentOf(line, columns);
      const [head, rest] = [line.slice(0, indent), line.slice(indent)];
      const rows = wrap(rest, columns - indent, { hard: true, trim: false }).split('\n');
      return head + rows.map((row, at) => row.replace(at === 0 ? / +$/ : /^ | +$/g, '')).join(`\n${' '.repeat(indent)}`);
    })
    .join('\n');
}

function indentOf(line: string, columns: number): number {
  const [blanks = ''] = /^ */.exec(line) ?? [];
  const column = /^ *\S.{0,30}? {2,}(?=\S)/.exec(line)?.[0] ?? blanks;
  return [column, blanks].map(({ length }) => length).find((length) => length <= columns * (1 - LEAST_ROOM)) ?? 0;
}
