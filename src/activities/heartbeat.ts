/** Signs of life for the whole of an activity, by a timer of their own: they also bring the news that it should stop. */
import type { Context } from '@temporalio/activity';

const EVERY_MS = 500;

/** Beats twice a second (a beat at once costs a short activity 6 ms, and says nothing that its start has not); answers with the way to end it. `details` are for another attempt. */
export function startHeartbeat(context: Context, details?: () => unknown): () => void {
  const timer = setInterval(() => context.heartbeat(details?.()), EVERY_MS);
  return () => clearInterval(timer);
}

/** Whether the stop that `cancellationSignal` reports is a person's, and not the worker's end or a lost heartbeat. */
export function wasStopped(context: Context): boolean {
  return context.cancellationDetails?.cancelRequested === true;
}
