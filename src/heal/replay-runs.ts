/**
 * What happened in each run, by replaying its history with the workflow's own code: nobody else could say it so exactly. The
 * workflow tells every event through its sinks; on a replay this listens.
 */
import { Worker, type InjectedSinks, type ReplayWorkerOptions } from '@temporalio/worker';
import type { ConversationEvent } from '../conversation/event.js';
import type { Run } from '../conversation/rebuild.js';
import type { ConversationState } from '../conversation/state.js';
import type { ConversationSinks } from '../workflows/observe.js';
import type { History } from './fetch-runs.js';

export type WorkflowCode = Pick<ReplayWorkerOptions, 'workflowBundle' | 'workflowsPath' | 'dataConverter'>;

/** In the order of `histories`. A run that cannot be replayed is undefined, with the reason in `problems`. */
export async function replayRuns(
  code: WorkflowCode,
  workflowId: string,
  histories: readonly History[],
): Promise<{ readonly runs: readonly (Run | undefined)[]; readonly problems: readonly string[] }> {
  const heard: { opened?: ConversationState; events: ConversationEvent[] }[] = [];
  const latest = (): (typeof heard)[number] | undefined => heard[heard.length - 1];
  const sinks: InjectedSinks<ConversationSinks> = {
    conversation: {
      opened: { fn: (_info, state) => void heard.push({ opened: state, events: [] }), callDuringReplay: true },
      event: { fn: (_info, event) => void latest()?.events.push(event), callDuringReplay: true },
    },
  };
  const problems: string[] = [];
  const runs: (Run | undefined)[] = [];
  const one = async function* () {
    for (const history of histories) yield { workflowId, history };
  };
  // One after the other, so what is heard since the last result belongs to this one.
  for await (const { error } of Worker.runReplayHistories({ ...code, sinks }, one())) {
    const run = heard.splice(0).pop();
    if (error) problems.push(error.message);
    runs.push(run?.opened ? { opened: run.opened, events: run.events } : undefined);
  }
  return { runs, problems };
}
