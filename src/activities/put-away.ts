/**
 * The `put-away` step: messages leave the context for good, at a session's end or when the window is full. Local, and harmless when
 * repeated. Traces are archived, never destroyed, so that what is owed can still be consolidated from there.
 */
import { log } from '@temporalio/activity';
import type { PutAway, PutAwayInput } from '../conversation/memory-effects.js';
import type { Entry } from '../conversation/message.js';
import { slotsOf, type SlotRange } from '../conversation/slots.js';
import { toConversationEntries } from '../memory/consolidation/conversation-entries.js';
import { rawFallback } from '../memory/consolidation/raw-fallback.js';
import { recapOf } from '../memory/consolidation/recap.js';
import { shownTokensOf } from '../memory/tokens.js';
import { redactor } from '../memory/documents/forgetting.js';
import { DocumentRefused, type ConversationKey, type Store } from '../stores/store.js';
import { consolidationId } from './consolidation-id.js';
import { keyOf } from './key.js';

export async function putAway(
  store: Store,
  { identity, session, archive, leaving, unfinished, recapSince }: PutAwayInput,
): Promise<PutAway> {
  const key = keyOf(identity);
  const finished = await Promise.all(unfinished.map((one) => writeFallback(store, key, one)));
  const result = { life: identity.life, session, finished: finished.every((done) => done), tokens: 0 };
  const entries = recapSince === null ? [] : await readThere(store, key, archive);
  await store.entries.archive(key, archive);
  if (recapSince === null) return result;
  const redact = redactor(await store.documents.forgotten(key), key.scope);
  const text = redact(recapOf(toConversationEntries(entries), { createdAt: new Date(recapSince).toISOString() }));
  const gone = new Set(slotsOf(leaving));
  const tokens = shownTokensOf(entries.filter(({ slot }) => gone.has(slot)).map(({ message }) => message));
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
  const redact = redactor(await store.documents.forgotten(key), key.scope);
  const entry = { id: consolidationId(key, requestId), kind: 'raw-fallback', ts: Date.now() / 1000 } as const;
  try {
    return (
      (await store.documents.appendHistory(key, { ...entry, text: redact(rawFallback(toConversationEntries(entries))) })) === 'superseded'
    );
  } catch (error) {
    if (!(error instanceof DocumentRefused)) throw error;
    // A person must see to the file; the conversation does not wait for that. What is owed is in the memory workflow, and in the archive.
    log.warn('the raw fallback could not be written', { reason: error.message });
    return false;
  }
}

async function readThere(store: Store, key: ConversationKey, slots: readonly SlotRange[]): Promise<Entry[]> {
  const entries = await store.entries.read(key, slotsOf(slots));
  return entries.flatMap((entry) => entry ?? []);
}
