/**
 * A workflow's histories as Temporal has them: every run of the chain that is still retained, oldest first, page by page.
 *
 * A page is small enough for gRPC and the event loop: its size follows the bytes of the page before, and a page that Temporal refuses for
 * its size is fetched in smaller ones. While the caller reads a page, the next one is on its way.
 */
import type { WorkflowService } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';

export type History = temporal.api.history.v1.IHistory;
export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;
export type HistoryService = Pick<WorkflowService, 'getWorkflowExecutionHistory'>;

export interface Execution {
  readonly namespace: string;
  readonly workflowId: string;
  /** One of the chain; absent: the latest. */
  readonly runId?: string;
}

/** Histories of a conversation, as Temporal still has them. */
export interface FetchedRuns {
  readonly histories: readonly History[];
  /** False when earlier runs are no longer retained. */
  readonly complete: boolean;
}

/** How a run begins, and where the rest of it is read. */
export interface FoundRun {
  readonly execution: Execution;
  readonly head: readonly HistoryEvent[];
  /** Undefined where the head is all. */
  readonly token: Uint8Array | undefined;
}

const FIRST_PAGE = 50;
const MAX_PAGE = 500;
/** Events of a page may grow by so much over the page before. */
const GROWTH = 4;
/** Of payloads: decoding it takes a few milliseconds. */
const PAGE_BYTES = 1024 * 1024;
/** gRPC's status codes. */
const NOT_FOUND = 5;
const RESOURCE_EXHAUSTED = 8;

export async function fetchRuns(service: HistoryService, execution: Execution): Promise<FetchedRuns> {
  const { runs, complete } = await findRuns(service, execution);
  const histories: History[] = [];
  for (const run of runs) {
    const events: HistoryEvent[] = [];
    for await (const page of readPages(service, run)) events.push(...page);
    histories.push({ events });
  }
  return { histories, complete };
}

/** One run alone, and not the chain that it is in: the latest where `execution` names none. */
export async function fetchRun(service: HistoryService, execution: Execution): Promise<History> {
  const first = await askInPieces(service, { execution, token: undefined, size: FIRST_PAGE });
  const events: HistoryEvent[] = [];
  for await (const page of readPages(service, { execution, head: first.events, token: first.token })) events.push(...page);
  return { events };
}

/** The chain by how its runs begin, oldest run first. What Temporal wrote at once it sends at once, whatever the size of the page. */
export async function findRuns(
  service: HistoryService,
  execution: Execution,
): Promise<{ readonly runs: readonly FoundRun[]; readonly complete: boolean }> {
  const runs: FoundRun[] = [];
  for (let runId = execution.runId; ;) {
    const of = { ...execution, ...(runId === undefined ? {} : { runId }) };
    const found = await ask(service, { execution: of, token: undefined, size: 1 }).catch((error: unknown) => {
      // An older one may have passed its retention; whatever else goes wrong is not the same as "no longer there".
      if (runs.length > 0 && grpcCode(error) === NOT_FOUND) return undefined;
      throw error;
    });
    if (!found) return { runs, complete: false };
    runs.unshift({ execution: of, head: found.events, token: found.token });
    const before = found.events[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
    if (!before) return { runs, complete: true };
    runId = before;
  }
}

export async function* readPages(service: HistoryService, { execution, head, token }: FoundRun): AsyncGenerator<readonly HistoryEvent[]> {
  const begin = (after: Uint8Array | undefined, size: number): Promise<Page> | undefined => {
    const coming = after && askInPieces(service, { execution, token: after, size });
    // Its reader may stop before it is wanted.
    coming?.catch(() => undefined);
    return coming;
  };
  let coming = begin(token, FIRST_PAGE);
  yield head;
  while (coming) {
    const page: Page = await coming;
    const fitting = Math.floor((page.events.length * PAGE_BYTES) / countBytes(page.events));
    coming = begin(page.token, Math.max(1, Math.min(MAX_PAGE, page.size * GROWTH, fitting)));
    yield page.events;
  }
}

interface Request {
  readonly execution: Execution;
  readonly token: Uint8Array | undefined;
  readonly size: number;
}

interface Page {
  readonly events: readonly HistoryEvent[];
  readonly token: Uint8Array | undefined;
  readonly size: number;
}

async function askInPieces(service: HistoryService, request: Request): Promise<Page> {
  for (let size = request.size; ; size = Math.ceil(size / GROWTH)) {
    try {
      return await ask(service, { ...request, size });
    } catch (error) {
      if (grpcCode(error) !== RESOURCE_EXHAUSTED || size === 1) throw error;
    }
  }
}

async function ask(service: HistoryService, { execution, token, size }: Request): Promise<Page> {
  const { namespace, workflowId, runId } = execution;
  const { history, nextPageToken } = await service.getWorkflowExecutionHistory({
    namespace,
    execution: { workflowId, runId: runId ?? '' },
    maximumPageSize: size,
    ...(token && { nextPageToken: token }),
  });
  return { events: history?.events ?? [], token: nextPageToken?.length ? nextPageToken : undefined, size };
}

function countBytes(events: readonly HistoryEvent[]): number {
  return events.reduce((sum, event) => {
    const input = event.activityTaskScheduledEventAttributes?.input ?? event.workflowExecutionSignaledEventAttributes?.input;
    const payloads = input?.payloads ?? event.activityTaskCompletedEventAttributes?.result?.payloads ?? [];
    return payloads.reduce((bytes, { data }) => bytes + (data?.length ?? 0), sum);
  }, 1);
}

function grpcCode(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}
