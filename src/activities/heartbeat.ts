/** Signs of life for the whole of an activity, by a separate timer: they also bring the news that it should stop. */
import type { Context } from '@temporalio/activity';

const EVERY_MS = 500;

/** Twice a second: a beat at once costs a short activity 6 ms, and says nothing that its start has not. `details` are for another attempt. */
export async function withHeartbeat<T>(context: Context, work: () => Promise<T>, details?: () => unknown): Promise<T> {
  const timer = setInterval(() => context.heartbeat(details?.()), EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** Whether the stop that `cancellationSignal` reports is a person's, and not the worker's end or a lost heartbeat. */
export function wasStopped(context: Context): boolean {
  return context.cancellationDetails?.cancelRequested === true;
}
