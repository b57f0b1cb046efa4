/** Measures the rows of design section 8 and prints them as a table or as JSON. */
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { parseArguments } from './arguments.js';
import { capacityConstants } from './capacity.js';
import { compare, keepRows, renderComparison } from './compare.js';
import { describeMachine } from './machine.js';
import { MOST_CORES, watchOtherWork, type OtherWork } from './other-work.js';
import { FULL, QUICK, type Measured } from './row.js';
import { createSurroundings } from './surroundings.js';
import { renderTable } from './table.js';

const USAGE = 2;
const BUSY = 3;
const FIRST_LOOK_MS = 2_000;

export async function main(argv: readonly string[]): Promise<number> {
  const asked = parseArguments(argv);
  if ('problem' in asked) {
    process.stderr.write(`${asked.problem}\n`);
    return USAGE;
  }
  if (asked.isStrict) {
    const take = watchOtherWork();
    await sleep(FIRST_LOOK_MS);
    if (refuse('before it began', take())) return BUSY;
  }
  const surroundings = await createSurroundings(asked);
  try {
    const machine = describeMachine(surroundings.serverVersion);
    const measured: Measured[] = [];
    for (const row of asked.rows) {
      process.stderr.write(`  … ${row.name}\n`);
      const take = watchOtherWork();
      measured.push(...(await row.measure(surroundings, asked.quick ? QUICK : FULL)));
      if (asked.isStrict && refuse(`while ${row.name} was measured`, take())) return BUSY;
    }
    const whole = { ...machine, loadAfter: describeMachine('').load, quick: asked.quick, rows: measured };
    process.stdout.write(asked.json ? `${JSON.stringify(whole, null, 2)}\n` : renderTable(whole));
    if (asked.write !== undefined) {
      const kept = keepRows(asked.write, whole);
      writeFileSync(asked.write, `${JSON.stringify(kept, null, 2)}\n`);
      writeFileSync(join('data', 'capacity.json'), `${JSON.stringify(capacityConstants(kept.rows, machine.date), null, 2)}\n`);
    }
    if (asked.compare === undefined) return 0;
    const comparison = compare(measured, asked.compare.rows);
    process.stderr.write(`\n${renderComparison(comparison, asked.compare.file)}`);
    return comparison.regressions.length === 0 ? 0 : 1;
  } finally {
    await surroundings.close();
  }
}

/** Whether others took so much that it would be noise; then it is said. */
function refuse(when: string, others: OtherWork | undefined): boolean {
  if (others === undefined || others.cores <= MOST_CORES) return false;
  const who = others.names.length > 0 ? ` (${others.names.slice(0, 3).join(', ')})` : '';
  process.stderr.write(
    `Other processes took ${others.cores.toFixed(2)} cores ${when}${who}: what is measured beside them is theirs as well. ` +
      'End them and run it again; without --write and --check it is measured all the same.\n',
  );
  return true;
}
