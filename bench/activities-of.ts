/** Which activities a history tells of: how many steps a turn took, and which of them did not do what they were for. */
import type { HistoryEvent } from './history.js';

export interface Ran {
  readonly type: string;
  /** Why a model step came back without a call. */
  readonly deferred?: string;
}

/** In the order in which they were scheduled; an attempt more is the same one. */
export function activitiesOf(events: readonly HistoryEvent[]): Ran[] {
  const ran: Ran[] = [];
  const placeOf = new Map<string, number>();
  for (const event of events) {
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled) placeOf.set(String(event.eventId), ran.push({ type: scheduled.activityType?.name ?? 'unknown' }) - 1);
    const completed = event.activityTaskCompletedEventAttributes;
    const place = placeOf.get(String(completed?.scheduledEventId));
    const one = place === undefined ? undefined : ran[place];
    const deferred = deferredIn(completed?.result?.payloads?.[0]?.data);
    if (place !== undefined && one && deferred !== undefined) ran[place] = { ...one, deferred };
  }
  return ran;
}

/** Each type and each reason, how often. */
export function countedInWords(ran: readonly Ran[]): string {
  const often = new Map<string, number>();
  for (const { type, deferred } of ran) {
    const what = deferred === undefined ? type : `${type} deferred (${deferred})`;
    often.set(what, (often.get(what) ?? 0) + 1);
  }
  return [...often].map(([what, count]) => `${count} × ${what}`).join(', ');
}

function deferredIn(data: Uint8Array | null | undefined): string | undefined {
  if (!data || data.length === 0) return undefined;
  const result = JSON.parse(Buffer.from(data).toString('utf8')) as { readonly deferred?: unknown } | null;
  const deferred = typeof result === 'object' ? result?.deferred : undefined;
  if (deferred === undefined || deferred === null || deferred === false) return undefined;
  return typeof deferred === 'string' ? deferred : JSON.stringify(deferred);
}
