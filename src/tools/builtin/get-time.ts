import { z } from 'zod';
import { defineTool } from '../define-tool.js';

export const getTime = defineTool({
  name: 'get_time',
  description: 'Tells the current date and time in ISO 8601: in UTC, or in the time zone given, with its offset.',
  input: z.object({
    timeZone: z.string().min(1).max(100).optional().describe('IANA name, such as "Europe/Berlin". Default: UTC.'),
  }),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  run: ({ timeZone }, { now }) => (timeZone === undefined ? now().toISOString() : inZone(now(), timeZone)),
});

/** `2026-11-21T15:45:00+01:00` */
function inZone(time: Date, timeZone: string): string {
  const parts = new Map(
    zoneFormat(timeZone)
      .formatToParts(time)
      .map(({ type, value }) => [type, value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? '';
  // `GMT+01:00`, and plain `GMT` where the offset is nothing.
  const offset = part('timeZoneName').replace('GMT', '') || '+00:00';
  return `${part('year')}-${part('month')}-${part('day')}T${part('hour')}:${part('minute')}:${part('second')}${offset}`;
}

function zoneFormat(timeZone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'iso8601',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      timeZoneName: 'longOffset',
    });
  } catch (cause) {
    throw new Error(`there is no time zone ${JSON.stringify(timeZone)}; use an IANA name such as "Europe/Berlin" or "UTC"`, { cause });
  }
}
