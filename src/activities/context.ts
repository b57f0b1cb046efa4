/** What a model call sees: the entries of the context, in order, with every text at hand. */
import { log } from '@temporalio/activity';
import type { ConversationMessage, Entry } from '../conversation/message.js';
import { slotsOf, type SlotRange } from '../conversation/slots.js';
import { hasBodies, withBodies } from '../memory/bodies.js';
import type { ConversationKey } from '../stores/store.js';
import { countHeal } from '../telemetry/metrics.js';
import type { ActivityDependencies } from './index.js';

/** A gap is healed from history. What cannot be is named in its place, in words that the model can read. */
export async function loadContext(
  dependencies: ActivityDependencies,
  key: ConversationKey,
  ranges: readonly SlotRange[],
): Promise<ConversationMessage[]> {
  const slots = slotsOf(ranges);
  const entries = await readHealed(dependencies, key, slots);
  const messages = entries.map((entry, i) => entry?.message ?? placeholder(slots[i] ?? 0));
  const long = entries.flatMap((entry, i) => (entry && hasBodies(entry) ? [{ entry, i }] : []));
  await Promise.all(long.map(async ({ entry, i }) => (messages[i] = await withBodies(dependencies.store, key, entry))));
  return messages;
}

/** Entries as they are, after healing when one is missing. */
export async function readHealed(
  { store, heal }: ActivityDependencies,
  key: ConversationKey,
  slots: readonly number[],
): Promise<(Entry | undefined)[]> {
  const entries = await store.entries.read(key, slots);
  const missing = slots.filter((_, i) => !entries[i]);
  if (missing.length === 0 || !heal) return entries;
  log.warn('the store has lost traces: healing from history', { missing: missing.length });
  const healed = await heal(key);
  countHeal(healed);
  log.info('healed from history', { ...healed });
  return store.entries.read(key, slots);
}

function placeholder(slot: number): ConversationMessage {
  return { role: 'user', text: `[Message ${slot} of this conversation was lost by the store and could not be rebuilt from its history.]` };
}
