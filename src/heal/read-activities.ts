/** The activities of a workflow as its history has them: what each was given and what it answered, in the order of their ends. */
import { setImmediate } from 'node:timers/promises';
import type { temporal } from '@temporalio/proto';
import { findRuns, readPages, type Execution, type HistoryEvent, type HistoryService } from './fetch-runs.js';
import { errorMessage } from '../platform/errors.js';

/** One that has no end in history, or another end than a result, is given as `scheduled` alone. */
export interface Activity {
  readonly kind: 'scheduled' | 'completed';
  readonly name: string;
  readonly input: unknown;
  /** Undefined before its end, and where it answers nothing. */
  readonly output: unknown;
  /** When it was scheduled, or when its end came: epoch milliseconds. */
  readonly at: number;
  /** Of input and output in history. */
  readonly bytes: number;
}

export interface ActivityPage {
  readonly activities: readonly Activity[];
  readonly events: number;
  /** What cannot be read, in words. */
  readonly problems: readonly string[];
}

export interface ActivityHistory {
  readonly runs: number;
  /** False when earlier runs are no longer retained. */
  readonly complete: boolean;
  readonly pages: AsyncIterable<ActivityPage>;
}

/** Of the whole chain of runs; of activities of these names alone anything is decoded. */
export async function readActivities(service: HistoryService, execution: Execution, names: readonly string[]): Promise<ActivityHistory> {
  const { runs, complete } = await findRuns(service, execution);
  const pages = async function* (): AsyncGenerator<ActivityPage> {
    for (const run of runs) {
      // No run leaves an activity to the next one.
      const pair = createPairing(new Set(names));
      for await (const events of readPages(service, run)) {
        yield pair(events);
        // The other conversations of this worker have a turn.
        await setImmediate();
      }
    }
  };
  return { runs: runs.length, complete, pages: pages() };
}

interface Scheduled {
  readonly name: string;
  readonly input: unknown;
  readonly bytes: number;
}

/** Of one run: what it is given in one page it remembers for the next. */
export function createPairing(names: ReadonlySet<string>): (events: readonly HistoryEvent[]) => ActivityPage {
  const open = new Map<string, Scheduled>();
  return (events) => {
    const activities: Activity[] = [];
    const problems: string[] = [];
    const decode = (payloads: Payloads, of: string): { readonly value: unknown; readonly bytes: number } | undefined => {
      const data = payloads?.payloads?.[0]?.data;
      if (!data || data.length === 0) return { value: undefined, bytes: 0 };
      try {
        return { value: JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8')), bytes: data.length };
      } catch (error) {
        problems.push(`${of} cannot be read: ${errorMessage(error)}`);
        return undefined;
      }
    };
    for (const event of events) {
      const scheduled = event.activityTaskScheduledEventAttributes;
      const name = scheduled?.activityType?.name ?? '';
      const id = String(event.eventId);
      if (scheduled && names.has(name)) {
        const input = decode(scheduled.input, `the input of ${name} (event ${id})`);
        if (!input) continue;
        const one = { name, input: input.value, bytes: input.bytes };
        open.set(id, one);
        activities.push({ kind: 'scheduled', ...one, output: undefined, at: toTime(event) });
      }
      const begun = findBeginning(event);
      const ended = begun === undefined ? undefined : open.get(begun);
      if (begun === undefined || !ended) continue;
      open.delete(begun);
      if (!event.activityTaskCompletedEventAttributes) continue;
      const output = decode(event.activityTaskCompletedEventAttributes.result, `the result of ${ended.name} (event ${id})`);
      if (!output) continue;
      activities.push({ kind: 'completed', ...ended, output: output.value, at: toTime(event), bytes: ended.bytes + output.bytes });
    }
    return { activities, events: events.length, problems };
  };
}

type Payloads = temporal.api.common.v1.IPayloads | null | undefined;

/** The event that began what this one ends, whatever the end; undefined where it ends nothing. */
function findBeginning(event: HistoryEvent): string | undefined {
  const end =
    event.activityTaskCompletedEventAttributes ??
    event.activityTaskFailedEventAttributes ??
    event.activityTaskTimedOutEventAttributes ??
    event.activityTaskCanceledEventAttributes;
  return end ? String(end.scheduledEventId) : undefined;
}

function toTime({ eventTime }: HistoryEvent): number {
  return Number(eventTime?.seconds ?? 0) * 1000 + Math.floor((eventTime?.nanos ?? 0) / 1e6);
}
