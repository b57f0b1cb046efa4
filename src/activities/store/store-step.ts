/** The `store-step`: what the store is owed and no model call will carry, and queued messages that only the store has any more. */
import type { QueuedAgain, StoreStepInput, StoreStepResult } from '../../conversation/activity-io/effects.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import type { ActivityDependencies } from '../dependencies.js';
import { keyOf } from '../key.js';
import { writeOwed } from './write-owed.js';

export async function storeStep(dependencies: ActivityDependencies, input: StoreStepInput): Promise<StoreStepResult> {
  const { store, processors } = dependencies;
  const { identity, write, rehydrate, part, asksAttributes } = input;
  const key = keyOf(identity);
  const [{ written }, rehydrated, stored, attributes] = await Promise.all([
    writeOwed(store, key, write, { processors: processors?.input }),
    readAgain(store, key, rehydrate),
    part && store.bodies.put(key, part.text),
    asksAttributes ? knownAttributes(dependencies) : undefined,
  ]);
  return {
    life: identity.life,
    written: { ...written, ...(attributes && { attributes }) },
    ...(rehydrated.length > 0 && { rehydrated }),
    ...(stored && { part: stored.ref }),
  };
}

export async function knownAttributes({
  hasSearchAttributes,
}: Pick<ActivityDependencies, 'hasSearchAttributes'>): Promise<'registered' | 'missing'> {
  return (await hasSearchAttributes?.()) ? 'registered' : 'missing';
}

async function readAgain(store: Store, key: ConversationKey, slots: readonly number[]): Promise<QueuedAgain[]> {
  if (slots.length === 0) return [];
  const entries = await store.entries.read(key, slots);
  return entries.map((entry, i) => {
    const slot = slots[i] ?? 0;
    if (entry?.message.role !== 'user' || entry.messageId === undefined) {
      return { slot, messageId: '', turn: '', session: 0, at: 0, bytes: 0, lost: true };
    }
    const { messageId, turn, session, ts, message } = entry;
    const bytes = typeof message.text === 'string' ? Buffer.byteLength(message.text) : message.text.bytes;
    return { slot, messageId, turn, session, at: Math.round(ts * 1000), bytes };
  });
}
