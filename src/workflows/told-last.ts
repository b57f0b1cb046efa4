/**
 * What came of a local step that has outlived its workflow task is told after all else that came with it.
 *
 * A question to a workflow ends the task that it came with, also while a local step runs. Its result comes in the next task then, after
 * what was decided about the results and messages that this one began with; a replay has them all in one activation.
 */
import { CancellationScope, condition, workflowInfo } from '@temporalio/workflow';

export function toldLast<T>(work: Promise<T>): Promise<T> {
  const { historyLength } = workflowInfo();
  const isSameTask = (): boolean => workflowInfo().historyLength === historyLength;
  return work.then(
    (result) => (isSameTask() ? result : allElse().then(() => result)),
    (error: Error) => (isSameTask() ? Promise.reject(error) : allElse().then(() => Promise.reject(error))),
  );
}

/** First what the other results have to tell; then what the loop does about it, which may itself wait for a condition. */
async function allElse(): Promise<void> {
  await untilNothingIsLeft();
  await untilNothingIsLeft();
}

/** The SDK looks at conditions when nothing else of an activation is left to do. */
function untilNothingIsLeft(): Promise<void> {
  let looks = 0;
  return CancellationScope.nonCancellable(() => condition(() => looks++ > 0));
}
