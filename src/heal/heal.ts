/**
 * Heal from history (design section 2): what a store has lost is rebuilt from the workflow's own event history and written
 * again. Writing is idempotent, so healing may run beside the conversation, twice, or be cut off.
 */
import pLimit from 'p-limit';
import type { WorkflowService } from '@temporalio/client';
import { rebuild, type RebuiltMemory } from '../conversation/rebuild.js';
import { userEntry } from '../conversation/entries.js';
import type { Entry } from '../conversation/message.js';
import type { SlotRange } from '../conversation/slots.js';
import { processInput } from '../memory/process-input.js';
import type { InputProcessor } from '../memory/processors.js';
import { factsBatch } from '../memory/facts-batch.js';
import { learnFacts } from '../memory/learn-facts.js';
import { sourcesIn } from '../conversation/media.js';
import { mediaToRefs, TEXT_INLINE, toBody } from '../memory/bodies.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { fetchRuns } from './fetch-runs.js';
import { restoreForgotten, type RememberedWrite } from './remembered.js';
import { replayRuns, type WorkflowCode } from './replay-runs.js';

export interface Healed {
  /** Runs of the conversation that history still has, and how many events of the conversation they told. */
  readonly runs: number;
  readonly events: number;
  /** Entries that history knows of, those that were missing, and those that are back. */
  readonly known: number;
  readonly missing: number;
  readonly restored: number;
  /** Bodies that were only references and are gone: named in their place. */
  readonly lostBodies: readonly string[];
  /** False when earlier runs have passed their retention. */
  readonly complete: boolean;
  readonly problems: readonly string[];
}

export interface HealDependencies {
  readonly service: Pick<WorkflowService, 'getWorkflowExecutionHistory'>;
  readonly code: WorkflowCode;
  readonly store: Store;
  /** Those of `record`: what they removed must not come back. */
  readonly processors?: readonly InputProcessor[];
  /** What history says was written to the scope's memory: forgotten facts must not come back. */
  readonly rememberedBy: (scope: string) => Promise<readonly RememberedWrite[]>;
}

const WRITES_AT_ONCE = 32;

export async function heal({ service, code, store, processors, rememberedBy }: HealDependencies, key: ConversationKey): Promise<Healed> {
  const { histories, complete } = await fetchRuns(service, { namespace: key.namespace, workflowId: key.conversation });
  const { runs, problems } = await replayRuns(code, key.conversation, histories);
  const entries = new Map<number, Entry>();
  const memories = new Map<number, RebuiltMemory>();
  const archived: SlotRange[] = [];
  for (const run of runs) {
    if (!run) continue;
    const { messages, entries: said, memories: made, undone, bases, putAway } = rebuild(run);
    for (const text of [...bases, ...made.map(({ compacted }) => compacted.base.text)]) await store.bodies.put(key, text);
    for (const memory of made) memories.set(memory.compacted.epoch, memory);
    for (const epoch of undone) memories.delete(epoch);
    archived.push(...putAway);
    for (const message of messages) {
      const text = await toBody(store, key, await processInput(processors, key, message), TEXT_INLINE);
      entries.set(message.slot, userEntry(message, text, await mediaToRefs(store, key, message)));
    }
    // First come, first kept, as in the store: an effect's own entry was there before it could be settled.
    for (const entry of said) if (!entries.has(entry.slot)) entries.set(entry.slot, entry);
  }
  const missing = await missingOf(store, key, [...entries.values()]);
  await writeBack(store, key, [...entries.values()], missing);
  if (memories.size > 0) await restoreForgotten(store, key, await rememberedBy(key.scope));
  for (const memory of memories.values()) await remember(store, key, memory);
  if (archived.length > 0) await store.entries.archive(key, archived);
  return {
    runs: histories.length,
    events: runs.reduce((sum, run) => sum + (run?.events.length ?? 0), 0),
    known: entries.size,
    missing: missing.length,
    restored: missing.length - (await missingOf(store, key, missing)).length,
    lostBodies: await lostBodies(store, key, [...entries.values()]),
    complete,
    problems,
  };
}

/** As the compaction wrote it, under the same ids: where it is there already, nothing changes. */
async function remember(store: Store, key: ConversationKey, { session, compacted }: RebuiltMemory): Promise<void> {
  const { epoch, episode, archived, facts, turns, made } = compacted;
  await store.episodes.add(key, { ...episode, session, epoch, slots: archived, ...(made && { made }) });
  await learnFacts(
    store,
    key,
    factsBatch(key, epoch),
    facts.map(({ id: _, ...fact }) => fact),
    { conversation: key.conversation, turn_ids: turns },
  );
  await store.entries.archive(key, archived);
}

async function missingOf(store: Store, key: ConversationKey, entries: readonly Entry[]): Promise<Entry[]> {
  const found = await store.entries.read(
    key,
    entries.map(({ slot }) => slot),
  );
  return entries.filter((_, i) => !found[i]);
}

/** Every message by `record`, also those that are there: the index of their ids may be what was lost. */
async function writeBack(store: Store, key: ConversationKey, all: readonly Entry[], missing: readonly Entry[]): Promise<void> {
  const few = pLimit(WRITES_AT_ONCE);
  const messages = all.filter((entry) => entry.messageId !== undefined);
  await Promise.all(messages.map((entry) => few(() => store.entries.record(key, entry))));
  const others = missing.filter((entry) => entry.messageId === undefined);
  if (others.length > 0) await store.entries.append(key, others);
}

async function lostBodies(store: Store, key: ConversationKey, entries: readonly Entry[]): Promise<string[]> {
  const refs = entries.flatMap(({ message }) => refsIn(message));
  const lost: string[] = [];
  for (const ref of new Set(refs)) if ((await store.bodies.get(key, ref)) === undefined) lost.push(ref);
  return lost;
}

function refsIn(message: Entry['message']): string[] {
  const refOf = (body: unknown): string[] =>
    typeof body === 'object' && body !== null && 'ref' in body && typeof body.ref === 'string' ? [body.ref] : [];
  switch (message.role) {
    case 'user':
      return [...refOf(message.text), ...sourcesIn(message).flatMap(({ source }) => refOf(source))];
    case 'tool':
      return refOf(message.text);
    case 'assistant':
      return message.blocks.flatMap((block) =>
        block.kind === 'text' ? refOf(block.text) : block.kind === 'tool-call' ? refOf(block.inputRef) : [],
      );
  }
}
