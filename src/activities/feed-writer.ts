/**
 * Writes live events beside the conversation. The feed is for watchers, never the truth: a store that is away costs them
 * text on the screen and the conversation nothing.
 *
 * The first event goes out at once; what comes while a write is under way goes with the next, neighbouring texts as one.
 */
import type { FeedEvent } from '../conversation/contract.js';
import type { JsonValue } from '../conversation/message.js';
import type { ConversationKey, Feed } from '../stores/store.js';

export interface FeedWriter {
  publish(event: FeedEvent): void;
  /** Resolves when all is written or given up, after `limitMs` at the latest. */
  drain(limitMs?: number): Promise<void>;
}

const MOST_WAITING = 2_000;

export function createFeedWriter(feed: Feed, key: ConversationKey): FeedWriter {
  let waiting: FeedEvent[] = [];
  let writing: Promise<void> | undefined;

  const write = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = mergeTexts(waiting);
      waiting = [];
      await feed.publish(key, batch as unknown as JsonValue[]).catch(() => undefined);
    }
    writing = undefined;
  };

  return {
    publish(event) {
      if (waiting.length < MOST_WAITING) waiting.push(event);
      writing ??= write();
    },
    async drain(limitMs = 1_000) {
      if (!writing) return;
      let timer: NodeJS.Timeout | undefined;
      const limit = new Promise<void>((resolve) => (timer = setTimeout(resolve, limitMs)));
      await Promise.race([writing, limit]);
      clearTimeout(timer);
    },
  };
}

export function mergeTexts(events: readonly FeedEvent[]): FeedEvent[] {
  const merged: FeedEvent[] = [];
  for (const event of events) {
    const last = merged[merged.length - 1];
    const same = (event.kind === 'text' || event.kind === 'thinking') && last?.kind === event.kind && last.attempt === event.attempt;
    if (same) merged[merged.length - 1] = { ...last, text: last.text + event.text };
    else merged.push(event);
  }
  return merged;
}
