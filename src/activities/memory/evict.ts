/**
 * The `evict` step: what long-term memory has leaves the context, at a session's end or where it is trimmed; and what was not consolidated
 * in time goes to HISTORY as it is. Harmless when repeated. Traces are archived, never destroyed, so that what is pending can still be
 * consolidated from there.
 */
import { log } from '@temporalio/activity';
import type { Asked, Evicted, EvictInput } from '../../conversation/activity-io/memory-effects.js';
import { toConversationEntries } from '../../memory/consolidation/conversation-entries.js';
import { rawFallback, withSources, withTask } from '../../memory/consolidation/message-lines.js';
import { redactor } from '../../memory/documents/forgetting.js';
import { DocumentRefused, type ConversationKey, type Store } from '../../stores/store.js';
import { consolidationId } from '../../memory/consolidation/consolidate.js';
import type { ConversationDependencies } from '../dependencies.js';
import { canReadEpisodes } from '../tools/tools-of.js';
import { usableConfig } from '../usable-config.js';
import { readThere, trim } from './trim.js';

export async function evict(dependencies: ConversationDependencies, { session, move, what }: EvictInput): Promise<Evicted> {
  const { store, key, tools } = dependencies;
  const result = { life: key.life, session, finished: true };
  if (what.kind === 'trim') {
    const config = await usableConfig(dependencies, dependencies.identity);
    const shows = config && { limits: config.context, canRead: canReadEpisodes(config, tools) };
    const trimmed = await trim(store, key, { ...what, session, move }, shows);
    if (trimmed) log.info('consolidated turns left the prompt', { messages: trimmed.messages, tokens: trimmed.tokens });
    return { ...result, ...(trimmed && { trimmed }) };
  }
  const written = await Promise.all(what.unfinished.map((one) => writeFallback(store, key, one, what)));
  const fallbacks = written.flatMap(({ fallback }) => fallback ?? []);
  if (what.kind === 'session-end') await store.entries.archive(key, what.archive, move);
  return { ...result, finished: written.every((one) => one.finished), ...(fallbacks.length > 0 && { fallbacks }) };
}

/** `finished` when the summary is there already: it came between the end of waiting and this. */
async function writeFallback(
  store: Store,
  key: ConversationKey,
  { requestId, slots }: Asked,
  what: Exclude<EvictInput['what'], { kind: 'trim' }>,
): Promise<{ readonly finished: boolean; readonly fallback?: NonNullable<Evicted['fallbacks']>[number] }> {
  const entries = await readThere(store, key, slots);
  const redact = redactor(await store.documents.forgotten(key), key.scope);
  const ts = Date.now() / 1000;
  const raw = rawFallback(toConversationEntries(entries));
  const text = withSources(redact(what.kind === 'session-end' ? withTask(raw, what.task) : raw), entries, new Set());
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
