/**
 * What happened in one turn and when, as Temporal's history has it: bars on lanes, and marks where something broke or moved.
 *
 * A quick tool rides on a model step: when it ran follows from how long it says it took.
 *
 * @rule timeline/lost-or-waiting: Temporal writes the start of an activity with its end, for the last attempt alone: the time between
 *   scheduling and that start is lost time after an earlier attempt, and otherwise a wait for a worker. (test:
 *   test/insight/timeline.test.ts)
 * @rule timeline/wait-between-steps: Temporal has no event for a wait for a person: it begins where the step ends that caused it, and ends
 *   with the decision. (test: test/insight/timeline.test.ts)
 * @rule timeline/lane-of-its-time: Work of no turn (the store, compaction, healing) belongs to the turn in whose time it was. (test:
 *   test/insight/timeline.test.ts)
 */
import type { Usage } from '../../records/message.js';
import { deathOf, peopleIn, retriesBetween } from './gaps.js';
import { readRun } from './read-run.js';
import { LANES, type RunHistory, type TimelineBar, type TurnTimeline, type UnderWay } from './shape.js';

/** More than a person can read; a turn ends at its limit of tools long before. */
const MAX_BARS = 2_000;

/** `runs`: oldest first. `ended`: whether the turn has ended; `now` is where an open bar reaches for what comes after it. */
export function timelineOf(
  turn: string,
  runs: readonly RunHistory[],
  { pending, ended, complete }: { readonly pending: readonly UnderWay[]; readonly ended: boolean; readonly complete: boolean },
): TurnTimeline {
  const read = runs.map((run) => readRun(run, pending));
  const own = read.flatMap(({ bars }) => bars).filter((bar) => bar.turn === turn);
  const begins = [...own.map(({ bar }) => bar.from), ...read.flatMap(({ taken }) => taken.get(turn) ?? [])];
  const from = begins.length === 0 ? null : Math.min(...begins);
  const isOpen = !ended || own.some(({ bar }) => bar.to === null);
  const lastEnd = Math.max(from ?? 0, ...own.map(({ bar }) => bar.to ?? bar.from));
  const to = isOpen ? Infinity : lastEnd;
  // (timeline/lane-of-its-time)
  const within = (start: number, end: number | null): boolean => from !== null && start <= to && (end ?? Infinity) >= from;
  const beside = read.flatMap(({ bars }) => bars).filter(({ bar, turn: of }) => of === undefined && within(bar.from, bar.to));
  const found = [...own, ...beside].map(({ bar }) => bar);
  const bars = [...found, ...peopleIn(turn, read), ...retriesBetween(own.map(({ bar, answered }) => ({ bar, answered })))];
  const marks = read.flatMap((run) => run.marks).filter(({ at }) => within(at, at));
  const deaths = found.flatMap(deathOf);
  const sorted = bars.sort((a, b) => a.from - b.from || LANES.indexOf(a.lane) - LANES.indexOf(b.lane)).slice(0, MAX_BARS);
  return {
    turn,
    from,
    to: isOpen || from === null ? null : lastEnd,
    bars: sorted,
    marks: [...marks, ...deaths].sort((a, b) => a.at - b.at).slice(0, MAX_BARS),
    usage: sumOfUsage(found),
    workers: [...new Set(sorted.flatMap(({ worker }) => worker ?? []))],
    complete: complete || read.some(({ taken }) => taken.has(turn)),
  };
}

function sumOfUsage(bars: readonly TimelineBar[]): Usage | null {
  const spent = bars.flatMap(({ usage }) => usage ?? []);
  if (spent.length === 0) return null;
  return spent.reduce((sum, one) => ({
    ...sum,
    inputTokens: sum.inputTokens + one.inputTokens,
    cachedTokens: sum.cachedTokens + one.cachedTokens,
    outputTokens: sum.outputTokens + one.outputTokens,
    costUsd: sum.costUsd === null || one.costUsd === null ? null : sum.costUsd + one.costUsd,
  }));
}
