/** The `look-after` step: how a sub-agent of an earlier run stands. */
import { ApplicationFailure } from '@temporalio/common';

export interface LookAfterInput {
  readonly child: string;
}

/** Temporal's name of the status; `NOT_FOUND` for a workflow that it does not know. */
export type StatusOf = (workflowId: string) => Promise<string>;

export async function lookAfter(statusOf: StatusOf | undefined, { child }: LookAfterInput): Promise<string> {
  if (statusOf) return statusOf(child);
  throw ApplicationFailure.nonRetryable(`cannot look after ${child}: this worker has no way to ask Temporal`, 'not-available');
}
