/** The latest events of one feed, held once for all its readers: each takes from it what comes after its own cursor. */
import type { JsonValue } from '../records/message.js';
import { compareCursors, OLDEST } from './feed-cursor.js';

export interface FeedEvent {
  readonly cursor: string;
  readonly event: JsonValue;
}

export interface FeedWindow {
  /** The cursor of the latest event that it was given, or where it began. */
  head(): string;
  /** `bytes`: of all of them. What it was given before is left out; what is missing between them the store had no longer. */
  append(events: readonly FeedEvent[], bytes: number): void;
  /** From here on, as if nothing had come before. */
  restart(at: string): void;
  /** All that came after `cursor`; undefined where it no longer has all of that. */
  after(cursor: string): readonly FeedEvent[] | undefined;
}

/** What is older is read from the store, by the readers that are that slow. */
export const WINDOW_EVENTS = 128;
export const WINDOW_BYTES = 32 * 1024;

export function createFeedWindow(at: string, limits = { events: WINDOW_EVENTS, bytes: WINDOW_BYTES }): FeedWindow {
  /** Everything after `base` is in `kept`, as far as `head`. */
  let base = at;
  let head = at;
  let kept: { readonly event: FeedEvent; readonly bytes: number }[] = [];
  let held = 0;

  return {
    head: () => head,

    restart(from) {
      base = from;
      head = from;
      kept = [];
      held = 0;
    },

    append(events, bytes) {
      const each = bytes / Math.max(1, events.length);
      for (const event of events) {
        if (head !== OLDEST && compareCursors(event.cursor, head) <= 0) continue;
        kept.push({ event, bytes: each });
        held += each;
        head = event.cursor;
      }
      let gone = 0;
      while (kept.length - gone > limits.events || (held > limits.bytes && kept.length - gone > 1)) held -= kept[gone++]?.bytes ?? 0;
      if (gone === 0) return;
      base = kept[gone - 1]?.event.cursor ?? base;
      kept.splice(0, gone);
    },

    after(cursor) {
      const isOlder = base !== OLDEST && (cursor === OLDEST || compareCursors(cursor, base) < 0);
      if (isOlder) return undefined;
      if (cursor === OLDEST) return kept.map(({ event }) => event);
      // Most readers have all but the last few.
      let from = kept.length;
      while (from > 0 && compareCursors(kept[from - 1]?.event.cursor ?? '', cursor) > 0) from -= 1;
      return kept.slice(from).map(({ event }) => event);
    },
  };
}
