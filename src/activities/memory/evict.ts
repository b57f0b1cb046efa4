/**
 * The `evict` step: messages leave the context for good, at a session's end or when the window is full. Harmless when repeated. Traces are archived, never destroyed, so that what is pending can still be consolidated from there.
 */
import { log } from '@temporalio/activity';
import type { Evicted, EvictInput } from '../../conversation/activity-io/memory-effects.js';
import type { Entry } from '../../records/message.js';
import { slotsOf, type SlotRange } from '../../records/slots.js';
import { toConversationEntries } from '../../memory/consolidation/conversation-entries.js';
import { rawFallback, recapOf, withSources } from '../../memory/consolidation/message-lines.js';
import { shownTokensOf } from '../../memory/tokens.js';
import { redactor } from '../../memory/documents/forgetting.js';
import { DocumentRefused, type ConversationKey, type Store } from '../../stores/store.js';
import { consolidationId } from '../../memory/consolidation/consolidate.js';
import { keyOf } from '../key.js';

export async function evict(
  store: Store,
  { identity, session, move, archive, leaving, unfinished, recapSince }: EvictInput,
): Promise<Evicted> {
  const key = keyOf(identity);
  const written = await Promise.all(unfinished.map((one) => writeFallback(store, key, one)));
  const fallbacks = written.flatMap(({ fallback }) => fallback ?? []);
  const finished = written.every((one) => one.finished);
  const result = { life: identity.life, session, finished, tokens: 0, ...(fallbacks.length > 0 && { fallbacks }) };
  const entries = recapSince === null ? [] : await readThere(store, key, archive);
  await store.entries.archive(key, archive, move);
  if (recapSince === null) return result;
  const redact = redactor(await store.documents.forgotten(key), key.scope);
  const text = redact(recapOf(toConversationEntries(entries), { createdAt: new Date(recapSince).toISOString() }));
  const gone = new Set(slotsOf(leaving));
  const tokens = shownTokensOf(entries.filter(({ slot }) => gone.has(slot)).map(({ message }) => message));
  if (text === '') return { ...result, tokens };
  const { ref } = await store.bodies.put(key, text);
  return { ...result, tokens, recap: { ref, text } };
}

/** `finished` when the summary is there already: it came between the end of waiting and this. */
async function writeFallback(
  store: Store,
  key: ConversationKey,
  { requestId, slots }: EvictInput['unfinished'][number],
): Promise<{ readonly finished: boolean; readonly fallback?: NonNullable<Evicted['fallbacks']>[number] }> {
  const entries = await readThere(store, key, slots);
  const redact = redactor(await store.documents.forgotten(key), key.scope);
  const ts = Date.now() / 1000;
  const text = withSources(redact(rawFallback(toConversationEntries(entries))), entries, new Set());
  try {
    const entry = { id: consolidationId(key, requestId), kind: 'raw-fallback', ts, text } as const;
    const how = await store.documents.appendHistory(key, entry);
    return how === 'superseded' ? { finished: true } : { finished: false, fallback: { requestId, ts, text } };
  } catch (error) {
    if (!(error instanceof DocumentRefused)) throw error;
    // A person must see to the file; the conversation does not wait for that. What is pending is in the memory workflow, and in the archive.
    log.warn('the raw fallback could not be written', { reason: error.message });
    return { finished: false };
  }
}

async function readThere(store: Store, key: ConversationKey, slots: readonly SlotRange[]): Promise<Entry[]> {
  const entries = await store.entries.read(key, slotsOf(slots));
  return entries.flatMap((entry) => entry ?? []);
}
