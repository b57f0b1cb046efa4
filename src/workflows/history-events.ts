/** How many events of history the jobs of an activation come from, and how many its commands leave. */
import type { ActivateInput, ConcludeActivationInput } from '@temporalio/workflow';

export type Command = ConcludeActivationInput['commands'][number];
type Job = NonNullable<ActivateInput['activation']['jobs']>[number];

/** Events that are certain, and with those that are possible: an activity that has ended meanwhile is not cancelled any more. */
export interface CommandEvents {
  readonly least: number;
  readonly most: number;
}

/** Events that a job comes from; none for an update, which is an event only with the command that accepts it. */
export function eventsOfJob(job: Job): number {
  // An activity has begun before it ends, but where it was cancelled, or no worker took it.
  if (job.resolveActivity) return job.resolveActivity.result?.cancelled || wasNotTaken(job) ? 1 : 2;
  const isEvent =
    job.initializeWorkflow ??
    job.signalWorkflow ??
    job.fireTimer ??
    job.cancelWorkflow ??
    job.resolveSignalExternalWorkflow ??
    job.resolveRequestCancelExternalWorkflow ??
    job.resolveChildWorkflowExecutionStart ??
    job.resolveChildWorkflowExecution;
  return isEvent ? 1 : 0;
}

/** TIMEOUT_TYPE_SCHEDULE_TO_START of Temporal. */
const NOT_TAKEN = 2;

function wasNotTaken({ resolveActivity }: Job): boolean {
  return resolveActivity?.result?.failed?.failure?.cause?.timeoutFailureInfo?.timeoutType === NOT_TAKEN;
}

/** Temporal writes that an activity has begun when it has ended; one that was cancelled or timed out may never have begun. */
export function leastEventsOfJob(job: Job): number {
  if (job.resolveActivity) return job.resolveActivity.result?.completed ? 2 : 1;
  return eventsOfJob(job);
}

export function mostEventsOfJob(job: Job): number {
  return job.resolveActivity ? 2 : eventsOfJob(job);
}

/** @param updateIds protocol ids of the updates that the activation has brought */
export function eventsOfCommands(all: readonly Command[], updateIds: ReadonlySet<string>): CommandEvents {
  const commands = recorded(all, updateIds);
  const cancels = commands.filter(({ requestCancelActivity }) => requestCancelActivity);
  return { least: commands.length - cancels.length, most: commands.length };
}

/** Protocol ids of the updates that these accept. */
export function accepted(commands: readonly Command[]): ReadonlySet<string> {
  return new Set(commands.flatMap(({ updateResponse }) => (updateResponse?.accepted ? [updateResponse.protocolInstanceId ?? ''] : [])));
}

/** What is begun and cancelled at once leaves no event, and neither does an update that is refused; one that fails later does. */
function recorded(commands: readonly Command[], updateIds: ReadonlySet<string>): readonly Command[] {
  const taken = accepted(commands);
  const isRefusal = ({ updateResponse }: Command): boolean => {
    const id = updateResponse?.protocolInstanceId ?? '';
    return Boolean(updateResponse?.rejected) && updateIds.has(id) && !taken.has(id);
  };
  const cancelled = new Set(
    commands.flatMap(({ cancelTimer, requestCancelActivity }) => [nameOf('timer', cancelTimer), nameOf('activity', requestCancelActivity)]),
  );
  const begun = new Set(
    commands.flatMap(({ startTimer, scheduleActivity }) => [nameOf('timer', startTimer), nameOf('activity', scheduleActivity)]),
  );
  const isIn = (names: ReadonlySet<string | undefined>, ...candidates: (string | undefined)[]): boolean =>
    candidates.some((name) => name !== undefined && names.has(name));
  return commands.filter((command) => {
    const { startTimer, scheduleActivity, cancelTimer, requestCancelActivity } = command;
    return (
      !isRefusal(command) &&
      !isIn(cancelled, nameOf('timer', startTimer), nameOf('activity', scheduleActivity)) &&
      !isIn(begun, nameOf('timer', cancelTimer), nameOf('activity', requestCancelActivity))
    );
  });
}

function nameOf(kind: string, command: { seq?: number | null } | null | undefined): string | undefined {
  return command ? `${kind} ${command.seq}` : undefined;
}
