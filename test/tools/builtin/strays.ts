/** Which processes are there whose command line holds a text, as the outside sees it. */
import { execFileSync } from 'node:child_process';
import { waitFor } from '../../support/wait-for.js';

export function processesWith(text: string): string[] {
  const all = execFileSync('ps', ['-eo', 'pid=,stat=,args=', '-ww'], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  // A corpse that nobody has taken note of yet runs no more.
  return all.split('\n').filter((line) => line.includes(text) && !/^\s*\d+\s+Z/.test(line));
}

/** None, when those that are there have ended; while one lives on it waits in vain. */
export function strays(text: string): Promise<string[]> {
  return waitFor(
    () => processesWith(text),
    (left) => left.length === 0,
  );
}
