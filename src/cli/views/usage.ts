/** `perdura usage` for people. */
import type { UsageReport } from '../../client.js';
import type { SpendingSum } from '../../records/spending.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { formatCost, formatCount } from './quantities.js';
import { renderTable, type Column, type Measure } from './table.js';

export function renderUsage(
  { by, sums, total }: Pick<UsageReport, 'by' | 'sums' | 'total'>,
  look: { readonly width?: number; readonly measure: Measure },
): StyledLine[] {
  const rows = sums.length > 1 ? [...sums, total] : sums;
  const has = (what: 'failed' | 'fenced'): boolean => total[what] > 0;
  const number = (title: string, cell: (row: SpendingSum) => number, rank: number): Column<SpendingSum> => ({
    title,
    cell: (row) => formatCount(cell(row)),
    align: 'right',
    rank,
  });
  const columns: Column<SpendingSum>[] = [
    {
      title: by.toUpperCase(),
      cell: ({ of }) => toTerminalLine(of, 80),
      look: (row) => (row === total ? 'dim' : 'cyan'),
      least: 8,
      rank: 0,
    },
    { title: 'COST', cell: costIn, align: 'right', rank: 1 },
    number('IN', ({ usage }) => usage.inputTokens, 2),
    number('CACHED', ({ usage }) => usage.cachedTokens, 5),
    number('OUT', ({ usage }) => usage.outputTokens, 3),
    number('CALLS', ({ calls }) => calls, 4),
    ...(has('failed') ? [number('FAILED', ({ failed }) => failed, 6)] : []),
    ...(has('fenced') ? [number('TOO LATE', ({ fenced }) => fenced, 7)] : []),
  ];
  return renderTable(rows, columns, look);
}

/** A price that is not known is no price of 0: what is known is the least that it was. */
export function costIn({ usage, unpriced }: Pick<SpendingSum, 'usage' | 'unpriced'>): string {
  if (usage.costUsd === null) return 'not known';
  return unpriced > 0 ? `${formatCost(usage.costUsd)} + ?` : formatCost(usage.costUsd);
}
