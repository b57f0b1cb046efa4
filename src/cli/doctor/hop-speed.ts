/**
 * How long a task waits in Temporal's queues, and whether activities may start eagerly: the two settings that a turn's speed
 * depends on. Measured by raw calls, without a worker: one workflow on a queue of its own, whose activities are answered
 * at once. A hop is the time from one task's start to the next one's, by the server's own clock: a server that hands out 20
 * tasks a second, as they do by default, needs 50 ms for each.
 */
import { randomUUID } from 'node:crypto';
import type { Connection } from '@temporalio/client';

export interface HopSpeed {
  /** Milliseconds. */
  readonly perHop: number;
  readonly isEager: boolean;
}

/** The first ones live on the burst credit that an idle server has saved: only the last ones tell its pace. */
const ROUNDS = 40;
const COUNTED = 40;
const PATIENCE = 10_000;
const IDENTITY = 'perdura doctor';

const SCHEDULE_ACTIVITY = 1;
const COMPLETE_WORKFLOW = 4;

/** Leaves nothing behind but one closed workflow, which it deletes where that is allowed. */
export async function measureHops(connection: Connection, namespace: string): Promise<HopSpeed> {
  const { workflowService: service } = connection;
  const name = `perdura-doctor-${randomUUID()}`;
  const common = { namespace, taskQueue: { name }, identity: IDENTITY };
  const execution = { workflowId: name };
  const patiently = <T>(call: () => Promise<T>): Promise<T> => connection.withDeadline(Date.now() + PATIENCE, call);
  const nextDecision = () => patiently(() => service.pollWorkflowTaskQueue(common));
  const nextActivity = () => patiently(() => service.pollActivityTaskQueue(common));
  const answer = (taskToken: Uint8Array, command: object) =>
    service.respondWorkflowTaskCompleted({ namespace, taskToken, identity: IDENTITY, commands: [command] });
  const giveBack = (taskToken: Uint8Array) => service.respondActivityTaskCompleted({ namespace, taskToken, identity: IDENTITY });

  await service.startWorkflowExecution({
    ...common,
    workflowId: name,
    workflowType: { name: 'perdura-doctor' },
    requestId: randomUUID(),
    workflowExecutionTimeout: seconds(60),
  });
  let isEager = false;
  try {
    // Each poll is under way before there is something for it: a hop holds the server's waiting, not ours.
    let decision = await nextDecision();
    for (let round = 0; round < ROUNDS; round += 1) {
      const [task] = await Promise.all([nextActivity(), answer(decision.taskToken, activity(name, round, false))]);
      [decision] = await Promise.all([nextDecision(), giveBack(task.taskToken)]);
    }
    const { activityTasks } = await answer(decision.taskToken, activity(name, ROUNDS, true));
    const eager = activityTasks?.[0]?.taskToken ?? undefined;
    isEager = eager !== undefined;
    await giveBack(eager ?? (await nextActivity()).taskToken);
    await answer((await nextDecision()).taskToken, { commandType: COMPLETE_WORKFLOW, completeWorkflowExecutionCommandAttributes: {} });
    const { history } = await service.getWorkflowExecutionHistory({ namespace, execution });
    return { perHop: perHopOf(history?.events ?? []), isEager };
  } finally {
    await service
      .terminateWorkflowExecution({ namespace, workflowExecution: execution, reason: 'measured', identity: IDENTITY })
      .catch(() => {});
    await service.deleteWorkflowExecution({ namespace, workflowExecution: execution }).catch(() => {});
  }
}

interface TimedEvent {
  readonly eventTime?: { readonly seconds?: unknown; readonly nanos?: number | null } | null;
  readonly workflowTaskStartedEventAttributes?: object | null;
  readonly activityTaskStartedEventAttributes?: object | null;
}

function perHopOf(events: readonly TimedEvent[]): number {
  const starts = events
    .filter((event) => (event.activityTaskStartedEventAttributes ?? event.workflowTaskStartedEventAttributes ?? undefined) !== undefined)
    .map(({ eventTime }) => timeOf(eventTime));
  const counted = starts.slice(2 * ROUNDS - COUNTED, 2 * ROUNDS);
  return ((counted.at(-1) ?? 0) - (counted[0] ?? 0)) / Math.max(counted.length - 1, 1);
}

function timeOf(time: TimedEvent['eventTime']): number {
  return Number(time?.seconds ?? 0) * 1000 + (time?.nanos ?? 0) / 1_000_000;
}

function activity(name: string, round: number, requestEagerExecution: boolean): object {
  return {
    commandType: SCHEDULE_ACTIVITY,
    scheduleActivityTaskCommandAttributes: {
      activityId: String(round),
      activityType: { name: 'perdura-doctor' },
      taskQueue: { name },
      scheduleToCloseTimeout: seconds(30),
      startToCloseTimeout: seconds(30),
      requestEagerExecution,
    },
  };
}

function seconds(count: number): { seconds: never } {
  // The generated types want a Long; the wire takes a number.
  return { seconds: count as never };
}
