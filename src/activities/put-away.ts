/**
 * The `put-away` step: messages leave the context for good, at a session's end or when the window is full. Local, and harmless when
 * repeated. Traces are archived, never destroyed, so that what is owed can still be consolidated from there.
 */
import type { PutAway, PutAwayInput } from '../conversation/effects.js';
import type { Entry } from '../conversation/message.js';
import { slotsOf, type SlotRange } from '../conversation/slots.js';
import { toConversationEntries } from '../memory/consolidation/conversation-entries.js';
import { rawFallback } from '../memory/consolidation/raw-fallback.js';
import { recapOf } from '../memory/consolidation/recap.js';
import { tokensOf } from '../memory/tokens.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { consolidationId } from './consolidation-id.js';
import { keyOf } from './key.js';

export async function putAway(store: Store, { identity, session, archive, unfinished, recapSince }: PutAwayInput): Promise<PutAway> {
  const key = keyOf(identity);
  const finished = await Promise.all(unfinished.map((one) => writeFallback(store, key, one)));
  const result = { life: identity.life, session, finished: finished.every((done) => done), tokens: 0 };
  const entries = recapSince === null ? [] : await readThere(store, key, archive);
  await store.entries.archive(key, archive);
  if (recapSince === null) return result;
  const text = recapOf(toConversationEntries(entries), { createdAt: new Date(recapSince).toISOString() });
  const tokens = tokensOf(entries.map(({ message }) => message));
  if (text === '') return { ...result, tokens };
  const { ref } = await store.bodies.put(key, text);
  return { ...result, tokens, recap: { ref, text } };
}

/** True when the summary is there already: it came between the end of waiting and this. */
async function writeFallback(
  store: Store,
  key: ConversationKey,
  { requestId, slots }: PutAwayInput['unfinished'][number],
): Promise<boolean> {
  const entries = await readThere(store, key, slots);
  const text = rawFallback(toConversationEntries(entries));
  const written = await store.documents.appendHistory(key, {
    id: consolidationId(key, requestId),
    kind: 'raw-fallback',
    ts: Date.now() / 1000,
    text,
  });
  return written === 'superseded';
}

async function readThere(store: Store, key: ConversationKey, slots: readonly SlotRange[]): Promise<Entry[]> {
  const entries = await store.entries.read(key, slotsOf(slots));
  return entries.flatMap((entry) => entry ?? []);
}
