/** What Temporal wrote down about a conversation, over all of its runs. */
import { temporal as proto } from '@temporalio/proto';
import type { World } from './world.js';

type HistoryEvent = proto.api.history.v1.IHistoryEvent;

const { WorkflowTaskFailedCause } = proto.api.enums.v1;
/**
 * Not trouble: something arrived while a run was closing, so its last task is done again; or more arrived beside a task than the server
 * keeps in its buffer (100 events, 2 MiB), so it has ended the task to write them into history.
 */
const SERVERS_OWN: readonly unknown[] = [
  WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
  WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
];

/** The events of each run, first run first. */
export async function runsOf({ temporal }: Pick<World, 'temporal'>, id: string): Promise<HistoryEvent[][]> {
  const { raw } = await temporal.workflow.getHandle(id).describe();
  const runs: HistoryEvent[][] = [];
  for (let runId = raw.workflowExecutionInfo?.firstRunId ?? undefined; runId;) {
    const { events } = await temporal.workflow.getHandle(id, runId).fetchHistory();
    runs.push(events ?? []);
    runId = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? undefined;
  }
  return runs;
}

/** Each failed workflow task in words: a healthy conversation has none. */
export async function workflowTaskFailures(world: Pick<World, 'temporal'>, id: string): Promise<string[]> {
  const runs = await runsOf(world, id);
  return runs.flat().flatMap(({ workflowTaskFailedEventAttributes: failed }) => {
    if (!failed || SERVERS_OWN.includes(failed.cause)) return [];
    return [`${WorkflowTaskFailedCause[failed.cause ?? 0]}: ${failed.failure?.message ?? ''}`];
  });
}
