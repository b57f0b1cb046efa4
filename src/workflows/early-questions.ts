/**
 * A question that comes early must not leave a history that cannot be replayed.
 *
 * A query that does not go to a worker's sticky queue (the worker is gone, or keeps no conversation at hand) brings the whole history as it
 * stands, also what no workflow task has taken yet: a signal, a result. Core activates the workflow with that, and keeps it. The task
 * that then comes with an update finds it done already: live the signal came first and the update after its consequences, on replay
 * both come together and updates precede results. Order inside an activation cannot mend that; not to be activated early can.
 *
 * History may also end with a task of another worker: nothing distinguishes it from a task of this worker until the next one comes. Each
 * task leaves its completion and its commands in history, so if the next one begins too soon for ours, or with room for another task in
 * between, ours was none. Temporal then shows one failed task (measured with tasks that time out: 8 of 12 conversations did not replay,
 * none since). If that other worker has done the task, and it brought an update, Core finds in history what it did not see, and fails the
 * task the same way.
 *
 * If a task that is done again brings nothing more, Core sends the commands without another activation. They were decided with the time and
 * the length of the task that timed out, which a replay never sees: so nothing is decided by Temporal's length (measured-history.ts).
 *
 * A task that brings something and leads to no command leaves one that changes nothing. Core takes a completed task with nothing between it
 * and the next for a heartbeat, and on replay brings both in one activation: the update first, then the result that live came in the task
 * before.
 *
 * @rule workflows/early-query-refused: If new events in history have no task yet, the query is refused. The worker forgets the run, and the
 *   next one begins from history (measured: 6 of 10 conversations did not replay, none since). (test: test/determinism/asked-early.test.ts)
 * @rule workflows/foreign-task-done-again: A workflow task that another worker has begun, or has let time out, is done again from history.
 *   (test: test/temporal/early-questions.test.ts)
 */
import { ApplicationFailure, type ActivateInput, type WorkflowInterceptors } from '@temporalio/workflow';
import { ASK_AGAIN } from '../records/turn-end.js';
import { eventsOfCommands, leastEventsOfJob, mostEventsOfJob, type Command, type CommandEvents } from './history-events.js';

type Activation = ActivateInput['activation'];
type Time = Activation['timestamp'];

/** What came last, but for questions. */
interface Last {
  readonly time: Time;
  readonly historyLength: number;
  /** Something that history has by itself; an update that is refused is not in history. */
  readonly brings: boolean;
  /** Protocol ids of the updates that it brought. */
  readonly updateIds: ReadonlySet<string>;
  added: CommandEvents;
  questioned: boolean;
}

/** Temporal's encoding of a value that removes a field. */
const NULL = Uint8Array.from([...'binary/null'], (letter) => letter.charCodeAt(0));
/** One event in history, "workflow properties modified": it takes a field that is not there out of the memo. An empty change is refused. */
const NOTHING: Command = { modifyWorkflowProperties: { upsertedMemo: { fields: { nothing: { metadata: { encoding: NULL } } } } } };

/** Events of a task that was scheduled and timed out, the least that another leaves. One that no worker took in time leaves as many. */
const ANOTHER_TASK = 2;
const LEGACY_QUERY = 'legacy_query';

export function interceptors(): WorkflowInterceptors {
  let last: Last | undefined;
  let isQuestion = false;
  return {
    internals: [
      {
        activate(input, next) {
          const { activation } = input;
          const questions = activation.jobs?.flatMap(({ queryWorkflow }) => (queryWorkflow ? [queryWorkflow] : [])) ?? [];
          isQuestion = questions.length > 0;
          if (isQuestion) {
            if (last && questions.some(({ queryId }) => queryId === LEGACY_QUERY)) last.questioned = true;
            return next(input);
          }
          if (last && isEarly(activation, last))
            throw ApplicationFailure.retryable('asked while a workflow task waits: ask again', ASK_AGAIN);
          if (last?.questioned && !follows(activation, last))
            throw ApplicationFailure.retryable('a question came before this workflow task: it is done again, from history', ASK_AGAIN);
          last = {
            time: activation.timestamp,
            historyLength: activation.historyLength ?? 0,
            brings: activation.jobs?.some((job) => !job.doUpdate && !job.updateRandomSeed) ?? false,
            added: { least: 0, most: 0 },
            updateIds: new Set(activation.jobs?.flatMap(({ doUpdate }) => (doUpdate ? [doUpdate.protocolInstanceId ?? ''] : []))),
            questioned: false,
          };
          return next(input);
        },
        concludeActivation(input, next) {
          const output = next(input);
          if (!last || isQuestion) return output;
          const leavesNone = eventsOfCommands(output.commands, last.updateIds).most === 0;
          const commands = last.brings && leavesNone ? [...output.commands, NOTHING] : output.commands;
          last.added = eventsOfCommands(commands, last.updateIds);
          return { ...output, commands };
        },
      },
    ],
  };
}

/**
 * Each workflow task has a different time: with the same time there is none yet for what is new in history
 * (workflows/early-query-refused).
 */
function isEarly({ timestamp, historyLength, jobs }: Activation, last: Last): boolean {
  const brings = jobs?.some((job) => job.signalWorkflow ?? job.fireTimer ?? job.doUpdate) ?? false;
  return isSame(last.time, timestamp) && (historyLength !== last.historyLength || brings);
}

/**
 * Between two tasks are the end of the first, its commands, what has happened since, and the beginning of the second
 * (workflows/foreign-task-done-again).
 */
function follows({ historyLength, jobs }: Activation, { historyLength: before, added }: Last): boolean {
  if (added.most === 0) return true;
  const between = (historyLength ?? 0) - before - 3;
  const [least, most] = [leastEventsOfJob, mostEventsOfJob].map((count) => (jobs ?? []).reduce((sum, job) => sum + count(job), 0));
  return between >= added.least + (least ?? 0) && between < added.most + (most ?? 0) + ANOTHER_TASK;
}

function isSame(a: Time, b: Time): boolean {
  return String(a?.seconds) === String(b?.seconds) && (a?.nanos ?? 0) === (b?.nanos ?? 0);
}
