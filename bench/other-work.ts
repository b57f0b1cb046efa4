/** What other processes take of the processors meanwhile: who measures must be alone. From /proc, so on Linux alone. */
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';

export interface OtherWork {
  /** Cores that it took, on average. */
  readonly cores: number;
  /** Of the processes that took a hundredth of one or more, those that took most first; what is over already has no name. */
  readonly names: readonly string[];
}

/** Of one core: from there on it is seen in what is measured. */
export const MOST_CORES = 0.1;

const TICKS_A_SECOND = 100;
const KERNEL = 2;

interface Process {
  readonly parent: number;
  readonly name: string;
  /** Seconds, with those of its children that have ended. */
  readonly withChildren: number;
  readonly own: number;
}

/** Call it at the end: what others took since now. Undefined where the system does not say. */
export function watchOtherWork(): () => OtherWork | undefined {
  const before = look();
  return () => {
    const after = look();
    if (before === undefined || after === undefined) return undefined;
    const seconds = (after.at - before.at) / 1_000;
    const ours = after.ours - before.ours;
    const names = [...after.others]
      .map(([pid, { name, own }]) => ({ name, took: own - (before.others.get(pid)?.own ?? 0) }))
      .sort((a, b) => b.took - a.took)
      .filter(({ took }) => took / seconds >= MOST_CORES / 10)
      .map(({ name }) => name);
    return { cores: Math.max(0, (after.all - before.all - ours) / seconds), names: [...new Set(names)] };
  };
}

function look() {
  const processes = readProcesses();
  if (processes.size === 0) return undefined;
  const isBelow = (pid: number, above: number): boolean => {
    for (let at = pid; at > 0; at = processes.get(at)?.parent ?? 0) if (at === above) return true;
    return false;
  };
  let ours = 0;
  const others = new Map<number, Process>();
  for (const [pid, found] of processes) {
    // What the kernel does for us, such as writing to disk, is no other's.
    if (isBelow(pid, process.pid) || isBelow(pid, KERNEL)) ours += found.withChildren;
    else others.set(pid, found);
  }
  const all = cpus().reduce((sum, { times: { user, nice, sys } }) => sum + user + nice + sys, 0) / 1_000;
  return { at: performance.now(), all, ours, others };
}

function readProcesses(): Map<number, Process> {
  const found = new Map<number, Process>();
  for (const pid of listPids()) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      const end = stat.lastIndexOf(')');
      const fields = stat.slice(end + 2).split(' ');
      // proc(5): the third is the state; utime, stime, cutime and cstime are the 14th to the 17th.
      const [user, system, childrenUser, childrenSystem] = fields.slice(11, 15).map((ticks) => Number(ticks) / TICKS_A_SECOND);
      const own = (user ?? 0) + (system ?? 0);
      const withChildren = own + (childrenUser ?? 0) + (childrenSystem ?? 0);
      found.set(pid, { parent: Number(fields[1]), name: stat.slice(stat.indexOf('(') + 1, end), own, withChildren });
    } catch {
      // It has ended.
    }
  }
  return found;
}

function listPids(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}
