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
import { addUsage, type Usage } from '../../records/message.js';
import { LEASE_ENDED, WORKER_ENDED } from '../../records/turn-end.js';
import { readRun, type ReadRun, words } from './read-run.js';
import { LANES, type RunHistory, type TimelineBar, type TurnTimeline, type UnderWay, type TimelineMark } from './shape.js';

/** More than a person can read; a turn ends at its limit of tools long before. */
const MAX_BARS = 2_000;

/** `runs`: oldest first. `ended`: whether the turn has ended; `now` is where an open bar reaches for what comes after it. */
export function buildTimeline(
  turn: string,
  runs: readonly RunHistory[],
  { pending, ended, complete }: { readonly pending: readonly UnderWay[]; readonly ended: boolean; readonly complete: boolean },
): TurnTimeline {
  const read = runs.map((run) => readRun(run, pending));
  const ofTurn = read.flatMap(({ bars }) => bars).filter((bar) => bar.turn === turn);
  const begins = [...ofTurn.map(({ bar }) => bar.from), ...read.flatMap(({ taken }) => taken.get(turn) ?? [])];
  const from = begins.length === 0 ? null : Math.min(...begins);
  const isOpen = !ended || ofTurn.some(({ bar }) => bar.to === null);
  const lastEnd = Math.max(from ?? 0, ...ofTurn.map(({ bar }) => bar.to ?? bar.from));
  const to = isOpen ? Infinity : lastEnd;
  // (timeline/lane-of-its-time)
  const within = (start: number, end: number | null): boolean => from !== null && start <= to && (end ?? Infinity) >= from;
  const beside = read.flatMap(({ bars }) => bars).filter(({ bar, turn: of }) => of === undefined && within(bar.from, bar.to));
  const found = [...ofTurn, ...beside].map(({ bar }) => bar);
  const bars = [...found, ...peopleIn(turn, read), ...retriesBetween(ofTurn.map(({ bar, answered }) => ({ bar, answered })))];
  const marks = read.flatMap((run) => run.marks).filter(({ at }) => within(at, at));
  const deaths = found.flatMap(findDeath);
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
  return spent.reduce(addUsage);
}

// What lies between bars and is no event of Temporal's: people who are waited for, retries, deaths of workers.

/** (timeline/wait-between-steps) */
function peopleIn(turn: string, runs: readonly ReadRun[]): TimelineBar[] {
  const decided = new Map(runs.flatMap((run) => [...run.decided]));
  const all = runs.flatMap(({ bars }) => bars);
  return all.flatMap(({ bar, turn: of, asks = [] }) =>
    of !== turn || bar.to === null
      ? []
      : asks.map(({ callId, name, what }): TimelineBar => {
          const begun = bar.to ?? bar.from;
          const decision = what === 'wait' ? undefined : decided.get(callId);
          const ran = all.find((other) => other.bar.callId === callId && other.bar.lane === 'tool')?.bar.from;
          const next = all.find((other) => other.turn === turn && other.bar.lane === 'model' && other.bar.from > begun)?.bar.from;
          const to = decision?.at ?? ran ?? next ?? null;
          const outcome =
            to === null
              ? 'running'
              : decision === undefined && what !== 'wait' && ran === undefined
                ? 'expired'
                : decision?.decision === 'deny'
                  ? 'denied'
                  : 'ok';
          return {
            ...bar,
            id: `${bar.id}/${callId}`,
            lane: what === 'wait' ? 'retry' : 'person',
            label: words(name),
            detail: {
              approval: 'waits for a person to allow it',
              question: 'a question waits for its answer',
              'client-tool': 'waits for its client',
              wait: 'waits as it was asked to',
            }[what],
            from: begun,
            to,
            started: begun,
            attempt: 1,
            worker: null,
            outcome,
            failure: null,
            usage: null,
            model: null,
            callId,
            event: bar.endEvent ?? bar.event,
            endEvent: decision?.event ?? null,
          };
        }),
  );
}

/** Between a model step that failed and the next one it waits to try again. */
function retriesBetween(bars: readonly { readonly bar: TimelineBar; readonly answered?: boolean }[]): TimelineBar[] {
  const steps = bars.filter(({ bar }) => bar.lane === 'model').sort((a, b) => a.bar.from - b.bar.from);
  return steps.flatMap(({ bar, answered }, at): TimelineBar[] => {
    const next = steps[at + 1]?.bar;
    if (answered !== false || bar.outcome !== 'failed' || bar.to === null || next === undefined || next.from - bar.to < 5) return [];
    return [
      {
        ...bar,
        id: `${bar.id}/retry`,
        lane: 'retry',
        label: 'waits to try again',
        detail: bar.failure ?? '',
        from: bar.to,
        to: next.from,
        started: bar.to,
        attempt: 1,
        worker: null,
        outcome: 'ok',
        failure: null,
        event: bar.endEvent ?? bar.event,
        endEvent: next.event,
      },
    ];
  });
}

/** In Temporal's words, of an attempt whose worker is silent. */
const SILENT = /heartbeat|timed? ?out|timeout/i;

/** An attempt without an end: its worker was gone. */
function findDeath({ attempt, failure, started, from, event, run, label }: TimelineBar): TimelineMark[] {
  if (attempt < 2 || failure === null) return [];
  if (!SILENT.test(failure) && ![WORKER_ENDED, LEASE_ENDED].some((known) => failure.includes(known))) return [];
  return [{ kind: 'worker-died', at: started ?? from, words: `${label}: attempt ${attempt - 1} was cut off (${failure})`, event, run }];
}
