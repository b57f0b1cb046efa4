/**
 * Writes live events beside the conversation. The feed is for watchers, never the truth: a store that is away costs them
 * text on the screen and the conversation nothing.
 *
 * The first event goes out at once; what comes while a write is under way goes with the next, neighbouring texts as one.
 */
import type { FeedEvent } from '../conversation/protocol/contract.js';
import type { JsonValue } from '../records/message.js';
import type { ConversationKey, Feed, LiveEvent } from '../stores/store.js';

export interface FeedWriter {
  /** With an `id` it is published once, also by another attempt. */
  publish(event: FeedEvent, id?: string): void;
  /** Resolves when all is written or given up, after `limitMs` at the latest. */
  drain(limitMs?: number): Promise<void>;
}

const MAX_WAITING = 2_000;

interface Waiting {
  readonly id?: string;
  readonly event: FeedEvent;
}

export function createFeedWriter(feed: Feed, key: ConversationKey): FeedWriter {
  let waiting: Waiting[] = [];
  let writing: Promise<void> | undefined;

  const write = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = mergeTexts(waiting);
      waiting = [];
      await feed.publish(key, batch as readonly LiveEvent[]).catch(() => undefined);
    }
    writing = undefined;
  };

  return {
    publish(event, id) {
      if (waiting.length < MAX_WAITING) waiting.push({ event, ...(id !== undefined && { id }) });
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

export function mergeTexts(events: readonly Waiting[]): { readonly id?: string; readonly event: JsonValue }[] {
  const merged: Waiting[] = [];
  for (const one of events) {
    const { event } = one;
    const last = merged[merged.length - 1]?.event;
    const same = (event.kind === 'text' || event.kind === 'thinking') && last?.kind === event.kind && last.attempt === event.attempt;
    if (same) merged[merged.length - 1] = { event: { ...last, text: last.text + event.text } };
    else merged.push(one);
  }
  return merged as readonly unknown[] as { readonly id?: string; readonly event: JsonValue }[];
}
