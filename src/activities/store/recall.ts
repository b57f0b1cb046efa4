import { answerIn } from '../../records/answer.js';
import type { Recalled, RecallInput } from '../../conversation/activity-io/effects.js';
import type { Store } from '../../stores/store.js';
import { keyOf } from '../key.js';

/** What the assistant said in one entry. */
export async function recall(store: Store, { identity, slot }: RecallInput): Promise<Recalled> {
  const [entry] = await store.entries.read(keyOf(identity), [slot]);
  if (!entry) return null;
  return (entry.message.role === 'assistant' ? answerIn(entry.message.blocks) : undefined) ?? { text: '' };
}
