/** What an application shares with its tools (seed 003, Context): one body of JSON, which a sub-agent reads where its parent has it. */
import type { AppContextRef } from '../conversation/tool-effects.js';
import type { JsonObject } from '../conversation/message.js';
import type { ConversationKey, Store } from '../stores/store.js';

/** Empty where there is none. What the store has lost is an error: a tool that goes on without it could do harm. */
export async function readAppContext(store: Store, key: ConversationKey, at: AppContextRef | undefined): Promise<JsonObject> {
  if (!at) return {};
  const text = await store.bodies.get({ ...key, ...at.origin }, at.ref);
  if (text === undefined)
    throw new Error(`cannot read the context that tools share (${at.ref}): the store has lost it; send it again with a message`);
  return JSON.parse(text) as JsonObject;
}

/** A key that is null goes. */
export async function writeAppContext(store: Store, key: ConversationKey, values: JsonObject): Promise<AppContextRef> {
  const kept = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
  const { ref } = await store.bodies.put(key, JSON.stringify(kept));
  return { ref };
}
