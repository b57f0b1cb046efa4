/** The one door to conversations: start them, talk to them, watch them, read them. */
import type { FeedEvent, Message, QueuedEvent, ResetResult, StartOptions, Status, TurnResult } from './conversation/contract.js';
import type { Entry } from './conversation/message.js';

export interface Started {
  readonly id: string;
  /** True when a conversation of that id was already running: nothing was started, `options` were not used. */
  readonly attached: boolean;
}

export interface WatchEvent {
  /** Hand it to the next `watch` to go on where this one ended. */
  readonly cursor: string;
  readonly event: FeedEvent;
}

export interface PerduraClient {
  readonly namespace: string;
  readonly taskQueue: string;
  /** Starts a conversation, or attaches to the running one of that id. Without an id one is made. */
  start(id: string | undefined, options?: StartOptions): Promise<Started>;
  /** Sends a message and waits for the end of its turn, over hand-overs, worker deaths and lost connections. `start` starts the conversation in the same round trip. */
  send(id: string, message: string | Message, options?: { start?: StartOptions; signal?: AbortSignal }): Promise<TurnResult>;
  /** Waits for the result of a turn that was sent before. */
  turn(id: string, turnId: string, options?: { signal?: AbortSignal }): Promise<TurnResult>;
  /** Sends a message and does not wait (a signal). Answers its id. */
  message(id: string, message: string | Message): Promise<{ messageId: string }>;
  interrupt(id: string, reason?: string): Promise<void>;
  reset(id: string): Promise<ResetResult>;
  /** No new messages; what is queued is run out, then the workflow completes. */
  closeConversation(id: string): Promise<void>;
  status(id: string): Promise<Status>;
  queue(id: string): Promise<QueuedEvent[]>;
  /** Live events after `after` (default: from now on), until `signal` aborts. A retried attempt begins with `reset`. */
  watch(id: string, options?: { after?: string; signal?: AbortSignal }): AsyncIterable<WatchEvent>;
  /** Everything recorded, oldest first, with long texts at hand. */
  history(id: string): Promise<Entry[]>;
  /** Ids of conversations, latest started first. */
  list(options?: {
    limit?: number;
  }): Promise<{ id: string; running: boolean; agent: string | null; title: string | null; startedAt: Date }[]>;
  close(): Promise<void>;
}
