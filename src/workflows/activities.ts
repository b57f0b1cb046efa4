/**
 * Activities as workflows see them. How each is run stands in the table of effects; a retry here is the only retry layer, and what should
 * be seen or be stoppable while it waits comes back as a failure and waits in the conversation's state instead.
 */
import {
  ActivityCancellationType,
  type ActivityOptions,
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  TimeoutFailure,
} from '@temporalio/common';
import type { Activities } from '../activities/index.js';
import { policyOf, summaryOfEffect, type Policy } from '../conversation/effect-table.js';
import type { HealInput, RecallInput, StepFailure } from '../conversation/outbox/writes.js';
import type { Effect } from '../conversation/effect.js';
import type { Host } from './host.js';
import type { ConsolidateInput, RememberInput } from '../conversation/context/compaction-effects.js';
import { isTransient } from '../records/turn-end.js';
import { errorMessage } from '../platform/errors.js';

/** A worker that is silent for this long is taken for dead. Activities beat twice a second. */
const HEARTBEAT = '10s';

type Of<Name extends keyof Activities> = ReturnType<Activities[Name]>;

/** Effects that are activities, by their names. */
export type ActivityEffect = Extract<Effect, { effect: keyof Activities }>;

/** The activity of that name does it; what it answers is the effect's output. */
export function runActivity(host: Host, effect: ActivityEffect): Promise<unknown> {
  const policy = policyOf(effect);
  if (!policy) throw new Error(`${effect.effect} is no activity`);
  return host.activity(effect.effect, effect.input, { ...optionsOf(policy), summary: summaryOfEffect(effect) });
}

const READING: ActivityOptions = { startToCloseTimeout: '10s', retry: { initialInterval: '500ms', maximumAttempts: 3 } };
const HEALING: ActivityOptions = { startToCloseTimeout: '2m', heartbeatTimeout: HEARTBEAT, retry: { maximumAttempts: 3 } };

/** Handlers ask for an answer that this run no longer has at hand. */
export function recall(host: Host, input: RecallInput): Of<'recall'> {
  return host.activity('recall', input, { ...READING, summary: 'read an answer again' }) as Of<'recall'>;
}

export function heal(host: Host, input: HealInput): Of<'heal'> {
  return host.activity('heal', input, { ...HEALING, summary: 'rebuild from history what the store has lost' }) as Of<'heal'>;
}

function optionsOf({
  startToClose,
  scheduleToStart,
  taskQueue,
  beats,
  firstRetry,
  lastRetry,
  attempts,
  isStoppable,
}: Policy): ActivityOptions {
  return {
    startToCloseTimeout: startToClose,
    ...(scheduleToStart !== undefined && { scheduleToStartTimeout: scheduleToStart }),
    ...(taskQueue !== undefined && { taskQueue }),
    ...(beats && { heartbeatTimeout: HEARTBEAT }),
    retry: {
      initialInterval: firstRetry,
      backoffCoefficient: 2,
      ...(lastRetry !== undefined && { maximumInterval: lastRetry }),
      ...(attempts !== undefined && { maximumAttempts: attempts }),
    },
    ...(isStoppable && { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED }),
  };
}

// Activities of the memory workflow: on the conversation's task queue, where its store is, or else on the workflow's queue.

interface MemoryActivities {
  consolidate(input: ConsolidateInput, summary: string): Of<'consolidate'>;
  remember(input: RememberInput): Of<'remember'>;
  care(input: Parameters<Activities['care']>[0]): Of<'care'>;
  forget(input: Parameters<Activities['forget']>[0]): Of<'forget'>;
  review(input: Parameters<Activities['review']>[0]): Of<'review'>;
}

export function memoryActivities(host: Host, taskQueue: string | undefined): MemoryActivities {
  const where = taskQueue === undefined ? {} : { taskQueue };
  const asking: ActivityOptions = {
    ...where,
    // Two whole model calls, the second to repair the first.
    startToCloseTimeout: '21m',
    // A queue whose workers are gone for good must not hold up the others for ever.
    scheduleToStartTimeout: '2m',
    heartbeatTimeout: '10s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '5s', maximumAttempts: 4 },
  };
  const writing: ActivityOptions = {
    ...where,
    startToCloseTimeout: '30s',
    scheduleToStartTimeout: '2m',
    retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '5s', maximumAttempts: 6 },
  };
  const doing =
    <Name extends keyof MemoryActivities>(name: Name, options: ActivityOptions) =>
    (input: Parameters<Activities[Name]>[0], summary: string): Of<Name> =>
      host.activity(name, input, { ...options, summary }) as Of<Name>;
  const [remember, care, forget, review] = [
    doing('remember', writing),
    doing('care', asking),
    doing('forget', writing),
    doing('review', writing),
  ];
  return {
    consolidate: doing('consolidate', asking),
    remember: (input) => remember(input, `write ${input.cause}`),
    care: (input) => care(input, 'merge duplicates and prune'),
    forget: (input) => forget(input, 'forget'),
    review: (input) => review(input, `${input.decision} ${input.id}`),
  };
}

/** The server's words for an activity that was cancelled before a worker had taken it. */
const NOT_STARTED = 'ACTIVITY_ID_NOT_STARTED';

/** What an activity's failure means to the conversation. Compared by type, never by class. */
export function failureOf(error: unknown): StepFailure {
  const cause = error instanceof ActivityFailure ? error.cause : error;
  if (cause instanceof ApplicationFailure) {
    const type = cause.type ?? 'internal';
    const retryAfterMs = retryAfterIn(cause.details);
    return { type, message: cause.message, transient: isTransient(type), ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  }
  if (cause instanceof TimeoutFailure) {
    const message =
      cause.timeoutType === 'HEARTBEAT'
        ? 'no sign of life from the worker; it may have died'
        : `it took longer than it may (${cause.timeoutType})`;
    return { type: 'timeout', message, transient: true, ...(cause.timeoutType === 'SCHEDULE_TO_START' && { unbegun: true }) };
  }
  if (cause instanceof CancelledFailure) {
    const isUnbegun = cause.details?.includes(NOT_STARTED) === true;
    return { type: 'cancelled', message: 'it was stopped', transient: false, ...(isUnbegun && { unbegun: true }) };
  }
  return { type: 'internal', message: errorMessage(cause), transient: false };
}

function retryAfterIn(details: readonly unknown[] | null | undefined): number | undefined {
  const [first] = details ?? [];
  const value = typeof first === 'object' && first !== null ? (first as { retryAfterMs?: unknown }).retryAfterMs : undefined;
  return typeof value === 'number' && value >= 0 ? value : undefined;
}
