/** What became of older turns: summaries, facts, what went to HISTORY as it was, and what is archived. */
import { consolidationId } from '../memory/documents/search-history.js';
import { redactor, tombstoneFor } from '../memory/documents/forgetting.js';
import { learnFacts, factsBatch } from '../memory/facts.js';
import { DocumentRefused, type ConversationKey, type Store, type ScopeKey } from '../stores/store.js';
import type { FoldedFacts, Remainder } from './fold.js';
import { memoryWorkflowId } from '../conversation/protocol/memory-contract.js';
import type { Execution, HistoryService } from './fetch-runs.js';
import { readActivities } from './read-activities.js';

/** Answers with what could not be written, in words. */
export async function restoreMemory(
  store: Store,
  key: ConversationKey,
  { episodes, facts, undone, fallbacks, archived, active, move, parts }: Remainder,
  rememberedBy: (scope: string) => Promise<readonly RememberedWrite[]>,
): Promise<string[]> {
  for (const text of parts) await store.bodies.put(key, text);
  // What is to stay forgotten must be there before anything could bring it back.
  if (facts.length + fallbacks.length > 0) await restoreForgotten(store, key, await rememberedBy(key.scope));
  for (const episode of episodes) await store.episodes.add(key, episode);
  for (const learnt of facts) await learnAgain(store, key, learnt);
  await forgetUndone(store, key, undone);
  const problems = await appendFallbacks(store, key, fallbacks);
  if (archived.length > 0) await store.entries.archive(key, archived, move);
  if (active.length > 0) await store.entries.restore(key, active, move);
  return problems;
}

/** As one batch again: where it is there already, nothing changes. */
async function learnAgain(store: Store, key: ConversationKey, { epoch, turns, tools, facts, replaced }: FoldedFacts): Promise<void> {
  const learnt = facts.map(({ id: _, ...fact }) => fact);
  const source = { conversation: key.conversation, turn_ids: turns, ...(tools && { tools }) };
  await learnFacts(store, key, factsBatch(key, epoch), learnt, source, replaced);
}

/** An old copy of the store may still have what was taken back since. */
async function forgetUndone(store: Store, key: ConversationKey, undone: Remainder['undone']): Promise<void> {
  for (const { epoch, episode } of undone) {
    await store.facts.undo(key, factsBatch(key, epoch));
    await store.episodes.remove(key, episode);
  }
}

async function appendFallbacks(store: Store, key: ConversationKey, fallbacks: Remainder['fallbacks']): Promise<string[]> {
  if (fallbacks.length === 0) return [];
  const redact = redactor(await store.documents.forgotten(key), key.scope);
  const problems: string[] = [];
  for (const { requestId, ts, text } of fallbacks) {
    try {
      await store.documents.appendHistory(key, { id: consolidationId(key, requestId), kind: 'raw-fallback', ts, text: redact(text) });
    } catch (error) {
      if (!(error instanceof DocumentRefused)) throw error;
      problems.push(`what was not summarized could not be written to HISTORY: ${error.message}`);
    }
  }
  return problems;
}

/**
 * What was written to a scope's memory, as the history of its one writer has it: the inputs of its activities that completed, oldest first.
 */
export interface RememberedWrite {
  readonly activity: 'remember' | 'forget' | 'review';
  /** As the activity was given it, and what it answered. */
  readonly input: unknown;
  readonly result: unknown;
  /** Epoch milliseconds. */
  readonly at: number;
}

const WRITES: readonly string[] = ['remember', 'forget', 'review'] satisfies RememberedWrite['activity'][];
/** gRPC's status. */
const NOT_FOUND = 5;

/** By the workflows that may keep it: the one of the scope, and the one for this task queue beside it. */
export function createRememberedBy(
  service: HistoryService,
  { namespace, taskQueue }: { readonly namespace: string; readonly taskQueue: string },
): (scope: string) => Promise<RememberedWrite[]> {
  return async (scope) => {
    const id = memoryWorkflowId(scope);
    const both = [id, `${id}:${taskQueue}`].map((workflowId) => readRemembered(service, { namespace, workflowId }));
    return (await Promise.all(both)).flat().sort((a, b) => a.at - b.at);
  };
}

/** What is to stay forgotten must be there before anything else is brought back. */
async function restoreForgotten(store: Store, key: ScopeKey, writes: readonly RememberedWrite[]): Promise<void> {
  for (const { activity, input } of writes) {
    if (activity === 'forget') await store.documents.forget(key, tombstoneFor(input as Parameters<typeof tombstoneFor>[0]));
  }
}

/** Nothing where there is no such workflow, or its history is gone. */
async function readRemembered(service: HistoryService, execution: Execution): Promise<RememberedWrite[]> {
  try {
    const writes: RememberedWrite[] = [];
    for await (const { activities } of (await readActivities(service, execution, WRITES)).pages) {
      for (const { kind, name, input, output, at } of activities) {
        if (kind === 'completed') writes.push({ activity: name as RememberedWrite['activity'], input, result: output, at });
      }
    }
    return writes;
  } catch (error) {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === NOT_FOUND) return [];
    throw error;
  }
}
