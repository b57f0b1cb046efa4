/** What lies between bars and is no event of Temporal's: people who are waited for, retries, deaths of workers. */
import { words } from './payloads.js';
import type { ReadRun } from './read-run.js';
import type { TimelineBar, TimelineMark } from './shape.js';

/** (timeline/wait-between-steps) */
export function peopleIn(turn: string, runs: readonly ReadRun[]): TimelineBar[] {
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
export function retriesBetween(own: readonly { readonly bar: TimelineBar; readonly answered?: boolean }[]): TimelineBar[] {
  const steps = own.filter(({ bar }) => bar.lane === 'model').sort((a, b) => a.bar.from - b.bar.from);
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

/** An attempt without an end: its worker was gone. */
export function deathOf({ attempt, failure, started, from, event, run, label }: TimelineBar): TimelineMark[] {
  if (attempt < 2 || failure === null || !/heartbeat|timed? ?out|timeout/i.test(failure)) return [];
  return [{ kind: 'worker-died', at: started ?? from, words: `${label}: attempt ${attempt - 1} was cut off (${failure})`, event, run }];
}
