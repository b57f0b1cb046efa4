/** What was written to a scope's memory, as the history of its one writer has it: the inputs of its activities that completed, oldest first. */
import { memoryWorkflowId } from '../conversation/protocol/memory-contract.js';
import { tombstoneFor } from '../memory/documents/forgetting.js';
import type { ScopeKey, Store } from '../stores/store.js';
import type { Execution, HistoryService } from './fetch-runs.js';
import { readActivities } from './read-activities.js';

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

/** By the workflows that may keep it: the scope's own, and the one for this task queue beside it. */
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
export async function restoreForgotten(store: Store, key: ScopeKey, writes: readonly RememberedWrite[]): Promise<void> {
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
