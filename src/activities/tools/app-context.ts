/** What an application shares with its tools (seed 003, Context): one body of JSON, which a sub-agent reads where its parent has it. */
import type { AppContextRef, ToolFinished, ValuesRef } from '../../conversation/activity-io/tool-effects.js';
import type { JsonObject } from '../../records/message.js';
import type { ConversationKey, Store } from '../../stores/store.js';

/** UTF-8 bytes of a change that travels in the tool's result too, so that healing has it. */
const HEALED_BYTES = 4 * 1024;

/** Empty where there is none. What the store has lost is an error: a tool that goes on without it could do harm. */
export async function readAppContext(store: Store, key: ConversationKey, at: AppContextRef | undefined): Promise<JsonObject> {
  if (!at) return {};
  const all = await Promise.all([at, ...(at.changes ?? [])].map((one) => readValues(store, key, one)));
  return withoutNulls(all.reduce((values, change) => ({ ...values, ...change }), {}));
}

/** The whole as `change` leaves it, and the change alone: others may have changed it meanwhile. A key that is null goes. */
export async function writeAppContext(
  store: Store,
  key: ConversationKey,
  { shared, on, change }: { readonly shared: JsonObject; readonly on: AppContextRef | undefined; readonly change: JsonObject },
): Promise<Required<Pick<ToolFinished, 'appContext' | 'contextChange'>>> {
  const put = (values: JsonObject): Promise<{ readonly ref: string }> => store.bodies.put(key, JSON.stringify(values));
  const [whole, part] = await Promise.all([put(withoutNulls({ ...shared, ...change })), put(change)]);
  const isShort = Buffer.byteLength(JSON.stringify(change)) <= HEALED_BYTES;
  return { appContext: { ref: whole.ref }, contextChange: { ref: part.ref, on: on ?? null, ...(isShort && { values: change }) } };
}

async function readValues(store: Store, key: ConversationKey, { ref, origin }: ValuesRef): Promise<JsonObject> {
  const text = await store.bodies.get({ ...key, ...origin }, ref);
  if (text === undefined)
    throw new Error(`cannot read the context that tools share (${ref}): the store has lost it; send it again with a message`);
  return JSON.parse(text) as JsonObject;
}

function withoutNulls(values: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
