/**
 * Writes live events beside the conversation. The feed is for watchers, never the truth: a store that is away costs them
 * text on the screen and the conversation nothing.
 *
 * What comes while a write is under way goes with the next, neighbouring texts as one; what is left when the work is done goes with its
 * commit, and costs no extra write.
 */
import type { FeedEvent } from '../conversation/protocol/contract.js';
import type { JsonValue } from '../records/message.js';
import type { LiveEvent } from '../stores/store.js';
import type { TraceStore } from './dependencies.js';
import { orUndefinedAfter } from '../platform/promises.js';

export interface FeedWriter {
  /** With an `id` it is published once, also by another attempt. */
  publish(event: FeedEvent, id?: string): void;
  /**
   * The last call: what no write has taken yet, each with an id (`prefix` makes those that have none), in the order in which it came.
   * Resolves when the write that is under way has ended or is given up, after `limitMs` at the latest.
   */
  rest(prefix: string, limitMs?: number): Promise<LiveEvent[]>;
}

const MAX_WAITING = 2_000;

interface Waiting {
  readonly id?: string;
  readonly event: FeedEvent;
}

/** `lingerMs`: how long the first event may wait for others. 0: until what is at hand has run. */
export function createFeedWriter({ store, key }: TraceStore, lingerMs = 0): FeedWriter {
  let waiting: Waiting[] = [];
  let writing: Promise<void> | undefined;
  let soon: NodeJS.Timeout | undefined;
  let isClosed = false;

  const write = async (): Promise<void> => {
    while (waiting.length > 0 && !isClosed) {
      const batch = mergeTexts(waiting);
      waiting = [];
      await store.feed.publish(key, batch.map(toLiveEvent)).catch(() => undefined);
    }
    writing = undefined;
  };

  return {
    publish(event, id) {
      if (isClosed || waiting.length >= MAX_WAITING) return;
      waiting.push({ event, ...(id !== undefined && { id }) });
      if (writing) return;
      soon ??= setTimeout(() => {
        soon = undefined;
        writing ??= write();
      }, lingerMs);
    },
    async rest(prefix, limitMs = 1_000) {
      isClosed = true;
      clearTimeout(soon);
      if (writing) await orUndefinedAfter(limitMs, writing);
      return mergeTexts(waiting).map((one, i) => ({ id: `${prefix}/${i}`, ...toLiveEvent(one) }));
    },
  };
}

function mergeTexts(events: readonly Waiting[]): Waiting[] {
  const merged: Waiting[] = [];
  for (const one of events) {
    const { event } = one;
    const last = merged[merged.length - 1]?.event;
    const same = (event.kind === 'text' || event.kind === 'thinking') && last?.kind === event.kind && last.attempt === event.attempt;
    if (same) merged[merged.length - 1] = { event: { ...last, text: last.text + event.text } };
    else merged.push(one);
  }
  return merged;
}

function toLiveEvent({ id, event }: Waiting): LiveEvent {
  return { ...(id !== undefined && { id }), event: event as unknown as JsonValue };
}
