/** Observers: they get what happens in the conversations of a worker. */
import type { ConversationEvent } from '../conversation/event.js';
import type { Notification, StateChange } from '../conversation/views/observation.js';

/** Whose event it is, and what came of it. */
export interface Observed {
  readonly namespace: string;
  readonly conversation: string;
  readonly runId: string;
  /** The seed's notifications that follow from this event: dispatched, reducer executed, state changed, compaction, truncation, step. */
  readonly notifications: readonly Notification[];
  readonly change: StateChange | null;
}

/**
 * Told what happens in the conversations that this worker runs, as it happens, one after the other. Nothing waits for it, what it
 * throws is logged, and one that hangs loses the oldest of what it has not taken. When a worker dies an event may come twice or
 * not at all: the record is the history, this is news.
 */
export type Observer = (event: ConversationEvent, of: Observed) => void | Promise<void>;
