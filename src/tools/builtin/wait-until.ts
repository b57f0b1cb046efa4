import { z } from 'zod';
import { defineTool } from '../define-tool.js';

const LONGEST_DAYS = 365;
const DAY_SECONDS = 24 * 60 * 60;

export const waitUntil = defineTool({
  name: 'wait_until',
  description:
    'Waits: until a time, or for some seconds. It survives restarts of everything, and the person can interrupt it. ' +
    'Use it to look again later, not to pass the time.',
  input: z
    .object({
      until: z.iso.datetime({ offset: true }).optional().describe('ISO 8601 with a zone, such as "2026-11-21T15:45:00Z".'),
      seconds: z
        .number()
        .min(0)
        .max(LONGEST_DAYS * DAY_SECONDS)
        .optional(),
    })
    .refine(({ until, seconds }) => (until === undefined) !== (seconds === undefined), 'expected one of until and seconds')
    .refine(
      ({ until }) => until === undefined || Date.parse(until) < Date.now() + LONGEST_DAYS * DAY_SECONDS * 1000,
      `until is more than ${LONGEST_DAYS} days away`,
    ),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  instead: ({ until, seconds = 0 }) =>
    until === undefined ? { kind: 'wait-for', ms: seconds * 1000 } : { kind: 'wait-until', until: Date.parse(until) },
  run: () => ({ ok: false, error: 'the conversation could not wait' }),
});
