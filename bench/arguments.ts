import { parseArgs } from 'node:util';
import { readKept } from './compare.js';
import type { Measured, Row } from './row.js';
import { ROWS } from './rows.js';

export interface Asked {
  readonly rows: readonly Row[];
  readonly quick: boolean;
  readonly json: boolean;
  /** What an earlier run has printed as JSON, to compare with. */
  readonly compare?: { readonly file: string; readonly rows: readonly Measured[] };
}

const USAGE = `Usage: npm run bench -- [row …] [--quick] [-o table|json] [--compare bench/results/VERSION.json]
Rows: ${ROWS.map(({ name }) => name).join(', ')}; all of them by default.`;

export function parseArguments(argv: readonly string[]): Asked | { readonly problem: string } {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        output: { type: 'string', short: 'o', default: 'table' },
        compare: { type: 'string' },
      },
    });
    const unknown = positionals.filter((name) => !ROWS.some((row) => row.name === name));
    if (unknown.length > 0) return { problem: `There is no row ${unknown.join(', ')}.\n${USAGE}` };
    if (!['table', 'json'].includes(values.output)) return { problem: `-o takes table or json.\n${USAGE}` };
    const rows = positionals.length === 0 ? ROWS : ROWS.filter(({ name }) => positionals.includes(name));
    const compare = values.compare === undefined ? {} : { compare: { file: values.compare, rows: readKept(values.compare) } };
    return { rows, quick: values.quick, json: values.output === 'json', ...compare };
  } catch (error) {
    return { problem: `${error instanceof Error ? error.message : String(error)}\n${USAGE}` };
  }
}
