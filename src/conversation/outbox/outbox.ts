/** What a conversation still owes to its store, as state (recording.ts). */
import type { OwedFeedEvent, Settlement } from '../activity-io/effects.js';
import type { Entry } from '../../records/message.js';
import type { QueuedMessage } from '../state/queue-state.js';

export interface Outbox {
  /** Messages that turns have taken. */
  readonly messages: readonly QueuedMessage[];
  readonly settle: readonly Settlement[];
  readonly feed: readonly OwedFeedEvent[];
  /** Of results that the store did not take when they were made. */
  readonly entries: readonly Entry[];
}

export const EMPTY_OUTBOX: Outbox = { messages: [], settle: [], feed: [], entries: [] };

/** Whether the store has everything that was decided so far; what a running step carries is not there yet. */
export function owesNothingToStore({ outbox }: { readonly outbox: Outbox }): boolean {
  return outbox.messages.length + outbox.settle.length + outbox.entries.length + outbox.feed.length === 0;
}
