/** Times as they are kept and shown: ISO 8601. */

/** Epoch milliseconds of the last moment that a date can show. */
export const LAST_TIME = 8.64e15;

/** ISO 8601. Whatever number stands where a time should: a view never throws. */
export function isoTime(ms: number): string {
  return Math.abs(ms) <= LAST_TIME ? new Date(ms).toISOString() : 'a time that no calendar has';
}
