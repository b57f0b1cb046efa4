/** A table on a terminal: no word of it is split, and where its columns have no room for their words, each row is a list. */
import type CliTable from 'cli-table3';
import { wrapWords } from './terminal-text.js';

export interface TextTable {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly align: readonly ('left' | 'right' | 'center' | null)[];
}

export interface TableLibraries {
  readonly Table: typeof CliTable;
  /** Columns that a text takes, without its colours. */
  readonly widthOf: (text: string) => number;
}

/** Of each column, what stands beside its text: a border and two blanks. */
const BESIDE = 3;

/** At most `columns` wide. */
export function drawTable({ head, rows, align }: TextTable, columns: number, { Table, widthOf }: TableLibraries): string {
  const columnsOf = (measure: (text: string) => number): number[] =>
    head.map((_, at) => Math.max(1, ...[head, ...rows].map((row) => measure(row[at] ?? ''))));
  const longestWord = (text: string): number => Math.max(0, ...text.split(/\s+/).map((word) => leastWidth(word, widthOf)));
  const widths = fitWidths(columnsOf(widthOf), columnsOf(longestWord), columns - 1 - BESIDE * head.length);
  if (widths === undefined) return listRows(head, rows, columns);
  const fitted = (row: readonly string[]): string[] => widths.map((width, at) => wrapWords(row[at] ?? '', width));
  const table = new Table({
    head: fitted(head),
    colWidths: widths.map((width) => width + 2),
    colAligns: align.map((side) => side ?? 'left'),
    style: { head: ['bold'], border: ['gray'] },
  });
  table.push(...rows.map(fitted));
  return table.toString();
}

/** Scripts without blanks end a line between any two of their characters. */
function leastWidth(word: string, widthOf: TableLibraries['widthOf']): number {
  return /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/u.test(word) ? 2 : widthOf(word);
}

/** Takes from the widest that has more than its longest word, until all fit; undefined where the words alone do not. */
export function fitWidths(wanted: readonly number[], least: readonly number[], available: number): number[] | undefined {
  const widths = wanted.map((width, at) => Math.max(width, least[at] ?? 1));
  for (let over = widths.reduce((sum, width) => sum + width, 0) - available; over > 0; over -= 1) {
    const spare = widths.map((width, at) => (width > (least[at] ?? 1) ? width : 0));
    const widest = spare.indexOf(Math.max(...spare));
    if (spare[widest] === 0) return undefined;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function listRows(head: readonly string[], rows: readonly (readonly string[])[], columns: number): string {
  const lines = (row: readonly string[]): string =>
    head.map((name, at) => wrapWords(`${name === '' ? '' : `${name}: `}${row[at] ?? ''}`, columns - 1)).join('\n');
  return rows.length === 0 ? wrapWords(head.join(', '), columns - 1) : rows.map(lines).join('\n\n');
}
