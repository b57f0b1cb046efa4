import type { Recalled, RecallInput } from '../conversation/effects.js';
import type { Store } from '../stores/store.js';
import { keyOf } from './key.js';

/** What the assistant said in one entry; empty when the store has lost it. */
export async function recall(store: Store, { identity, slot }: RecallInput): Promise<Recalled> {
  const [entry] = await store.entries.read(keyOf(identity), [slot]);
  if (entry?.message.role !== 'assistant') return { text: '' };
  const texts = entry.message.blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : []));
  const [only] = texts;
  if (texts.length === 1 && only !== undefined) return { text: only };
  return { text: texts.map((text) => (typeof text === 'string' ? text : `${text.preview}…`)).join('\n\n') };
}
