/** What was written to a scope's memory, as the history of its one writer has it: the inputs of its activities that completed, oldest first. */
import type { WorkflowService } from '@temporalio/client';
import { memoryWorkflowId } from '../conversation/memory-contract.js';
import { tombstoneFor } from '../memory/documents/forgetting.js';
import type { ScopeKey, Store } from '../stores/store.js';
import { fetchRuns, type History } from './fetch-runs.js';

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
  service: Pick<WorkflowService, 'getWorkflowExecutionHistory'>,
  { namespace, taskQueue }: { readonly namespace: string; readonly taskQueue: string },
): (scope: string) => Promise<RememberedWrite[]> {
  return async (scope) => {
    const id = memoryWorkflowId(scope);
    const both = [id, `${id}:${taskQueue}`].map((workflowId) => fetchRemembered(service, { namespace, workflowId }));
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
async function fetchRemembered(
  service: Pick<WorkflowService, 'getWorkflowExecutionHistory'>,
  execution: { readonly namespace: string; readonly workflowId: string },
): Promise<RememberedWrite[]> {
  const { histories } = await fetchRuns(service, execution).catch((error: unknown) => {
    if (typeof error === 'object' && error !== null && 'code' in error && error.code === NOT_FOUND) return { histories: [] };
    throw error;
  });
  return histories.flatMap(writesIn);
}

function writesIn({ events }: History): RememberedWrite[] {
  const results = new Map(
    (events ?? []).map((event) => [String(event.activityTaskCompletedEventAttributes?.scheduledEventId ?? ''), event]),
  );
  return (events ?? []).flatMap((event) => {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const activity = scheduled?.activityType?.name ?? '';
    const data = scheduled?.input?.payloads?.[0]?.data;
    const completed = results.get(String(event.eventId));
    if (!WRITES.includes(activity) || !data || !completed) return [];
    const answer = completed.activityTaskCompletedEventAttributes?.result?.payloads?.[0]?.data;
    return [
      {
        activity: activity as RememberedWrite['activity'],
        input: decoded(data),
        result: answer ? decoded(answer) : undefined,
        at: Number(completed.eventTime?.seconds ?? 0) * 1000 + Math.floor((completed.eventTime?.nanos ?? 0) / 1e6),
      },
    ];
  });
}

function decoded(data: Uint8Array): unknown {
  return JSON.parse(Buffer.from(data).toString('utf8'));
}
