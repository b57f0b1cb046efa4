/**
 * Goes on with what a worker ran that has ended. Each of its attempts is failed, so that Temporal tries it again at once and does not wait
 * for a heartbeat; and its conversations leave that worker's sticky queue, which would hold up their next task.
 *
 * Harmless where it comes too late or is wrong: a token names one attempt, so that of one which has ended, or is tried again already,
 * Temporal answers that there is no such thing. If the worker lives after all, it hears of it with its next heartbeat, and the ledger lets
 * one of the two commit.
 *
 * @rule temporal/counts-as-silence: An attempt that is taken over counts as one whose heartbeat stayed away: it has the same tries, and what
 *   it noted is handed on. Only the first one is tried again almost at once. (test: test/chaos/recovery.slow.test.ts)
 */
import type { ConnectionLike } from '@temporalio/client';
import pLimit from 'p-limit';
import { WORKER_ENDED, WORKER_LOST } from '../../records/turn-end.js';
import { errorFields } from '../../platform/errors.js';

/** As its worker has announced it. */
export interface LostAttempt {
  /** In base64. */
  readonly token: string;
  readonly workflowId: string;
  readonly runId: string;
  readonly attempt: number;
}

export interface LostWork {
  /** As Temporal knows its worker. */
  readonly identity: string;
  readonly running: readonly LostAttempt[];
  /** Ids of workflows that it has worked for lately. */
  readonly recent: readonly string[];
}

export interface TakeOverOptions {
  readonly namespace: string;
  readonly identity: string;
  /** Of one that could not be failed: its heartbeat's time-out does it then. */
  readonly warn: (message: string, fields: object) => void;
}

const AT_ONCE = 20;
/** Milliseconds of one call. A heartbeat's silence is noticed after ten seconds anyway. */
const CALL_MS = 5_000;
/** PENDING_ACTIVITY_STATE_STARTED. */
const PENDING_STARTED = 2;
const NOT_FOUND = 5;
/** Temporal must have noticed that the dead worker's polls are closed, or it gives the next attempt to one of them (measured). */
const FIRST_RETRY_NANOS = 100_000_000;

type Asking = Pick<ConnectionLike, 'workflowService' | 'withDeadline'>;

/** Whether Temporal still waits for this attempt; undefined where it does not answer. */
export async function isAwaited(
  connection: Asking,
  { namespace, identity, token }: Pick<TakeOverOptions, 'namespace' | 'identity'> & Pick<LostAttempt, 'token'>,
): Promise<boolean | undefined> {
  const taskToken = Buffer.from(token, 'base64');
  try {
    await connection.withDeadline(Date.now() + CALL_MS, () =>
      connection.workflowService.recordActivityTaskHeartbeat({ namespace, identity, taskToken }),
    );
    return true;
  } catch (error) {
    return errorFields(error).code === NOT_FOUND ? false : undefined;
  }
}

/** Answers how many attempts it has failed. */
export async function takeOver(
  connection: Asking,
  { identity: lost, running, recent }: LostWork,
  { namespace, identity, warn }: TakeOverOptions,
): Promise<number> {
  const limit = pLimit(AT_ONCE);
  const { workflowService } = connection;
  const call = <T>(work: () => Promise<T>): Promise<T | undefined> =>
    connection.withDeadline(Date.now() + CALL_MS, work).catch((error: unknown) => {
      if (errorFields(error).code === NOT_FOUND) return undefined;
      throw error;
    });
  const resetSticky = (workflowId: string, runId?: string): Promise<unknown> =>
    call(() => workflowService.resetStickyTaskQueue({ namespace, execution: { workflowId, runId } }));
  /** 1 where it was still tried. */
  const failOne = async ({ token, workflowId, runId, attempt }: LostAttempt): Promise<number> => {
    // First: where the attempt was the last one, its failure is a workflow task.
    await resetSticky(workflowId, runId);
    const taskToken = Buffer.from(token, 'base64');
    const failure = toFailure(attempt);
    return (await call(() => workflowService.respondActivityTaskFailed({ namespace, identity, taskToken, failure }))) ? 1 : 0;
  };
  /**
   * What it had only just begun, as Temporal knows it. First attempts only: of a later one Temporal says which worker ran the attempt before it
   * (measured), so it may be a living worker's. By its id: should the attempt have become another one since, ten seconds later at the
   * earliest, it is repeated once more, and the ledger lets one commit.
   */
  const failUnannounced = async (workflowId: string): Promise<number> => {
    await resetSticky(workflowId);
    if (lost === '' || lost === identity) return 0;
    const described = await call(() => workflowService.describeWorkflowExecution({ namespace, execution: { workflowId } }));
    const begun = (described?.pendingActivities ?? []).filter(
      ({ state, attempt, lastWorkerIdentity }) => state === PENDING_STARTED && attempt === 1 && lastWorkerIdentity === lost,
    );
    const runId = described?.workflowExecutionInfo?.execution?.runId ?? '';
    const failed = begun.map(({ activityId }) =>
      call(() =>
        workflowService.respondActivityTaskFailedById({
          ...{ namespace, identity, workflowId, runId },
          activityId: activityId ?? '',
          failure: toFailure(1),
        }),
      ),
    );
    return (await Promise.all(failed)).filter(Boolean).length;
  };
  const counted = (workflowId: string, work: () => Promise<number>): Promise<number> =>
    limit(work).catch((error: unknown) => {
      warn('what a worker ran that has ended is not taken over: its heartbeat has to time out', { workflowId, error: String(error) });
      return 0;
    });
  const announced = await Promise.all(running.map((one) => counted(one.workflowId, () => failOne(one))));
  const unannounced = await Promise.all(recent.map((id) => counted(id, () => failUnannounced(id))));
  return [...announced, ...unannounced].reduce((sum, one) => sum + one, 0);
}

function toFailure(attempt: number) {
  return {
    message: WORKER_ENDED,
    source: 'Perdura',
    // (temporal/counts-as-silence)
    applicationFailureInfo: { type: WORKER_LOST, ...(attempt === 1 && { nextRetryDelay: { nanos: FIRST_RETRY_NANOS } }) },
  };
}
