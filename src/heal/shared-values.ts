/** Values that tools share (seed 003, Context), put together again from what tools have changed. */
import type { JsonObject } from '../records/message.js';
import type { AppContextRef, ToolFinished, ValuesRef } from '../conversation/activity-io/tool-effects.js';
import type { ConversationKey, Store } from '../stores/store.js';

export interface ChangedValues {
  readonly change: NonNullable<ToolFinished['contextChange']>;
  /** As they were after it. */
  readonly whole: AppContextRef | undefined;
}

/** Where one of the values that it stands on is lost, or the change was too long to travel, it stays lost. */
export async function healValues(store: Store, key: ConversationKey, { change, whole }: ChangedValues): Promise<void> {
  const { values, on } = change;
  if (values === undefined) return;
  await store.bodies.put(key, JSON.stringify(values));
  const before = await Promise.all([...(on ? [on] : []), ...(on?.changes ?? [])].map((at) => read(store, key, at)));
  if (!whole || before.includes(undefined)) return;
  // As tools see them, and then as this one leaves them: in that order, since a key that went and came again stands last.
  const shared = withoutNulls(before.reduce<JsonObject>((all, one) => ({ ...all, ...one }), {}));
  await store.bodies.put(key, JSON.stringify(withoutNulls({ ...shared, ...values })));
}

async function read(store: Store, key: ConversationKey, { ref, origin }: ValuesRef): Promise<JsonObject | undefined> {
  const text = await store.bodies.get({ ...key, ...origin }, ref);
  return text === undefined ? undefined : (JSON.parse(text) as JsonObject);
}

function withoutNulls(values: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
