/**
 * Heal from history (design section 2): what a store has lost is read in the workflow's own event history and written again. It is a
 * fold over effects (fold.ts): no workflow code runs, and no page of history keeps others waiting. Writing is idempotent, so healing may
 * run beside the conversation, twice, or be cut off.
 */
import { slotsOf } from '../records/slots.js';
import type { Beginning } from '../records/lives.js';
import type { InputProcessor } from '../memory/processors.js';
import { refuseDeleted } from '../memory/deleted.js';
import type { ConversationKey, Store } from '../stores/store.js';
import type { HistoryService } from './fetch-runs.js';
import { createFold, WRITING } from './fold.js';
import { type ActivityHistory, readActivities } from './read-activities.js';
import { createEntryWriter, type RestoredEntries } from './restore-entries.js';
import { restoreMemory, type RememberedWrite } from './restore-memory.js';

export interface Healed extends Omit<RestoredEntries, 'beginning'>, Pick<ActivityHistory, 'complete'> {
  /** Runs of the conversation that history still has, and their events. */
  readonly runs: number;
  readonly events: number;
}

export interface HealDependencies {
  readonly service: HistoryService;
  readonly store: Store;
  /** As messages were first written with: what they removed must not come back. */
  readonly processors?: readonly InputProcessor[];
  /** What history says was written to the scope's memory: forgotten facts must not come back. */
  readonly rememberedBy: (scope: string) => Promise<readonly RememberedWrite[]>;
}

/** `run`: one of the life's runs, where another life of the same conversation may be the latest. */
export async function heal(dependencies: HealDependencies, key: ConversationKey, run?: string): Promise<Healed> {
  const { service, store, processors, rememberedBy } = dependencies;
  await refuseDeleted(store, key, `heal ${key.conversation}`);
  const execution = { namespace: key.namespace, workflowId: key.conversation, ...(run === undefined ? {} : { runId: run }) };
  const { runs, complete, pages } = await readActivities(service, execution, WRITING);
  const fold = createFold();
  const writer = createEntryWriter(store, key, processors);
  const unreadable: string[] = [];
  let events = 0;
  for await (const page of pages) {
    events += page.events;
    unreadable.push(...page.problems);
    for (const activity of page.activities) await writer.write(fold.take(activity), activity.bytes);
  }
  const { beginning, problems, ...entries } = await writer.end();
  const unwritten = await restoreMemory(store, key, fold.end(), rememberedBy);
  const before = beginning ? await healShared(dependencies, key, beginning) : [];
  return {
    runs,
    events,
    ...entries,
    complete: complete && before.every((one) => one.complete),
    problems: [...unreadable, ...problems, ...unwritten, ...before.flatMap((one) => one.problems)],
  };
}

/** The lives that a life shares entries with, where these have lost them. */
async function healShared(
  dependencies: HealDependencies,
  key: ConversationKey,
  beginning: Beginning,
): Promise<Pick<Healed, 'complete' | 'problems'>[]> {
  const { store } = dependencies;
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
