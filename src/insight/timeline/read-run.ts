/** One run's events, read once in their order. */
import type { HistoryEvent } from '../../heal/fetch-runs.js';
import { turnNumber } from '../../records/identity.js';
import { beginningOf } from '../../records/text.js';
import { childBar, toBar, type End, type FoundBar, type Open } from './bars.js';
import { decode, failureInWords, timeOf, titleIn } from './payloads.js';
import type { RunHistory, TimelineMark, UnderWay } from './shape.js';

/** Signals and updates that a conversation has besides those to itself. */
const DECISIONS = new Set(['decide']);

export interface ReadRun {
  readonly bars: readonly FoundBar[];
  readonly marks: readonly TimelineMark[];
  /** When the step began that took a message of that turn. */
  readonly taken: ReadonlyMap<string, number>;
  readonly decided: ReadonlyMap<string, { readonly at: number; readonly decision: string; readonly event: number }>;
  readonly run: string;
}

export function readRun({ run, events }: RunHistory, pending: readonly UnderWay[]): ReadRun {
  const open = new Map<string, Open>();
  const children = new Map<string, { readonly at: number; readonly event: number; readonly id: string; readonly title: string }>();
  const bars: FoundBar[] = [];
  const marks: TimelineMark[] = [];
  const taken = new Map<string, number>();
  const decided = new Map<string, { at: number; decision: string; event: number }>();
  let polled: string | undefined;
  for (const event of events) {
    const [id, at] = [Number(event.eventId), timeOf(event)];
    const mark = (kind: TimelineMark['kind'], words: string): void => void marks.push({ kind, at, words, event: id, run });
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled) {
      const activity = { name: scheduled.activityType?.name ?? '', input: decode(scheduled.input), at, event: id };
      open.set(String(id), { ...activity, activityId: scheduled.activityId ?? '' });
      noteTaken(activity, taken);
    }
    const begun = event.activityTaskStartedEventAttributes;
    const started = begun && open.get(String(begun.scheduledEventId));
    if (begun && started) {
      const failure = begun.lastFailure ? failureInWords(begun.lastFailure) : null;
      started.started = { at, attempt: begun.attempt ?? 1, worker: begun.identity || null, failure };
    }
    const end = endOf(event);
    const finished = end && open.get(end.begun);
    if (end && finished) {
      open.delete(end.begun);
      bars.push(toBar(finished, { at, event: id, ...end }, run));
    }
    const child = event.startChildWorkflowExecutionInitiatedEventAttributes;
    if (child) children.set(String(id), { at, event: id, id: child.workflowId ?? '', title: titleIn(decode(child.input)) });
    const childEnd = childEndOf(event);
    const childBegun = childEnd && children.get(childEnd.begun);
    if (childEnd && childBegun) {
      children.delete(childEnd.begun);
      bars.push(childBar(childBegun, { at, event: id, ...childEnd }, run));
    }
    const signal = event.workflowExecutionSignaledEventAttributes;
    const update = event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input;
    const said = signal ? { name: signal.signalName, input: signal.input } : update && { name: update.name, input: update.args };
    if (said?.name && DECISIONS.has(said.name)) {
      const { callId, decision } = (decode(said.input) ?? {}) as { readonly callId?: unknown; readonly decision?: unknown };
      if (typeof callId === 'string' && !decided.has(callId)) {
        decided.set(callId, { at, decision: decision === 'deny' ? 'deny' : 'approve', event: id });
        mark('decided', `${decision === 'deny' ? 'denied' : 'allowed or answered'}: ${beginningOf(callId, 64)}`);
      }
    }
    if (said?.name === 'interrupt') mark('interrupted', 'a person asked it to stop');
    if (said?.name === 'message' || said?.name === 'send' || said?.name === 'enqueue')
      mark('message', `by the ${signal ? 'signal' : 'update'} ${said.name}`);
    const task = event.workflowTaskStartedEventAttributes;
    if (task?.identity) {
      if (polled !== undefined && polled !== task.identity) mark('worker-changed', `${polled} → ${task.identity}`);
      polled = task.identity;
    }
    if (event.workflowTaskTimedOutEventAttributes) {
      mark('worker-died', 'a worker did not answer for a decision: another one took over');
    }
    if (event.workflowExecutionContinuedAsNewEventAttributes) mark('handed-over', 'the run ended, and the next one went on where it was');
  }
  for (const one of open.values()) {
    const way = pending.find(({ id }) => id === one.activityId);
    if (way) {
      one.started = way.startedAt
        ? { at: way.startedAt.getTime(), attempt: way.attempt, worker: way.worker, failure: way.lastFailure }
        : undefined;
    }
    bars.push(toBar(one, undefined, run, way));
  }
  for (const one of children.values()) bars.push(childBar(one, undefined, run));
  return { bars, marks, taken, decided, run };
}

/** The highest turn that a run says anything of; undefined where it names none. By it a reader knows when it has gone back far enough. */
export function turnsNamedIn(run: RunHistory): { readonly lowest: number; readonly highest: number } | undefined {
  const numbers = readRun(run, []).bars.flatMap(({ turn }) => (turn === undefined ? [] : [turnNumber(turn)]));
  return numbers.length === 0 ? undefined : { lowest: Math.min(...numbers), highest: Math.max(...numbers) };
}

function endOf(event: HistoryEvent): End | undefined {
  const completed = event.activityTaskCompletedEventAttributes;
  if (completed) return { begun: String(completed.scheduledEventId), outcome: 'ok', failure: null, output: decode(completed.result) };
  const failed = event.activityTaskFailedEventAttributes;
  if (failed)
    return { begun: String(failed.scheduledEventId), outcome: 'failed', failure: failureInWords(failed.failure), output: undefined };
  const late = event.activityTaskTimedOutEventAttributes;
  if (late) return { begun: String(late.scheduledEventId), outcome: 'timed-out', failure: failureInWords(late.failure), output: undefined };
  const canceled = event.activityTaskCanceledEventAttributes;
  if (canceled) return { begun: String(canceled.scheduledEventId), outcome: 'canceled', failure: null, output: undefined };
  return undefined;
}

function childEndOf(event: HistoryEvent): Pick<End, 'begun' | 'outcome' | 'failure'> | undefined {
  const of = (begun: unknown, outcome: End['outcome'], failure: string | null = null) => ({ begun: String(begun), outcome, failure });
  const completed = event.childWorkflowExecutionCompletedEventAttributes;
  if (completed) return of(completed.initiatedEventId, 'ok');
  const failed = event.childWorkflowExecutionFailedEventAttributes;
  if (failed) return of(failed.initiatedEventId, 'failed', failureInWords(failed.failure));
  const canceled = event.childWorkflowExecutionCanceledEventAttributes ?? event.childWorkflowExecutionTerminatedEventAttributes;
  if (canceled) return of(canceled.initiatedEventId, 'canceled');
  const late = event.childWorkflowExecutionTimedOutEventAttributes;
  return late ? of(late.initiatedEventId, 'timed-out') : undefined;
}

function noteTaken({ name, input, at }: Pick<Open, 'name' | 'input' | 'at'>, taken: Map<string, number>): void {
  if (name !== 'model-step' && name !== 'store-step') return;
  const { write } = (input ?? {}) as {
    readonly write?: { readonly messages?: readonly { readonly turn?: unknown; readonly ts?: unknown }[] };
  };
  for (const { turn, ts } of write?.messages ?? []) {
    if (typeof turn !== 'string') continue;
    const said = typeof ts === 'number' ? Math.round(ts * 1000) : at;
    taken.set(turn, Math.min(taken.get(turn) ?? Infinity, said));
  }
}
