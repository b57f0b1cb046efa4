/** What a model call sees: the entries of the context, in order, with every text at hand. */
import { ApplicationFailure } from '@temporalio/common';
import type { ConversationMessage } from '../conversation/message.js';
import { slotsOf, type SlotRange } from '../conversation/slots.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { withBodies } from '../memory/bodies.js';

export async function loadContext(store: Store, key: ConversationKey, ranges: readonly SlotRange[]): Promise<ConversationMessage[]> {
  const slots = slotsOf(ranges);
  const entries = await store.entries.read(key, slots);
  const found = entries.flatMap((entry) => (entry ? [entry] : []));
  if (found.length < slots.length)
    throw tracesLost(
      key,
      slots.filter((_, i) => !entries[i]),
    );
  return Promise.all(found.map((entry) => withBodies(store, key, entry)));
}

export function tracesLost({ conversation }: ConversationKey, slots: readonly number[]): ApplicationFailure {
  const shown = slots.slice(0, 10).join(', ');
  return ApplicationFailure.nonRetryable(
    `the store has lost ${slots.length} of the messages of ${conversation} (slots ${shown}${slots.length > 10 ? ', …' : ''}); restore it, or start a new session with /new`,
    'traces-lost',
  );
}
