/** What Temporal itself knows of a conversation, whether a worker is there or not. */
import {
  type WorkflowExecutionDescription,
  type WorkflowExecutionInfo,
  type WorkflowHandle,
  WorkflowNotFoundError,
  type ConnectionLike,
} from '@temporalio/client';
import type { Status } from '../conversation/protocol/contract.js';
import { toClientError } from './errors.js';
import { openClient } from './temporal/encryption.js';
import { optionalTsToMs } from '@temporalio/common/lib/time.js';

/** `ended`: by itself, after `close`. */
export type RunState = 'running' | 'ended' | 'failed' | 'canceled' | 'terminated' | 'timed-out' | 'continued' | 'unknown';

/** An activity that runs or waits to be tried again. */
export interface PendingActivity {
  readonly id: string;
  readonly type: string;
  readonly state: 'scheduled' | 'started' | 'cancel-requested' | 'paused' | 'unknown';
  /** Counts from 1. */
  readonly attempt: number;
  readonly scheduledAt: Date | null;
  readonly startedAt: Date | null;
  /** When it is tried again, while it waits for that. */
  readonly nextAttemptAt: Date | null;
  /** Of the attempt before. */
  readonly lastFailure: string | null;
  readonly worker: string | null;
  /** Whose workers it is for. */
  readonly taskQueue: string | null;
}

/** What Temporal knows of a conversation. */
export interface Description {
  readonly id: string;
  readonly runId: string;
  readonly life: string;
  readonly state: RunState;
  readonly taskQueue: string;
  readonly agent: string | null;
  /** Its whole name. */
  readonly scope: string | null;
  readonly tenant: string | null;
  /** By which its tenant knows it, where that is another id. */
  readonly publicId: string | null;
  /** The user who began it over the gateway; null: an operator, a command or a program. */
  readonly owner: string | null;
  readonly title: string | null;
  /** Of the run at hand. */
  readonly startedAt: Date;
  readonly closedAt: Date | null;
  readonly historyEvents: number;
  readonly historyBytes: number | null;
  readonly pendingActivities: readonly PendingActivity[];
}

/** A conversation in a list; what only search attributes have is null where they are not registered. */
export interface Listed {
  readonly id: string;
  readonly taskQueue: string;
  readonly running: boolean;
  readonly state: RunState;
  readonly agent: string | null;
  readonly scope: string | null;
  readonly tenant: string | null;
  readonly publicId: string | null;
  readonly title: string | null;
  readonly startedAt: Date;
  readonly closedAt: Date | null;
  readonly status: string | null;
  readonly model: string | null;
  readonly turns: number | null;
  readonly costUsd: number | null;
  /** Of the workers that have its present run; absent where they have none. */
  readonly build?: string;
}

/** Throws `ClientError`. */
export async function describeConversation(handle: Pick<WorkflowHandle, 'workflowId' | 'describe'>): Promise<Description> {
  const description = await handle.describe().catch((error: unknown) => {
    throw toClientError(error, `cannot look up ${handle.workflowId}`);
  });
  return toDescription(description);
}

export function toDescription(description: WorkflowExecutionDescription): Description {
  const { workflowId, runId, taskQueue, startTime, closeTime, historyLength, historySize, memo, raw } = description;
  return {
    id: workflowId,
    runId,
    life: raw.workflowExecutionInfo?.firstRunId || runId,
    state: toRunState(description.status.name),
    taskQueue,
    agent: textOrNull(memo?.['agent']),
    scope: textOrNull(memo?.['scope']),
    tenant: textOrNull(memo?.['tenant']),
    publicId: textOrNull(memo?.['publicId']),
    owner: textOrNull(memo?.['owner']),
    title: textOrNull(memo?.['title']),
    startedAt: startTime,
    closedAt: closeTime ?? null,
    historyEvents: historyLength,
    historyBytes: historySize ?? null,
    pendingActivities: (raw.pendingActivities ?? []).map(toPendingActivity),
  };
}

