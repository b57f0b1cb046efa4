/**
 * Heal from history (design section 2): what a store has lost is rebuilt from the workflow's own event history and written
 * again. Writing is idempotent, so healing may run beside the conversation, twice, or be cut off.
 */
import pLimit from 'p-limit';
import type { WorkflowService } from '@temporalio/client';
import type { Beginning } from '../conversation/lives.js';
import { rebuild, type Rebuilt, type RebuiltMemory } from '../conversation/rebuild.js';
import { userEntry } from '../conversation/entries.js';
import type { Entry } from '../conversation/message.js';
import { slotsOf, withSlot, type SlotRange } from '../conversation/slots.js';
import { processInput } from '../memory/process-input.js';
import type { InputProcessor } from '../memory/processors.js';
import { factsBatch } from '../memory/facts-batch.js';
import { learnFacts } from '../memory/learn-facts.js';
import { bodiesOf, mediaToRefs, TEXT_INLINE, toBody } from '../memory/bodies.js';
import { keepItems } from '../memory/channel/items-of-entries.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { fetchRuns } from './fetch-runs.js';
import { restoreForgotten, type RememberedWrite } from './remembered.js';
import type { WorkflowCode } from './replay-here.js';
import { replayRuns } from './replay-runs.js';

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

/** `run`: one of the life's runs, where another life of the same conversation may be the latest. */
export async function heal(dependencies: HealDependencies, key: ConversationKey, run?: string): Promise<Healed> {
  const { service, code, store, processors, rememberedBy } = dependencies;
  const { histories, complete } = await fetchRuns(service, {
    namespace: key.namespace,
    workflowId: key.conversation,
    ...(run === undefined ? {} : { runId: run }),
  });
  const { runs, problems } = await replayRuns(code, key.conversation, histories);
  const entries = new Map<number, Entry>();
  const memories = new Map<number, RebuiltMemory>();
  const archived: SlotRange[] = [];
  const rewinds: Rebuilt['rewinds'][number][] = [];
  let beginning: Beginning | undefined;
  let context: readonly SlotRange[] = [];
  for (const run of runs) {
    if (!run) continue;
    const rebuilt = rebuild(run);
    const { messages, entries: said, memories: made, undone, bases, putAway } = rebuilt;
    beginning ??= rebuilt.beginning;
    rewinds.push(...rebuilt.rewinds);
    context = rebuilt.state.context;
    for (const { episode, ...place } of rebuilt.retold) await store.episodes.add(key, { ...episode, ...place, epoch: 0 });
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
  await keepItems(store, key, [...entries.values()]);
  if (memories.size > 0) await restoreForgotten(store, key, await rememberedBy(key.scope));
  for (const memory of memories.values()) await remember(store, key, memory);
  if (archived.length > 0) await store.entries.archive(key, archived);
  await cutAgain(store, key, rewinds, context);
  const before = beginning ? await healShared(dependencies, key, beginning) : [];
  return {
    runs: histories.length,
    events: runs.reduce((sum, run) => sum + (run?.events.length ?? 0), 0),
    known: entries.size,
    missing: missing.length,
    restored: missing.length - (await missingOf(store, key, missing)).length,
    lostBodies: await lostBodies(store, key, [...entries.values()]),
    complete: complete && before.every((one) => one.complete),
    problems: [...problems, ...before.flatMap((one) => one.problems)],
  };
}

/** As the compaction wrote it, under the same ids: where it is there already, nothing changes. */
async function remember(store: Store, key: ConversationKey, { session, compacted }: RebuiltMemory): Promise<void> {
  const { epoch, episode, archived, facts, turns, record } = compacted;
  await store.episodes.add(key, { ...episode, session, epoch, slots: archived, ...(record && { made: record }) });
  await learnFacts(
    store,
    key,
    factsBatch(key, epoch),
    facts.map(({ id: _, ...fact }) => fact),
    { conversation: key.conversation, turn_ids: turns },
  );
  await store.entries.archive(key, archived);
}

/** What a rewind has cut stays cut, and what it has brought back into the context is active there unless something came after. */
async function cutAgain(store: Store, key: ConversationKey, rewinds: Rebuilt['rewinds'], context: readonly SlotRange[]): Promise<void> {
  const active = new Set(slotsOf(context));
  for (const { cut, context: back } of rewinds) {
    if (cut) await store.lives.cut(key, cut);
    if (cut) await store.entries.archive(key, cut.slots);
    const still = slotsOf(back).filter((slot) => active.has(slot));
    if (still.length > 0) await store.entries.restore(key, still.reduce<readonly SlotRange[]>(withSlot, []));
  }
}

/** The life's beginning, and the lives that it shares entries with where these have lost them. */
async function healShared(
  dependencies: HealDependencies,
  key: ConversationKey,
  beginning: Beginning,
): Promise<Pick<Healed, 'complete' | 'problems'>[]> {
  const { store } = dependencies;
  await store.lives.begin(key, beginning);
  const healed: Pick<Healed, 'complete' | 'problems'>[] = [];
  for (const { conversation, life, scope, run, slots } of beginning.shared) {
    const source = { namespace: key.namespace, conversation, life, scope };
    const isLost = (await store.entries.read(source, slotsOf(slots))).includes(undefined);
    if (!isLost) continue;
    const done = run === undefined ? undefined : await heal(dependencies, source, run).catch((error: unknown) => String(error));
    if (typeof done === 'object') healed.push(done);
    else
      healed.push({
        complete: false,
        problems: [`the turns that are shared with ${conversation} are lost: ${done ?? 'its history is gone'}`],
      });
  }
  return healed;
}

async function missingOf(store: Store, key: ConversationKey, entries: readonly Entry[]): Promise<Entry[]> {
  const found = await store.entries.read(
    key,
    entries.map(({ slot }) => slot),
  );
  return entries.filter(({ messageId }, i) => !found[i] || found[i].messageId !== messageId);
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
  const refs = entries.flatMap(bodiesOf);
  const lost: string[] = [];
  for (const ref of new Set(refs)) if ((await store.bodies.get(key, ref)) === undefined) lost.push(ref);
  return lost;
}
