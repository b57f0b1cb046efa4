/**
 * What happened in each run, by replaying its history with the workflow's code: nothing else is as exact. The
 * workflow reports every event through its sinks; on a replay this listens.
 */
import { Worker, type InjectedSinks, type ReplayWorkerOptions } from '@temporalio/worker';
import type { ConversationEvent } from '../conversation/event.js';
import type { Run } from '../conversation/replay/past.js';
import type { ConversationState } from '../conversation/state.js';
import type { ConversationListener } from '../conversation/views/observation.js';
import { orUndefinedAfter } from '../platform/promises.js';
import type { History } from './fetch-runs.js';

/**
 * A replay for its events alone takes half the time: it gives no call stack, and what a worker has worked once comes to
 * an end. (The SDK notes the stack of each promise, and Node starts a thread for every call that has a time limit.)
 */
class QuickReplay extends Worker {
  protected static override async getOrCreateBundle(...given: Parameters<typeof Worker.getOrCreateBundle>) {
    const bundle = await super.getOrCreateBundle(...given);
    return bundle && { ...bundle, code: `Error.stackTraceLimit = 0;${bundle.code}` };
  }

  protected static override createWorkflowCreator(...[bundle, options, logger]: Parameters<typeof Worker.createWorkflowCreator>) {
    const withoutLimit = { ...options, isolateExecutionTimeoutMs: undefined } as unknown as typeof options;
    return super.createWorkflowCreator(bundle, withoutLimit, logger);
  }
}

export type WorkflowCode = Pick<ReplayWorkerOptions, 'workflowBundle' | 'workflowsPath' | 'dataConverter'>;

/**
 * Whether any worker has worked it yet. A run waits for its first task where no worker polls, and after a hand-over on the heels of
 * another Temporal holds the next one back for seconds; the SDK would wait for ever to replay it.
 */
export function hasBegun(history: History): boolean {
  return history.events?.some((event) => event.workflowTaskCompletedEventAttributes) ?? false;
}

export interface Replayed {
  /** In the order of the histories. A run that has not begun is undefined, and so is one that cannot be replayed. */
  readonly runs: readonly (Run | undefined)[];
  /** Why runs cannot be replayed. */
  readonly problems: readonly string[];
}

/** Code of an application may loop: then the next replay does not wait for ever. */
const MAX_WAIT_MS = 60_000;
let latest: Promise<unknown> = Promise.resolve();

/** One at a time in a process: after the last one the SDK takes its runtime down, also from under one that has just begun. */
export function replayHere(
  code: WorkflowCode,
  workflowId: string,
  histories: readonly History[],
  maxWaitMs = MAX_WAIT_MS,
): Promise<Replayed> {
  const replayed = orUndefinedAfter(maxWaitMs, latest).then(() => replayAlone(code, workflowId, histories));
  latest = replayed.catch(() => undefined);
  return replayed;
}

async function replayAlone(code: WorkflowCode, workflowId: string, histories: readonly History[]): Promise<Replayed> {
  const heard: { opened?: ConversationState; events: ConversationEvent[] }[] = [];
  const sinks: InjectedSinks<{ conversation: ConversationListener }> = {
    conversation: {
      opened: { fn: (_info, state) => void heard.push({ opened: state, events: [] }), callDuringReplay: true },
      event: { fn: (_info, event) => void heard.at(-1)?.events.push(event), callDuringReplay: true },
    },
  };
  const problems: string[] = [];
  const replayed = new Map<History, Run | undefined>();
  const begun = histories.filter(hasBegun);
  const one = async function* () {
    for (const history of begun) yield { workflowId, history };
  };
  // One after the other, so what is heard since the last result belongs to this one.
  for await (const { error } of QuickReplay.runReplayHistories({ ...code, sinks }, one())) {
    const run = heard.splice(0).pop();
    if (error) problems.push(error.message);
    const history = begun[replayed.size];
    if (history) replayed.set(history, run?.opened && { opened: run.opened, events: run.events });
  }
  return { runs: histories.map((history) => replayed.get(history)), problems };
}
