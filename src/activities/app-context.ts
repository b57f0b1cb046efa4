/** Values that an application shares with its tools (seed 003, Context): what a tool reads and changes, and a sub-agent gives back. */
import type { AppContextRef, ValuesRef, HandBack, HandedBack } from '../conversation/outbox/writes.js';
import type { ToolFinished } from '../conversation/turn/model-step-effects.js';
import type { JsonObject, JsonValue } from '../records/message.js';
import type { TraceStore } from './dependencies.js';
import { retryWrite } from './effect.js';

/** UTF-8 bytes of a change that travels in the tool's result too, so that healing has it. */
const HEALED_BYTES = 4 * 1024;

/**
 * What an application shares with its tools (seed 003, Context): one body of JSON, which a sub-agent reads where its parent has it. Empty
 * where there is none. What the store has lost is an error: a tool that goes on without it could do harm.
 */
export async function readAppContext(dependencies: TraceStore, at: AppContextRef | undefined): Promise<JsonObject> {
  if (!at) return {};
  const all = await Promise.all([at, ...(at.changes ?? [])].map((one) => readValues(dependencies, one)));
  const lost = all.indexOf(undefined);
  if (lost >= 0) {
    const { ref } = [at, ...(at.changes ?? [])][lost] ?? at;
    throw new Error(`cannot read the context that tools share (${ref}): the store has lost it; send it again with a message`);
  }
  return merged(all);
}

/**
 * What a sub-agent gives back to its parent: the values as it leaves them, and what it has changed of those that it was given. Both are
 * stored where the parent reads, under their hashes, so that another attempt changes nothing. Null where the store has lost some of them.
 */
export async function handBackContext(
  { store, key }: TraceStore,
  { parent: { conversation, life }, given, now }: HandBack,
): Promise<HandedBack | null> {
  const read = async (at: AppContextRef | null): Promise<JsonObject | undefined> => {
    const all = at ? await Promise.all([at, ...(at.changes ?? [])].map((one) => readValues({ store, key }, one))) : [];
    return all.includes(undefined) ? undefined : merged(all);
  };
  const [before, after] = await Promise.all([read(given), read(now)]);
  if (!before || !after) return null;
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  const changed = Object.entries(after).filter(
    ([name, value]) => !Object.hasOwn(before, name) || JSON.stringify(before[name]) !== JSON.stringify(value),
  );
  const change = Object.fromEntries([...removed.map((name): [string, JsonValue] => [name, null]), ...changed]);
  const put = (values: JsonObject): Promise<{ readonly ref: string }> =>
    retryWrite(() => store.bodies.put({ ...key, conversation, life }, JSON.stringify(values)));
  const [whole, part] = await Promise.all([put(after), put(change)]);
  return { ref: whole.ref, change: part.ref };
}

/** The whole as `change` leaves it, and the change alone: others may have changed it meanwhile. A key that is null goes. */
export async function writeAppContext(
  { store, key }: TraceStore,
  { shared, on, change }: { readonly shared: JsonObject; readonly on: AppContextRef | undefined; readonly change: JsonObject },
): Promise<Required<Pick<ToolFinished, 'appContext' | 'contextChange'>>> {
  const put = (values: JsonObject): Promise<{ readonly ref: string }> => store.bodies.put(key, JSON.stringify(values));
  const [whole, part] = await Promise.all([put(withoutNulls({ ...shared, ...change })), put(change)]);
  const isShort = Buffer.byteLength(JSON.stringify(change)) <= HEALED_BYTES;
  return { appContext: { ref: whole.ref }, contextChange: { ref: part.ref, on: on ?? null, ...(isShort && { values: change }) } };
}

async function readValues({ store, key }: TraceStore, { ref, origin }: ValuesRef): Promise<JsonObject | undefined> {
  const text = await store.bodies.get({ ...key, ...origin }, ref);
  return text === undefined ? undefined : (JSON.parse(text) as JsonObject);
}

function merged(all: readonly (JsonObject | undefined)[]): JsonObject {
  return withoutNulls(all.reduce<JsonObject>((values, change) => ({ ...values, ...change }), {}));
}

function withoutNulls(values: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
