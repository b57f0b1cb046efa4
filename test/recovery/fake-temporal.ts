/** Temporal's service, as far as taking over goes: what it was asked, and who it waits for. */
import type { RecoveryOptions } from '../../src/recovery/recovery.js';

export interface Asked {
  readonly name: string;
  readonly request: unknown;
}

const NOT_FOUND = Object.assign(new Error('no such activity'), { code: 5 });
const AWAY = Object.assign(new Error('away'), { code: 14 });

export function fakeTemporal({ isAway, awaited }: { readonly isAway: boolean; readonly awaited: readonly string[] }): {
  readonly connection: RecoveryOptions['connection'];
  readonly asked: readonly Asked[];
} {
  const asked: Asked[] = [];
  const answer =
    (
      name: string,
      toAnswer: (request: { readonly taskToken?: Uint8Array; readonly execution?: { readonly workflowId: string } }) => unknown,
    ) =>
    (request: never): Promise<unknown> => {
      asked.push({ name, request });
      if (isAway) return Promise.reject(AWAY);
      return Promise.resolve(request).then(toAnswer);
    };
  const isAwaited = ({ taskToken }: { readonly taskToken?: Uint8Array }): object => {
    if (awaited.includes(Buffer.from(taskToken ?? []).toString('base64'))) return {};
    throw NOT_FOUND;
  };
  const workflowService = {
    recordActivityTaskHeartbeat: answer('recordActivityTaskHeartbeat', isAwaited),
    respondActivityTaskFailed: answer('respondActivityTaskFailed', isAwaited),
    respondActivityTaskFailedById: answer('respondActivityTaskFailedById', () => ({})),
    resetStickyTaskQueue: answer('resetStickyTaskQueue', () => ({})),
    describeWorkflowExecution: answer('describeWorkflowExecution', ({ execution }) => {
      if (execution?.workflowId !== 'chat') throw NOT_FOUND;
      return {
        workflowExecutionInfo: { execution: { workflowId: 'chat', runId: 'now' } },
        pendingActivities: [
          { activityId: '4', attempt: 1, state: 2, lastWorkerIdentity: '9@there' },
          { activityId: '5', attempt: 2, state: 1, lastWorkerIdentity: '9@there' },
          { activityId: '6', attempt: 1, state: 2, lastWorkerIdentity: '8@elsewhere' },
          { activityId: '7', attempt: 2, state: 2, lastWorkerIdentity: '9@there' },
        ],
      };
    }),
  };
  const connection = { workflowService, withDeadline: (_: number, work: () => Promise<unknown>) => work() };
  return { connection: connection as unknown as RecoveryOptions['connection'], asked };
}
