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
  const { values, lost } = await readAll(dependencies, at);
  if (lost !== undefined)
    throw new Error(`cannot read the context that tools share (${lost}): the store has lost it; send it again with a message`);
  return values;
}

/**
 * What a sub-agent gives back to its parent: the values as it leaves them, and what it has changed of those that it was given. Both are
 * stored where the parent reads, under their hashes, so that another attempt changes nothing. Null where the store has lost some of them.
 */
export async function handBackContext(
  { store, key }: TraceStore,
  { parent: { conversation, life }, given, now }: HandBack,
): Promise<HandedBack | null> {
  const both = await Promise.all([given, now].map((at) => readAll({ store, key }, at ?? undefined)));
  if (both.some(({ lost }) => lost !== undefined)) return null;
  const [before = {}, after = {}] = both.map(({ values }) => values);
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

/** `lost`: the first reference to what the store no longer has. */
async function readAll(
  { store, key }: TraceStore,
  at: AppContextRef | undefined,
): Promise<{ readonly values: JsonObject; readonly lost?: string }> {
  const refs: readonly ValuesRef[] = at ? [at, ...(at.changes ?? [])] : [];
  const texts = await Promise.all(refs.map(({ ref, origin }) => store.bodies.get({ ...key, ...origin }, ref)));
  const lost = refs.find((_, i) => texts[i] === undefined)?.ref;
  const all = texts.flatMap((text) => (text === undefined ? [] : [JSON.parse(text) as JsonObject]));
  const values = all.reduce<JsonObject>((before, change) => ({ ...before, ...change }), {});
  return { values: withoutNulls(values), ...(lost !== undefined && { lost }) };
}

function withoutNulls(values: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
