/**
 * A question that comes early is refused, so that no history is made which cannot be replayed.
 *
 * A query that does not go to a worker's own queue (the worker is gone, or keeps no conversation at hand) brings the whole history as it
 * stands, also what no workflow task has taken yet: a signal, a result. Core activates the workflow with that, and keeps it. The task
 * that then comes with an update finds it done already: live the signal came first and the update after its consequences, on replay
 * both come together and updates precede results. Order inside an activation cannot mend that; not to be activated early can: the query
 * fails, the worker forgets the run, and the next one begins from history (measured: 6 of 10 conversations did not replay, none since).
 */
import { ApplicationFailure, type WorkflowInterceptors } from '@temporalio/workflow';
import { ASK_AGAIN } from '../records/failure-kinds.js';

type Time = { readonly seconds?: unknown; readonly nanos?: number | null } | null | undefined;

export function interceptors(): WorkflowInterceptors {
  let before: { readonly time: Time; readonly historyLength: unknown } | undefined;
  return {
    internals: [
      {
        activate(input, next) {
          const { timestamp: time, historyLength, jobs } = input.activation;
          if (!jobs?.some((job) => job.queryWorkflow)) {
            // Each workflow task has a time of its own: with the same time there is none yet for what is new in history.
            const isSameTask = before !== undefined && isSame(before.time, time);
            const brings = jobs?.some((job) => job.signalWorkflow ?? job.fireTimer ?? job.doUpdate) ?? false;
            if (isSameTask && (historyLength !== before?.historyLength || brings)) {
              throw ApplicationFailure.retryable('asked while a workflow task waits: ask again', ASK_AGAIN);
            }
            before = { time, historyLength };
          }
          return next(input);
        },
      },
    ],
  };
}

function isSame(a: Time, b: Time): boolean {
  return String(a?.seconds) === String(b?.seconds) && (a?.nanos ?? 0) === (b?.nanos ?? 0);
}
