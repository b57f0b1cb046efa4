/** What `perdura heal` found, in words. */
import type { Healed } from '../../heal/heal.js';
import { formatCount } from './quantities.js';

export function isWhole({ missing, restored, problems }: Healed): boolean {
  return missing === restored && problems.length === 0;
}

export function inWords(id: string, { runs, known, missing, restored, lostBodies, complete }: Healed): string[] {
  const read = `${id}: history has ${counted(known, 'entry', 'entries')} in ${counted(runs, 'run', 'runs')}`;
  const found =
    missing === 0
      ? 'the store has them all'
      : restored === missing
        ? `${counted(missing, 'was', 'were')} missing in the store and ${missing === 1 ? 'is' : 'are'} back`
        : `${counted(missing, 'was', 'were')} missing in the store, ${formatCount(restored)} back; run it again, and look at the store if it stays so`;
  return [
    `${read}; ${found}`,
    ...lostBodies.map((ref) => `a long text is lost, history had only its beginning: ${ref}`),
    ...(complete ? [] : ['earlier runs have passed their retention: what only they knew cannot be brought back']),
  ];
}

function counted(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
