/** Temporal's answer to whoever reads a history, made of effects: runs, pages, and what it refuses. */
import type { HistoryEvent, HistoryService } from '../../src/heal/fetch-runs.js';
import type { Activity } from '../../src/heal/read-activities.js';

export interface FakeHistory {
  readonly service: HistoryService;
  /** Sizes of the pages that were asked for, those that were refused negative. */
  readonly asked: number[];
  readonly events: number;
}

export interface FakeOptions {
  /** gRPC refuses a page of more events than this. */
  readonly maxPage?: number;
  /** Runs that have passed their retention. */
  readonly gone?: readonly string[];
}

/** The runs are `run-1` and on, of one chain. */
export function fakeHistory(runs: readonly (readonly Activity[])[], { maxPage = Infinity, gone = [] }: FakeOptions = {}): FakeHistory {
  const histories = new Map(runs.map((activities, i) => [`run-${i + 1}`, eventsOf(activities, i === 0 ? '' : `run-${i}`)]));
  const asked: number[] = [];
  const service = {
    getWorkflowExecutionHistory: async ({ execution, maximumPageSize = 0, nextPageToken }: Asked) => {
      await new Promise((resolve) => setImmediate(resolve));
      const runId = execution?.runId || `run-${runs.length}`;
      const events = histories.get(runId);
      if (!events || gone.includes(runId)) throw Object.assign(new Error('no such run'), { code: 5 });
      if (maximumPageSize > maxPage) {
        asked.push(-maximumPageSize);
        throw Object.assign(new Error('received message larger than max'), { code: 8 });
      }
      asked.push(maximumPageSize);
      const from = nextPageToken?.length ? Number(Buffer.from(nextPageToken).toString()) : 0;
      // What Temporal wrote at once it sends at once.
      const to = from === 0 ? Math.max(2, maximumPageSize) : from + maximumPageSize;
      const token = to < events.length ? Buffer.from(String(to)) : new Uint8Array();
      return { history: { events: events.slice(from, to) }, nextPageToken: token };
    },
  };
  return { service: service as unknown as HistoryService, asked, events: [...histories.values()].flat().length };
}

interface Asked {
  readonly execution?: { readonly runId?: string };
  readonly maximumPageSize?: number;
  readonly nextPageToken?: Uint8Array;
}

/** As a text turn has them: the task that schedules, the activity, and the task that its end begins. */
function eventsOf(activities: readonly Activity[], before: string): HistoryEvent[] {
  const events: HistoryEvent[] = [];
  const add = (event: object): number => {
    events.push({ eventId: events.length + 1, eventTime: { seconds: 1, nanos: 0 }, ...event } as unknown as HistoryEvent);
    return events.length;
  };
  const task = (): void => {
    add({ workflowTaskScheduledEventAttributes: {} });
    add({ workflowTaskStartedEventAttributes: {} });
    add({ workflowTaskCompletedEventAttributes: {} });
  };
  add({ workflowExecutionStartedEventAttributes: { continuedExecutionRunId: before } });
  task();
  const open = new Map<string, number>();
  for (const { kind, name, input, output } of activities) {
    const key = JSON.stringify([name, input]);
    if (kind === 'scheduled')
      open.set(key, add({ activityTaskScheduledEventAttributes: { activityType: { name }, input: payloads(input) } }));
    if (kind === 'scheduled') add({ activityTaskStartedEventAttributes: {} });
    if (kind !== 'completed') continue;
    add({ activityTaskCompletedEventAttributes: { scheduledEventId: open.get(key) ?? 0, result: payloads(output) } });
    task();
  }
  return events;
}

function payloads(value: unknown): object | null {
  return value === undefined ? null : { payloads: [{ data: Buffer.from(JSON.stringify(value)) }] };
}
