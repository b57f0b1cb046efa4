/** What a conversation has written into Temporal's history. */
import type { Client } from '@temporalio/client';
import proto from '@temporalio/proto';

export type HistoryEvent = proto.temporal.api.history.v1.IHistoryEvent;

const { EventType } = proto.temporal.api.enums.v1;

/** All runs that are retained, oldest first. */
export async function historiesOf(client: Client, id: string): Promise<HistoryEvent[][]> {
  const runs: HistoryEvent[][] = [];
  for (let runId: string | undefined; ;) {
    const { events } = await client.workflow.getHandle(id, runId).fetchHistory();
    runs.unshift(events ?? []);
    const before = events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
    if (!before) return runs;
    runId = before;
  }
}

export function bytesOf(event: HistoryEvent): number {
  return proto.temporal.api.history.v1.HistoryEvent.encode(event).finish().length;
}

export function sizeOf(events: readonly HistoryEvent[]): number {
  return events.reduce((sum, event) => sum + bytesOf(event), 0);
}

/** From each accepted update to the next: the same number of events as a turn has, begun a workflow task late. The last is left out. */
export function turnsOf(runs: readonly (readonly HistoryEvent[])[]): HistoryEvent[][] {
  const turns: HistoryEvent[][] = [];
  for (const event of runs.flat()) {
    if (event.workflowExecutionUpdateAcceptedEventAttributes) turns.push([]);
    turns.at(-1)?.push(event);
  }
  return turns.slice(0, -1);
}

/**
 * Whether Temporal Cloud bills it as an action (docs.temporal.io/evaluate/cloud/actions). Heartbeats and queries are billed too, and are in no
 * history; what an attempt repeats is one more.
 */
export function isAction(event: HistoryEvent): boolean {
  return [
    event.workflowExecutionStartedEventAttributes,
    event.workflowExecutionUpdateAcceptedEventAttributes,
    event.workflowExecutionSignaledEventAttributes,
    event.activityTaskScheduledEventAttributes,
    event.timerStartedEventAttributes,
    event.markerRecordedEventAttributes,
    event.upsertWorkflowSearchAttributesEventAttributes,
    event.startChildWorkflowExecutionInitiatedEventAttributes,
  ].some(Boolean);
}

export function nameOf(event: HistoryEvent): string {
  const name = EventType[event.eventType ?? 0] ?? 'UNKNOWN';
  return name.replace('EVENT_TYPE_', '').toLowerCase().replaceAll('_', ' ');
}

/** Bytes of everything in it that is a payload: what we wrote, not what Temporal adds. */
export function payloadBytes(value: unknown): number {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return 0;
  const { data } = value as { data?: unknown };
  if (data instanceof Uint8Array) return data.length;
  return Object.values(value).reduce((sum: number, part) => sum + payloadBytes(part), 0);
}
