/**
 * Columns for people.
 *
 * 1. Each column is as wide as its longest cell; when all together are too wide, those that may shrink do, the widest first.
 * 2. Where even their least widths do not fit, columns are left out, the least important first.
 * 3. Where not even two are left, each row becomes a few lines, first cell whole and the others below it.
 */
import type { TimeFormat } from '../args/global-options.js';
import { toTerminalLine, toTerminalText, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';

/** What it depends on how lines for people are drawn. */
export interface Look {
  /** Of the screen, in cells; undefined where there is none. */
  readonly width?: number;
  readonly timeFormat: TimeFormat;
  readonly now: number;
  readonly measure: Measure;
}

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  readonly look?: (row: Row) => StyledSpan['style'];
  readonly align?: 'left' | 'right';
  /** Least cells, for a column that may be cut; absent: never cut. */
  readonly least?: number;
  /** Left out before those with a lower one. */
  readonly rank: number;
}

const GAP = 2;

/** Without a width nothing is cut. */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { width, measure }: { readonly width?: number; readonly measure: Measure },
): StyledLine[] {
  const shown = width === undefined ? columns : chooseColumns(rows, columns, width, measure);
  if (shown.length < 2 && columns.length > 1) return rows.flatMap((row) => stacked(row, columns, width ?? Infinity, measure));
  const widths = chooseWidths(rows, shown, width ?? Infinity, measure);
  const line = (pieceOf: (column: Column<Row>, cells: number, isLast: boolean) => StyledSpan): StyledLine =>
    shown.flatMap((column, at) => {
      const isLast = at === shown.length - 1;
      const piece = pieceOf(column, widths[at] ?? 0, isLast);
      return isLast ? [piece] : [piece, { text: ' '.repeat(GAP) }];
    });
  const formatCell = (column: Column<Row>, text: string, cells: number, isLast: boolean): string =>
    isLast && column.align !== 'right' ? fit(text, cells, measure) : pad(text, cells, measure, column.align);
  return [
    line((column, cells, isLast) => ({ text: formatCell(column, column.title, cells, isLast), style: 'dim' })),
    ...rows.map((row) =>
      line((column, cells, isLast) => ({ text: formatCell(column, column.cell(row), cells, isLast), style: column.look?.(row) })),
    ),
  ];
}

function measureColumn<Row>(rows: readonly Row[], column: Column<Row>, measure: Measure): number {
  return Math.max(measure(column.title), ...rows.map((row) => measure(column.cell(row))));
}

function minColumn<Row>(rows: readonly Row[], column: Column<Row>, measure: Measure): number {
  const whole = measureColumn(rows, column, measure);
  return column.least === undefined ? whole : Math.min(whole, column.least);
}

function chooseColumns<Row>(rows: readonly Row[], columns: readonly Column<Row>[], width: number, measure: Measure): Column<Row>[] {
  let shown = [...columns];
  const needed = (): number => shown.reduce((sum, column) => sum + minColumn(rows, column, measure) + GAP, -GAP);
  while (shown.length > 0 && needed() > width) {
    const last = shown.reduce((worst, column) => (column.rank > worst.rank ? column : worst));
    shown = shown.filter((column) => column !== last);
  }
  return shown;
}

function chooseWidths<Row>(rows: readonly Row[], columns: readonly Column<Row>[], width: number, measure: Measure): number[] {
  const widths = columns.map((column) => measureColumn(rows, column, measure));
  const least = columns.map((column) => minColumn(rows, column, measure));
  const total = (): number => widths.reduce((sum, cells) => sum + cells + GAP, -GAP);
  while (total() > width) {
    const room = widths.map((cells, at) => (cells > (least[at] ?? 0) ? cells : 0));
    const widest = room.indexOf(Math.max(...room));
    if ((room[widest] ?? 0) === 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function stacked<Row>(row: Row, columns: readonly Column<Row>[], width: number, measure: Measure): StyledLine[] {
  const [first, ...others] = columns;
  if (first === undefined) return [];
  const below = others.filter((column) => column.cell(row) !== '');
  return [
    [{ text: first.cell(row), style: first.look?.(row) }],
    ...below.map((column): StyledLine => {
      const name = `  ${column.title.toLowerCase()} `;
      return [
        { text: name, style: 'dim' },
        { text: fit(column.cell(row), width - measure(name), measure), style: column.look?.(row) },
      ];
    }),
  ];
}

// Texts in cells of a terminal: `漢` takes two, a combining accent none.

/** Cells that a text takes on one line. */
export type Measure = (text: string) => number;

/** string-width is an ES module: loaded when a person is to read what is printed. */
export async function loadMeasure(): Promise<Measure> {
  const { default: stringWidth } = await import('string-width');
  return (text) => stringWidth(text);
}

/** At most `width` cells, cut between characters as people see them. */
export function fit(text: string, width: number, measure: Measure): string {
  if (width <= 0) return '';
  if (measure(text) <= width) return text;
  let shown = '';
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    const more = measure(segment);
    if (used + more > width - 1) break;
    shown += segment;
    used += more;
  }
  return `${shown.trimEnd()}…`;
}

/** Exactly `width` cells. */
export function pad(text: string, width: number, measure: Measure, align: 'left' | 'right' = 'left'): string {
  const fitted = fit(text, width, measure);
  const blanks = ' '.repeat(Math.max(0, width - measure(fitted)));
  return align === 'left' ? fitted + blanks : blanks + fitted;
}

/** At blanks; a word that is longer than a line is cut. */
export function wrap(text: string, width: number, measure: Measure): string[] {
  if (measure(text) <= width) return [text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (measure(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = word;
    while (measure(line) > width) {
      const part = pad(fit(line, width + 1, measure).replace(/…$/, ''), width, measure).trimEnd();
      if (part === '') break;
      lines.push(part);
      line = line.slice(part.length);
    }
  }
  if (line !== '') lines.push(line);
  return lines;
}

/** More of one text than a list shows; `-o json` has it whole. */
const MAX_TEXT = 2000;

/** A text on separate lines, each after as many blanks. */
export function drawText(text: string, indent: number, { width = Infinity, measure }: Look, style?: StyledSpan['style']): StyledLine[] {
  return wrap(toTerminalLine(text, MAX_TEXT), width - indent, measure).map((part): StyledLine => [
    { text: ' '.repeat(indent) },
    { text: part, style },
  ]);
}

/** A line of a document, with its indentation, after what stands before it; it goes on below itself. */
export function drawLine(head: string, line: string, { width = Infinity, measure }: Look, style?: StyledSpan['style']): StyledLine[] {
  const text = toTerminalText(line).replaceAll('\n', ' ').replaceAll('\t', '  ').trimEnd();
  const indent = Math.min(text.length - text.trimStart().length, 12);
  const before = measure(head) + indent;
  return wrap(text.trimStart(), Math.max(width - before, 4), measure).map((part, at): StyledLine => [
    { text: at === 0 ? head : ' '.repeat(measure(head)), style: style ?? 'dim' },
    { text: `${' '.repeat(indent)}${part}`, style },
  ]);
}
