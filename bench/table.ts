import type { Machine } from './machine.js';
import type { Measured } from './row.js';

export interface Whole extends Machine {
  readonly loadAfter: readonly number[];
  readonly quick: boolean;
  readonly rows: readonly Measured[];
}

export function renderTable({ date, cores, load, loadAfter, versions, quick, rows }: Whole): string {
  const lines = [
    ['row', 'product', 'floor', 'ratio', 'to hold', 'verdict'],
    ...rows.map(({ row, product, floor, unit, ratio, toHold, holds }) => [
      row,
      amount(product, unit),
      floor === undefined ? '' : amount(floor, unit),
      ratio === undefined ? '' : ratio.toFixed(2),
      toHold,
      toHold === '' ? '' : holds ? 'holds' : 'MISSES',
    ]),
  ];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  const table = lines.map((line) =>
    line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  '),
  );
  const notes = rows.flatMap(({ row, notes = [] }) => (notes.length > 0 ? [`  ${row}`, ...notes.map((note) => `      ${note}`)] : []));
  const known = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `${[
    `${date}, ${cores} cores, load average ${load.join(' ')} before and ${loadAfter.join(' ')} after${quick ? ', --quick' : ''}`,
    known.join(', '),
    ...(isBusy(cores, load) ? ['The machine has other work: take differences under 15 % for noise.'] : []),
    '',
    ...table,
    '',
    ...notes,
  ].join('\n')}\n`;
}

/** What others do shows in the load before we begin. */
function isBusy(cores: number, load: readonly number[]): boolean {
  return (load[0] ?? 0) > cores / 4;
}

function amount(value: number, unit: string): string {
  const digits = unit === 'B' || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)}${unit === '' ? '' : ` ${unit}`}`;
}
