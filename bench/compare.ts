/** This run against the kept one of a release. */
import { readFileSync } from 'node:fs';
import type { Measured } from './row.js';

/** Less is noise, also on a quiet machine. */
const WORSE = 0.15;

export interface Regression {
  readonly row: string;
  readonly before: number;
  readonly now: number;
}

export interface Comparison {
  /** How many rows both runs have, in a number that does not depend on the machine. */
  readonly compared: number;
  readonly regressions: readonly Regression[];
}

/** Throws when the file holds no result of the bench. */
export function readKept(file: string): readonly Measured[] {
  const { rows } = JSON.parse(readFileSync(file, 'utf8')) as { readonly rows?: readonly Measured[] };
  if (!Array.isArray(rows)) throw new Error('it has no rows: it must be what `npm run bench -- -o json` printed');
  return rows as readonly Measured[];
}

export function compare(now: readonly Measured[], before: readonly Measured[]): Comparison {
  const pairs = now.flatMap((row) => {
    const was = before.find((one) => one.row === row.row);
    const values = { row: row.row, before: was && portable(was), now: portable(row), higherIsBetter: row.toHold.startsWith('≥') };
    return values.before === undefined || values.now === undefined ? [] : [{ ...values, before: values.before, now: values.now }];
  });
  const isWorse = ({ before: was, now: is, higherIsBetter }: (typeof pairs)[number]): boolean =>
    higherIsBetter ? is < was * (1 - WORSE) : is > was * (1 + WORSE);
  return {
    compared: pairs.length,
    regressions: pairs.filter(isWorse).map((pair) => ({ row: pair.row, before: pair.before, now: pair.now })),
  };
}

export function renderComparison({ compared, regressions }: Comparison, file: string): string {
  const lines = regressions.map(({ row, before, now }) => `  WORSE  ${row}: ${before.toFixed(2)} → ${now.toFixed(2)}`);
  const verdict = regressions.length === 0 ? 'none is worse' : `${regressions.length} worse`;
  return [`${compared} rows compared with ${file}: ${verdict} by more than ${WORSE * 100} %`, ...lines, ''].join('\n');
}

/** Times are the machine's; ratios to the floor of the same run, counts and bytes are ours. */
function portable({ ratio, unit, product }: Measured): number | undefined {
  return ratio ?? (unit === '' || unit === 'B' ? product : undefined);
}
