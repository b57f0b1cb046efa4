/** `npm run storm`, or the bad week: started by scripts/storm.mjs, with its options as JSON. Ends with 1 where something did not hold. */
import type { StormOptions } from './engine.js';
import { render } from './report.js';

interface Given extends Pick<
  StormOptions,
  'minutes' | 'store' | 'cluster' | 'builds' | 'again' | 'atOnce' | 'betweenFaultsMs' | 'keep' | 'keepIn' | 'mayMount'
> {
  readonly seed: number;
  readonly json: boolean;
  readonly badWeek: boolean;
}

async function main({ seed, json, badWeek, ...options }: Given): Promise<number> {
  process.env['PERDURA_SEED'] = String(seed);
  const tell = (line: string): void => void process.stderr.write(`  ${line}\n`);
  const print = (report: object, text: string): void => void process.stdout.write(`${json ? JSON.stringify(report, null, 2) : text}\n`);
  if (badWeek) {
    const [{ runBadWeek }, { renderWeek }] = await Promise.all([
      import('../cluster/bad-week/week.js'),
      import('../cluster/bad-week/compare.js'),
    ]);
    const report = await runBadWeek({ ...options, tell });
    print(report, renderWeek(report));
    return report.compared.every(({ wrong }) => wrong.length === 0) ? 0 : 1;
  }
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());
  // It reads the seed as it is loaded.
  const { runStorm } = await import('./engine.js');
  const report = await runStorm({ ...options, tell, stop: stop.signal });
  print(report, render(report));
  return report.violations.length === 0 ? 0 : 1;
}

main(JSON.parse(process.argv[2] ?? '{}') as Given).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(2);
  },
);
