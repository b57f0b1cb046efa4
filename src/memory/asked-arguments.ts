/** What a call that waits for a person would run with: it stands in the store, with the answer that asked for it. */
import type { JsonValue } from '../records/message.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { inputOf } from './bodies.js';

/** Undefined where the store does not have it. */
export async function askedArguments(
  store: Store,
  key: ConversationKey,
  { callId, askedIn }: { readonly callId: string; readonly askedIn: number },
): Promise<JsonValue | undefined> {
  const [entry] = await store.entries.read(key, [askedIn]);
  const blocks = entry?.message.role === 'assistant' ? entry.message.blocks : [];
  const block = blocks.find((one) => one.kind === 'tool-call' && one.callId === callId);
  return block?.kind === 'tool-call' ? inputOf(store, key, block) : undefined;
}
