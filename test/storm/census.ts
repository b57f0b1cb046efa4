/** What there is in the histories of a storm, to see that it was one. */
import { temporal as proto } from '@temporalio/proto';

type Event = proto.api.history.v1.IHistoryEvent;
type History = proto.api.history.v1.IHistory;

const { WorkflowTaskFailedCause: Cause } = proto.api.enums.v1;

export interface Census {
  readonly events: number;
  readonly updates: number;
  readonly signals: number;
  readonly children: number;
  readonly handOvers: number;
  readonly timers: number;
  readonly markers: number;
  /** Workflow tasks that a worker did not answer in time. */
  readonly timedOut: number;
  /** Workflow tasks that decided nothing, with another on their heels: where a replay may take two activations for one. */
  readonly empty: number;
  /** Workflow tasks that failed because a worker could not replay what there was, while the storm lasted. */
  readonly nondeterministic: number;
}

/**
 * What such a task said, and where. Not where a question has shown a worker a task that was under way, on another worker or on itself: it
 * finds updates accepted there that it was never asked, fails once, and the next one begins from history (workflows/early-questions.ts).
 * A history that truly cannot be replayed fails again, then and when all are replayed after the storm.
 */
export function replayFailures(histories: readonly History[]): string[] {
  return histories.flatMap(({ events }) =>
    (events ?? []).filter(isNondeterministic).flatMap(({ eventId, workflowTaskFailedEventAttributes: failed }) => {
      if (isShownEarly(events ?? [], eventId, failed ?? {})) return [];
      const before = (events ?? []).filter((event) => Number(event.eventId) < Number(eventId)).slice(-12);
      return `event ${eventId}: ${failed?.failure?.message}; before it ${before.map(({ eventType }) => proto.api.enums.v1.EventType[eventType ?? 0]).join(', ')}`;
    }),
  );
}

type Failed = proto.api.history.v1.IWorkflowTaskFailedEventAttributes;

const UPDATE_ACCEPTED = /HistoryEvent\(id: \d+, WorkflowExecutionUpdateAccepted\)/;

/** Whether the failure names an update that it was never asked, and the next worker to have the task replayed it. */
function isShownEarly(events: readonly Event[], eventId: Event['eventId'], failed: Failed): boolean {
  if (!UPDATE_ACCEPTED.test(failed.failure?.message ?? '')) return false;
  const isAnswer = ({ workflowTaskCompletedEventAttributes: done, workflowTaskFailedEventAttributes: failure }: Event): boolean =>
    Boolean(done ?? failure);
  const next = events.find((event) => Number(event.eventId) > Number(eventId) && isAnswer(event));
  return Boolean(next?.workflowTaskCompletedEventAttributes);
}

function isNondeterministic({ workflowTaskFailedEventAttributes: failed }: Event): boolean {
  return failed?.cause === Cause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR;
}

export function censusOf(histories: readonly History[]): Census {
  const all = histories.map(({ events }) => events ?? []);
  const count = (is: (event: Event, next: Event | undefined) => unknown): number =>
    all.reduce((sum, events) => sum + events.filter((event, n) => is(event, events[n + 1])).length, 0);
  return {
    events: count(() => true),
    updates: count((event) => event.workflowExecutionUpdateAcceptedEventAttributes),
    signals: count((event) => event.workflowExecutionSignaledEventAttributes),
    children: count((event) => event.childWorkflowExecutionStartedEventAttributes),
    handOvers: count((event) => event.workflowExecutionContinuedAsNewEventAttributes),
    timers: count((event) => event.timerStartedEventAttributes),
    markers: count((event) => event.markerRecordedEventAttributes),
    timedOut: count(({ workflowTaskTimedOutEventAttributes: attributes }) => attributes && isStartToClose(attributes)),
    empty: count((event, next) => event.workflowTaskCompletedEventAttributes && next?.workflowTaskScheduledEventAttributes),
    nondeterministic: count(isNondeterministic),
  };
}

/** A sticky task that no worker took is something else. */
function isStartToClose({ timeoutType }: proto.api.history.v1.IWorkflowTaskTimedOutEventAttributes): boolean {
  return timeoutType === proto.api.enums.v1.TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE;
}
