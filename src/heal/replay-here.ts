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

interface ReplayOptions {
  /** Milliseconds that its worker waits for the next replay before it ends; default: none. One that goes on is ready at once. */
  readonly restMs?: number;
  /** Milliseconds that one run may take; default: a minute. Code of an application may loop. */
  readonly maxMs?: number;
}

interface ReplayedRun {
  readonly run?: Run | undefined;
  readonly problem?: string;
}

/** One run that is to be replayed. */
interface Task {
  readonly workflowId: string;
  readonly history: History;
  readonly end: (replayed: ReplayedRun) => void;
  readonly fail: (error: unknown) => void;
}

const MAX_MS = 60_000;
/** After its last worker the SDK takes its runtime down, also from under one that begins just then. */
let ending: Promise<unknown> = Promise.resolve();

/**
 * Replays, one run after the other, in one worker of the SDK's: a worker for each would leave 5 to 20 MiB that stay until
 * much later.
 */
export function createReplays(
  readCode: () => Promise<WorkflowCode>,
  { restMs = 0, maxMs = MAX_MS }: ReplayOptions = {},
): (workflowId: string, histories: readonly History[]) => Promise<Replayed> {
  const waiting: Task[] = [];
  let isAtWork = false;
  let wake = (): void => undefined;

  const work = async (): Promise<void> => {
    let task: Task | undefined;
    let isGivenUp = false;
    const giveUp = (): void => {
      isGivenUp = true;
      task?.end({ problem: `its replay did not end within ${maxMs} ms` });
      ending = Promise.resolve();
      begin();
    };
    const next = async function* () {
      while (!isGivenUp) {
        if (waiting.length === 0) await orUndefinedAfter(restMs, new Promise<void>((resolve) => (wake = resolve)));
        task = waiting.shift();
        if (task === undefined) break;
        const late = setTimeout(giveUp, maxMs);
        try {
          yield { workflowId: task.workflowId, history: task.history };
        } finally {
          clearTimeout(late);
        }
      }
      if (!isGivenUp) isAtWork = false;
    };
    const heard: { opened?: ConversationState; events: ConversationEvent[] }[] = [];
    const sinks: InjectedSinks<{ conversation: ConversationListener }> = {
      conversation: {
        opened: { fn: (_info, state) => void heard.push({ opened: state, events: [] }), callDuringReplay: true },
        event: { fn: (_info, event) => void heard.at(-1)?.events.push(event), callDuringReplay: true },
      },
    };
    try {
      await orUndefinedAfter(maxMs, ending);
      const code = await readCode();
      // One after the other, so what is heard since the last result belongs to this one.
      for await (const { error } of QuickReplay.runReplayHistories({ ...code, sinks }, next())) {
        const run = heard.splice(0).pop();
        task?.end({ run: run?.opened && { opened: run.opened, events: run.events }, ...(error && { problem: error.message }) });
      }
    } catch (error) {
      if (isGivenUp) return;
      (task ?? waiting.shift())?.fail(error);
      isAtWork = false;
    }
  };
  /** One that hangs is given up: another takes what waits. */
  const begin = (): void => {
    isAtWork = true;
    ending = work().then(() => {
      if (!isAtWork && waiting.length > 0) begin();
    });
  };
  const replayOne = (workflowId: string, history: History): Promise<ReplayedRun> =>
    new Promise((end, fail) => {
      waiting.push({ workflowId, history, end, fail });
      wake();
      if (!isAtWork) begin();
    });

  return async (workflowId, histories) => {
    const replayed = await Promise.all(
      histories.map((history): Promise<ReplayedRun> => (hasBegun(history) ? replayOne(workflowId, history) : Promise.resolve({}))),
    );
    return { runs: replayed.map(({ run }) => run), problems: replayed.flatMap(({ problem }) => problem ?? []) };
  };
}
