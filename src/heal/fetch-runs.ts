/** A conversation's histories as Temporal has them: every run of the chain that is still retained, oldest first. */
import type { WorkflowService } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';

export type History = temporal.api.history.v1.IHistory;

export interface FetchedRuns {
  readonly histories: readonly History[];
  /** False when earlier runs are no longer retained. */
  readonly complete: boolean;
}

/** Events of one page: the default of a thousand can pass the 4 MiB that a gRPC message may have. */
const PAGE = 100;
/** gRPC's status. */
const NOT_FOUND = 5;

export async function fetchRuns(
  service: Pick<WorkflowService, 'getWorkflowExecutionHistory'>,
  execution: { readonly namespace: string; readonly workflowId: string; readonly runId?: string },
): Promise<FetchedRuns> {
  const histories: History[] = [];
  for (let runId = execution.runId; ;) {
    const history = await fetchRun(service, { ...execution, runId }).catch((error: unknown) => {
      // An older one may have passed its retention; whatever else goes wrong is not the same as "no longer there".
      if (histories.length > 0 && isNotFound(error)) return undefined;
      throw error;
    });
    if (!history) return { histories, complete: false };
    histories.unshift(history);
    const before = history.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
    if (!before) return { histories, complete: true };
    runId = before;
  }
}

function isNotFound(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === NOT_FOUND;
}

async function fetchRun(
  service: Pick<WorkflowService, 'getWorkflowExecutionHistory'>,
  { namespace, workflowId, runId }: { readonly namespace: string; readonly workflowId: string; readonly runId?: string },
): Promise<History> {
  const events: NonNullable<History['events']> = [];
  for (let nextPageToken: Uint8Array | undefined; ;) {
    const page = await service.getWorkflowExecutionHistory({
      namespace,
      execution: { workflowId, runId: runId ?? '' },
      maximumPageSize: PAGE,
      ...(nextPageToken ? { nextPageToken } : {}),
    });
    events.push(...(page.history?.events ?? []));
    if (!page.nextPageToken || page.nextPageToken.length === 0) return { events };
    nextPageToken = page.nextPageToken;
  }
}
