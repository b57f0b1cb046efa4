import { parseArgs } from 'node:util';
import { latestResults, readKept } from './compare.js';
import type { Measured, Row } from './row.js';
import { ROWS } from './rows.js';

export interface Asked {
  readonly rows: readonly Row[];
  readonly quick: boolean;
  readonly json: boolean;
  /** Redis is a cluster of six processes. */
  readonly isCluster: boolean;
  /** Where the results are to be kept. */
  readonly write?: string;
  /** It measures nothing while others work. */
  readonly isStrict: boolean;
  /** What an earlier run has printed as JSON, to compare with. */
  readonly compare?: { readonly file: string; readonly rows: readonly Measured[] };
}

const USAGE = `Usage: npm run bench -- [row …] [--quick] [--redis-cluster] [-o table|json] [--check] [--compare FILE] [--write FILE]
Rows: ${ROWS.map(({ name }) => name).join(', ')}; all of them by default.
--redis-cluster measures on a Redis Cluster of six processes; with --compare FILE of a run without it, what that costs.
--check compares with the latest results in bench/results, --compare with those in FILE: the exit code is 1 where a row has become worse by
more than its noise. --write keeps what was measured in FILE, each row with its date, in place of the rows of these names.
--check and --write are refused, with exit code 3, while other processes take more than a tenth of a core.`;

export function parseArguments(argv: readonly string[]): Asked | { readonly problem: string } {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        'redis-cluster': { type: 'boolean', default: false },
        output: { type: 'string', short: 'o', default: 'table' },
        compare: { type: 'string' },
        check: { type: 'boolean', default: false },
        write: { type: 'string' },
      },
    });
    const unknown = positionals.filter((name) => !ROWS.some((row) => row.name === name));
    if (unknown.length > 0) return { problem: `There is no row ${unknown.join(', ')}.\n${USAGE}` };
    if (!['table', 'json'].includes(values.output)) return { problem: `-o takes table or json.\n${USAGE}` };
    const rows = positionals.length === 0 ? ROWS : ROWS.filter(({ name }) => positionals.includes(name));
    if (values.check && values.compare !== undefined) return { problem: `--check and --compare name two files.\n${USAGE}` };
    if (values.write !== undefined && values.quick)
      return { problem: `--write keeps what was measured in full: leave out --quick.\n${USAGE}` };
    const isCluster = values['redis-cluster'];
    if (isCluster && (values.check || values.write !== undefined))
      return { problem: `--check and --write are about one Redis: use --compare FILE with --redis-cluster.\n${USAGE}` };
    const file = values.check ? latestResults() : values.compare;
    return {
      ...{ rows, quick: values.quick, isCluster, json: values.output === 'json', isStrict: values.check || values.write !== undefined },
      ...(file !== undefined && { compare: { file, rows: readKept(file) } }),
      ...(values.write !== undefined && { write: values.write }),
    };
  } catch (error) {
    return { problem: `${error instanceof Error ? error.message : String(error)}\n${USAGE}` };
  }
}
