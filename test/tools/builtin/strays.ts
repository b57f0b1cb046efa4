/** Which processes are there whose command line holds a text, as the outside sees it. */
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

export function processesWith(text: string): string[] {
  const all = execFileSync('ps', ['-eo', 'pid=,stat=,args=', '-ww'], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  // A corpse that nobody has taken note of yet runs no more.
  return all.split('\n').filter((line) => line.includes(text) && !/^\s*\d+\s+Z/.test(line));
}

/** Those that are still there after the time given. */
export async function strays(text: string, ms = 3_000): Promise<string[]> {
  for (const end = Date.now() + ms; Date.now() < end;) {
    if (processesWith(text).length === 0) return [];
    await sleep(50);
  }
  return processesWith(text);
}
