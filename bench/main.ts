/** Measures the rows of design section 8 and prints them as a table or as JSON. */
import { parseArguments } from './arguments.js';
import { compare, renderComparison } from './compare.js';
import { describeMachine } from './machine.js';
import { FULL, QUICK, type Measured } from './row.js';
import { createSurroundings } from './surroundings.js';
import { renderTable } from './table.js';

export async function main(argv: readonly string[]): Promise<number> {
  const asked = parseArguments(argv);
  if ('problem' in asked) {
    process.stderr.write(`${asked.problem}\n`);
    return 2;
  }
  const surroundings = await createSurroundings();
  try {
    const machine = describeMachine(surroundings.serverVersion);
    const measured: Measured[] = [];
    for (const row of asked.rows) {
      process.stderr.write(`  … ${row.name}\n`);
      measured.push(...(await row.measure(surroundings, asked.quick ? QUICK : FULL)));
    }
    const whole = { ...machine, loadAfter: describeMachine('').load, quick: asked.quick, rows: measured };
    process.stdout.write(asked.json ? `${JSON.stringify(whole, null, 2)}\n` : renderTable(whole));
    if (asked.compare === undefined) return 0;
    const comparison = compare(measured, asked.compare.rows);
    process.stderr.write(`\n${renderComparison(comparison, asked.compare.file)}`);
    return comparison.regressions.length === 0 ? 0 : 1;
  } finally {
    await surroundings.close();
  }
}
