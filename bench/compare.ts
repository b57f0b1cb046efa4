/** This run against the kept one of a release. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Measured } from './row.js';

/** Of a row whose noise nobody has measured; less is noise, also on a quiet machine. */
const UNMEASURED = 0.15;
/** Equal sides that were equal by chance prove no smaller one. */
const LEAST = 0.02;

export interface Regression {
  readonly row: string;
  readonly before: number;
  readonly now: number;
  /** By which part of `before` it may have been worse. */
  readonly noise: number;
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

/** What a file of results has after a run: its rows in place of those of the same name. Each row says when it was measured. */
export function keepRows<Run extends { readonly date: string; readonly rows: readonly Measured[] }>(file: string, run: Run): Run {
  const fresh = run.rows.map((row) => ({ ...row, date: run.date }));
  const names = new Set(fresh.map(({ row }) => row));
  const before = existsSync(file) ? readKept(file) : [];
  const [first] = fresh;
  // Together, where the first of them stood.
  const at = before.findIndex(({ row }) => names.has(row));
  const others = before.filter(({ row }) => !names.has(row));
  const place = first === undefined || at < 0 ? others.length : before.slice(0, at).filter(({ row }) => !names.has(row)).length;
  return { ...run, rows: [...others.slice(0, place), ...fresh, ...others.slice(place)] };
}

const RESULTS = join('bench', 'results');

/** Those of the last release, in the folder from which npm starts it. */
export function latestResults(folder = RESULTS): string {
  const versions = readdirSync(folder).flatMap((name) => /^\d+\.\d+\.\d+\.json$/.exec(name)?.[0] ?? []);
  const latest = versions.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1);
  if (latest === undefined) throw new Error(`${folder} has no results of a release`);
  return join(folder, latest);
}

export function compare(now: readonly Measured[], before: readonly Measured[]): Comparison {
  const pairs = now.flatMap((row) => {
    const was = before.find((one) => one.row === row.row);
    const [then, current] = [was && portable(was), portable(row)];
    if (was === undefined || then === undefined || current === undefined) return [];
    return [{ row: row.row, before: then, now: current, noise: noiseOf(was, row), higherIsBetter: row.toHold.startsWith('≥') }];
  });
  const isWorse = ({ before: was, now: is, noise, higherIsBetter }: (typeof pairs)[number]): boolean =>
    higherIsBetter ? is < was * (1 - noise) : is > was * (1 + noise);
  return {
    compared: pairs.length,
    regressions: pairs.filter(isWorse).map(({ row, before: was, now: is, noise }) => ({ row, before: was, now: is, noise })),
  };
}

export function renderComparison({ compared, regressions }: Comparison, file: string): string {
  const lines = regressions.map(
    ({ row, before, now, noise }) =>
      `  WORSE  ${row}: ${before.toFixed(2)} → ${now.toFixed(2)}, and its noise is ${(100 * noise).toFixed(1)} %`,
  );
  const verdict = regressions.length === 0 ? 'none is worse' : `${regressions.length} worse`;
  return [`${compared} rows compared with ${file}: ${verdict} by more than its noise`, ...lines, ''].join('\n');
}

/** The larger one of both runs. */
function noiseOf(was: Measured, is: Measured): number {
  const known = [was.noise, is.noise].filter((noise) => noise !== undefined);
  return known.length === 0 ? UNMEASURED : Math.max(LEAST, ...known);
}

/** Times are the machine's; ratios to the floor of the same run, counts and bytes are ours. */
function portable({ ratio, unit, product }: Measured): number | undefined {
  return ratio ?? (unit === '' || unit === 'B' ? product : undefined);
}
