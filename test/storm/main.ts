/** `npm run storm`: started by scripts/storm.mjs, with its options as JSON. Ends with 1 where something did not hold. */
import type { StormOptions } from './engine.js';
import { render } from './report.js';

interface Given extends Pick<
  StormOptions,
  'minutes' | 'store' | 'cluster' | 'atOnce' | 'betweenFaultsMs' | 'keep' | 'keepIn' | 'mayMount'
> {
  readonly seed: number;
  readonly json: boolean;
}

async function main({ seed, json, ...options }: Given): Promise<number> {
  process.env['PERDURA_SEED'] = String(seed);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());
  // It reads the seed as it is loaded.
  const { runStorm } = await import('./engine.js');
  const tell = (line: string): void => void process.stderr.write(`  ${line}\n`);
  const report = await runStorm({ ...options, tell, stop: stop.signal });
  process.stdout.write(`${json ? JSON.stringify(report, null, 2) : render(report)}\n`);
  return report.violations.length === 0 ? 0 : 1;
}

main(JSON.parse(process.argv[2] ?? '{}') as Given).then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(2);
  },
);
