/** Runs an effect's activity in this process, as a Temporal worker would: its context, its attempts, its input and output as JSON. */
import { randomUUID } from 'node:crypto';
import { asyncLocalStorage, Context, type Info } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure, noopMetricMeter, type ActivityCancellationDetails } from '@temporalio/common';
import type { Activities } from '../activities/index.js';
import type { Policy } from '../conversation/effect-table.js';

export const NAMESPACE = 'test';
const TASK_QUEUE = 'test';

/** Of what Temporal would try for ever: a test ends. */
const MAX_ATTEMPTS = 20;

const SILENT = { log: ignore, trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

export interface ActivityRun {
  readonly name: keyof Activities;
  readonly input: unknown;
  readonly policy: Pick<Policy, 'attempts' | 'firstRetry' | 'lastRetry'>;
  readonly conversation: string;
  /** Aborted when a person stops the turn. */
  readonly stop: AbortSignal;
}

/** `pause` is given how many milliseconds Temporal would wait before the next attempt. Rejects with what the last attempt has thrown. */
export async function runActivity(activities: Activities, run: ActivityRun, pause: (ms: number) => void): Promise<unknown> {
  const { name, input, policy, stop } = run;
  const work = activities[name] as (input: unknown) => Promise<unknown>;
  for (let attempt = 1; ; attempt++) {
    try {
      return asJson(await asyncLocalStorage.run(contextOf(run, attempt), () => work(asJson(input))));
    } catch (error) {
      const isLast = attempt >= Math.min(policy.attempts ?? MAX_ATTEMPTS, MAX_ATTEMPTS);
      if (isLast || stop.aborted || !isRetryable(error)) throw error;
      pause(pauseBefore(attempt, policy, error));
    }
  }
}

/** What Temporal would have put into history; `undefined` stays what it is. */
export function asJson<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}

function isRetryable(error: unknown): boolean {
  if (error instanceof CancelledFailure) return false;
  return !(error instanceof ApplicationFailure) || error.nonRetryable !== true;
}

function pauseBefore(attempt: number, { firstRetry, lastRetry = Infinity }: ActivityRun['policy'], error: unknown): number {
  const wished = error instanceof ApplicationFailure ? error.nextRetryDelay : undefined;
  return typeof wished === 'number' ? wished : Math.min(lastRetry, firstRetry * 2 ** (attempt - 1));
}

function contextOf({ name, conversation, stop }: ActivityRun, attempt: number): Context {
  const cancelled = new Promise<never>((_, reject) => {
    const end = (): void => reject(new CancelledFailure('the turn was stopped'));
    if (stop.aborted) end();
    else stop.addEventListener('abort', end, { once: true });
  });
  cancelled.catch(() => undefined);
  const info = {
    attempt,
    activityId: randomUUID(),
    activityType: name,
    namespace: NAMESPACE,
    workflowNamespace: NAMESPACE,
    workflowExecution: { workflowId: conversation, runId: conversation },
    workflowType: 'conversation',
    taskQueue: TASK_QUEUE,
    inWorkflow: true,
  } as Partial<Info> as Info;
  const cancellation: { readonly details?: ActivityCancellationDetails } = {
    get details() {
      return stop.aborted ? ({ cancelRequested: true } as ActivityCancellationDetails) : undefined;
    },
  };
  return new Context(info, cancelled, stop, ignore, undefined, SILENT, noopMetricMeter, cancellation);
}

function ignore(): void {}
