/** Runs an activity in this process, as a Temporal worker would: its context, its attempts, its input and output as JSON. */
import { randomUUID } from 'node:crypto';
import { asyncLocalStorage, Context, type Info } from '@temporalio/activity';
import {
  ApplicationFailure,
  CancelledFailure,
  TimeoutFailure,
  noopMetricMeter,
  type ActivityCancellationDetails,
  type ActivityOptions,
} from '@temporalio/common';
import { msOptionalToNumber } from '@temporalio/common/lib/time.js';
import type { Activities } from '../../activities/index.js';

const SILENT = { log: ignore, trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

export interface ActivityRun {
  readonly activities: Activities;
  readonly name: keyof Activities;
  readonly input: unknown;
  readonly options: Pick<ActivityOptions, 'retry' | 'scheduleToCloseTimeout'>;
  /** Which workflow has requested it. */
  readonly info: Pick<Info, 'workflowNamespace' | 'workflowExecution' | 'workflowType' | 'taskQueue'>;
  /** Aborted when a person stops the turn. */
  readonly stop: AbortSignal;
  readonly now: () => number;
  /** Given what the attempt has thrown, and how many milliseconds Temporal would wait before the next. */
  readonly pause: (ms: number, failed: Error, attempt: number) => Promise<void>;
}

export interface Attempted {
  readonly output: unknown;
  /** Which one it was, from 1. */
  readonly attempt: number;
}

/** Rejects with what the last attempt has thrown. */
export async function runActivity(run: ActivityRun): Promise<Attempted> {
  const { activities, name, input, options, stop, now, pause } = run;
  const { maximumAttempts = Infinity } = options.retry ?? {};
  const until = now() + (msOptionalToNumber(options.scheduleToCloseTimeout) ?? Infinity);
  const work = activities[name] as (input: unknown) => Promise<unknown>;
  const beats: { details?: unknown } = {};
  for (let attempt = 1; ; attempt++) {
    try {
      return { output: asJson(await asyncLocalStorage.run(contextOf(run, attempt, beats), () => work(asJson(input)))), attempt };
    } catch (error) {
      const ms = pauseBefore(attempt, options.retry, error);
      if (attempt >= maximumAttempts || stop.aborted || !isRetryable(error) || now() + ms > until) throw error;
      await pause(ms, error instanceof Error ? error : new Error(String(error)), attempt);
    }
  }
}

/** What Temporal would have put into history; `undefined` stays what it is. */
export function asJson<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}

function isRetryable(error: unknown): boolean {
  // A timeout that an activity throws is one that was heard of when all was tried.
  if (error instanceof CancelledFailure || error instanceof TimeoutFailure) return false;
  return !(error instanceof ApplicationFailure) || error.nonRetryable !== true;
}

function pauseBefore(attempt: number, retry: ActivityOptions['retry'] = {}, error: unknown): number {
  const wished = error instanceof ApplicationFailure ? msOptionalToNumber(error.nextRetryDelay ?? undefined) : undefined;
  const { backoffCoefficient = 2 } = retry;
  const first = msOptionalToNumber(retry.initialInterval) ?? 1_000;
  const most = msOptionalToNumber(retry.maximumInterval) ?? 100 * first;
  return wished ?? Math.min(most, first * backoffCoefficient ** (attempt - 1));
}

function contextOf({ name, info, options, stop }: ActivityRun, attempt: number, beats: { details?: unknown }): Context {
  const cancelled = new Promise<never>((_, reject) => {
    const end = (): void => reject(new CancelledFailure('the turn was stopped'));
    if (stop.aborted) end();
    else stop.addEventListener('abort', end, { once: true });
  });
  cancelled.catch(() => undefined);
  const all = {
    ...info,
    attempt,
    activityId: randomUUID(),
    activityType: name,
    namespace: info.workflowNamespace,
    heartbeatDetails: beats.details,
    inWorkflow: true,
    ...(options.retry && { retryPolicy: options.retry }),
  } as Partial<Info> as Info;
  const cancellation: { readonly details?: ActivityCancellationDetails } = {
    get details() {
      return stop.aborted ? ({ cancelRequested: true } as ActivityCancellationDetails) : undefined;
    },
  };
  const beat = (details: unknown): void => void (beats.details = asJson(details));
  return new Context(all, cancelled, stop, beat, undefined, SILENT, noopMetricMeter, cancellation);
}

function ignore(): void {}