export function toListed({ workflowId, taskQueue, status, memo, startTime, closeTime, searchAttributes }: WorkflowExecutionInfo): Listed {
  const attribute = (name: string): unknown => searchAttributes[name]?.[0];
  const numberOrNull = (value: unknown): number | null => (typeof value === 'number' ? value : null);
  const build = toBuildId(attribute('TemporalWorkerDeploymentVersion'));
  return {
    id: workflowId,
    taskQueue,
    running: status.name === 'RUNNING',
    state: toRunState(status.name),
    agent: textOrNull(memo?.['agent']) ?? textOrNull(attribute('AgentName')),
    scope: textOrNull(memo?.['scope']),
    tenant: textOrNull(memo?.['tenant']) ?? textOrNull(attribute('AgentTenant')),
    publicId: textOrNull(memo?.['publicId']),
    title: textOrNull(memo?.['title']),
    startedAt: startTime,
    closedAt: closeTime ?? null,
    status: textOrNull(attribute('AgentStatus')),
    model: textOrNull(attribute('AgentModel')),
    turns: numberOrNull(attribute('AgentTurns')),
    costUsd: numberOrNull(attribute('AgentCostUsd')),
    ...(build !== undefined && { build }),
  };
}

/** Temporal has `deployment:build` there; a deployment's name has no colon. */
export function toBuildId(version: unknown): string | undefined {
  return typeof version === 'string' ? version.slice(version.indexOf(':') + 1) : undefined;
}

type RawActivity = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];

function toPendingActivity(raw: RawActivity): PendingActivity {
  const { activityId, activityType, state, attempt, scheduledTime, lastStartedTime, nextAttemptScheduleTime, lastFailure } = raw;
  const at = (time: Parameters<typeof optionalTsToMs>[0]): Date | null => {
    const ms = optionalTsToMs(time);
    return ms === undefined ? null : new Date(ms);
  };
  return {
    id: activityId ?? '',
    type: activityType?.name ?? '',
    state: ACTIVITY_STATES[Number(state)] ?? 'unknown',
    attempt: attempt ?? 1,
    scheduledAt: at(scheduledTime),
    startedAt: at(lastStartedTime),
    nextAttemptAt: at(nextAttemptScheduleTime),
    lastFailure: lastFailure?.message || null,
    worker: raw.lastWorkerIdentity || null,
    taskQueue: raw.activityOptions?.taskQueue?.name || null,
  };
}

/** A workflow does not hear when a worker takes a call that has waited for one: Temporal knows. */
export function withoutTaken(status: Status, { pendingActivities }: Pick<Description, 'pendingActivities'>): Status {
  const { waiting, waitingFor: _words, ...running } = status;
  if (waiting?.kind !== 'worker') return status;
  const there = pendingActivities.filter(({ taskQueue }) => taskQueue === waiting.taskQueue);
  const isTaken = there.length > 0 && there.every(({ state }) => state !== 'scheduled');
  return isTaken ? running : status;
}

/** Temporal's `PendingActivityState`, by number. */
const ACTIVITY_STATES: readonly PendingActivity['state'][] = ['unknown', 'scheduled', 'started', 'cancel-requested', 'paused'];

const RUN_STATES: Readonly<Record<string, RunState>> = {
  RUNNING: 'running',
  COMPLETED: 'ended',
  FAILED: 'failed',
  CANCELLED: 'canceled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'timed-out',
  CONTINUED_AS_NEW: 'continued',
};

function toRunState(name: string): RunState {
  return RUN_STATES[name] ?? 'unknown';
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** The id by which its tenant knows a conversation: the memo's, else the workflow's id. `(deleted)` for one that is gone. */
export function createPublicIdOf(connection: ConnectionLike, namespace: string): (workflowId: string) => Promise<string> {
  const client = openClient({ connection, namespace });
  return async (workflowId) => {
    try {
      return toDescription(await client.workflow.getHandle(workflowId).describe()).publicId ?? workflowId;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return DELETED;
      throw error;
    }
  };
}

/** In the place of the name of a conversation that was deleted: what it was called is not kept. */
export const DELETED = '(deleted)';

/** How a workflow stands, for activities that have no conversation to ask. */
export function createStatusOf(connection: ConnectionLike, namespace: string): (workflowId: string) => Promise<string> {
  const client = openClient({ connection, namespace });
  return async (workflowId) => {
    try {
      return (await client.workflow.getHandle(workflowId).describe()).status.name;
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return 'NOT_FOUND';
      throw error;
    }
  };
}
