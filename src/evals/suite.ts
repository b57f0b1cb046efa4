/** Many runs: at once, under a budget, and what they come to. Nothing is tried twice. */
import { xmlText } from '../records/text.js';
import { runEval, type EvalRun, type PlannedEval, type RunSettings } from './run-eval.js';

/** An eval with one of its cases, by the names that people know. */
export interface LoadedEval extends PlannedEval {
  /** From the project, with slashes. */
  readonly file: string;
  readonly name: string;
  /** Of the case; absent: it has none. */
  readonly caseName?: string;
}

export interface SuiteOptions extends Omit<RunSettings, 'spent'> {
  /** Of each eval and case. */
  readonly runs: number;
  readonly atOnce: number;
  /** US dollars: once that is spent, nothing more begins. */
  readonly budgetUsd?: number;
  /** Told after each run. */
  readonly ran?: (done: number, of: number) => void;
}

export interface EvalResult {
  readonly file: string;
  readonly name: string;
  readonly case: string | null;
  readonly passed: number;
  /** Those that did not run are not among them. */
  readonly runs: readonly EvalRun[];
  /** From 0 to 1; null: none ran. */
  readonly passRate: number | null;
}

export interface SuiteResult {
  readonly evals: readonly EvalResult[];
  readonly runs: number;
  readonly failed: number;
  /** Claims that do not hold and do not count. */
  readonly soft: number;
  /** Claims that could not be looked at. */
  readonly skipped: number;
  /** Runs that were not begun, and why. */
  readonly notRun: number;
  readonly whyNotRun?: string;
  /** null: a price is not known. */
  readonly costUsd: number | null;
  readonly seconds: number;
  /** Something is missing that only a person can bring: a key, a package. */
  readonly missing?: string;
}

export async function runSuite(evals: readonly LoadedEval[], options: SuiteOptions): Promise<SuiteResult> {
  const { runs, atOnce, budgetUsd, ran, signal, ...settings } = options;
  const begun = performance.now();
  const planned = evals.flatMap((one, at) => Array.from({ length: runs }, (_, n) => ({ one, at, n })));
  const results: EvalRun[][] = evals.map(() => []);
  let [next, done, costUsd, known] = [0, 0, 0 as number | null, 0];
  let missing: string | undefined;
  /** Undefined: another run may begin. */
  const whyNot = (): string | undefined => {
    if (signal.aborted) return 'it was stopped';
    if (missing !== undefined) return 'something is missing';
    if (budgetUsd === undefined) return undefined;
    if (costUsd === null) return 'a price is not known, so the budget cannot be kept';
    return known >= budgetUsd ? `the budget of $${budgetUsd} is spent` : undefined;
  };
  const spent = (usd: number | null): void => {
    costUsd = costUsd === null || usd === null ? null : costUsd + usd;
    known += usd ?? 0;
  };
  const work = async (): Promise<void> => {
    while (next < planned.length && whyNot() === undefined) {
      const { one, at } = planned[next++] as (typeof planned)[number];
      const run = await runEval(one, { ...settings, signal, spent });
      missing ??= run.missing;
      results[at]?.push(run);
      ran?.(++done, planned.length);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, planned.length) }, work));
  const all = results.flat();
  const count = (outcome: string, isSoft?: boolean): number =>
    all.flatMap(({ claims }) => claims).filter((claim) => claim.outcome === outcome && (isSoft === undefined || claim.isSoft === isSoft))
      .length;
  const notRun = planned.length - all.length;
  const why = whyNot();
  return {
    evals: evals.map(({ file, name, caseName }, at) => {
      const ofThis = results[at] ?? [];
      const passed = ofThis.filter(({ outcome }) => outcome === 'passed').length;
      return { file, name, case: caseName ?? null, passed, runs: ofThis, passRate: ofThis.length === 0 ? null : passed / ofThis.length };
    }),
    runs: all.length,
    failed: all.filter(({ outcome }) => outcome === 'failed').length,
    soft: count('failed', true),
    skipped: count('skipped'),
    notRun,
    ...(notRun > 0 && why !== undefined && { whyNotRun: why }),
    costUsd,
    seconds: (performance.now() - begun) / 1000,
    ...(missing !== undefined && { missing }),
  };
}

/** Whether CI may go on: each case has so many of its runs passed, all ran, and with `isStrict` nothing soft failed or was skipped. */
export function isGreen(
  { evals, notRun, soft, skipped }: SuiteResult,
  { passRate, isStrict }: { readonly passRate: number; readonly isStrict: boolean },
): boolean {
  return notRun === 0 && evals.every((one) => (one.passRate ?? 0) >= passRate) && !(isStrict && soft + skipped > 0);
}

/** As CI systems read it: a test case for each run. */
export function toJUnit({ evals, seconds }: SuiteResult): string {
  const cases = evals.flatMap(({ file, name, case: item, runs }) =>
    runs.map(({ outcome, claims, ms }, n) => {
      const title = [name, ...(item === null ? [] : [item]), ...(runs.length > 1 ? [`run ${n + 1}`] : [])].join(' › ');
      const head = `<testcase classname="${xmlText(file)}" name="${xmlText(title)}" time="${(ms / 1000).toFixed(3)}"`;
      const failed = claims.filter((claim) => claim.outcome === 'failed' && !claim.isSoft);
      const others = claims
        .filter((claim) => claim.outcome !== 'passed' && !failed.includes(claim))
        .map(({ what, why = '' }) => `${what}: ${why}`);
      const out = others.length === 0 ? '' : `<system-out>${xmlText(others.join('\n'))}</system-out>`;
      if (outcome === 'passed') return out === '' ? `    ${head}/>` : `    ${head}>${out}</testcase>`;
      const message = failed.map(({ what, why = '' }) => `${what}: ${why}`).join('\n');
      return `    ${head}><failure message="${xmlText(message)}"/>${out}</testcase>`;
    }),
  );
  const failures = evals.flatMap(({ runs }) => runs).filter(({ outcome }) => outcome === 'failed').length;
  const suite = `  <testsuite name="perdura eval" tests="${cases.length}" failures="${failures}" time="${seconds.toFixed(3)}">`;
  return ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites>', suite, ...cases, '  </testsuite>', '</testsuites>', ''].join('\n');
}
