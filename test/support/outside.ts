/** A program of somebody else: it knows Temporal and the names of the contract, and nothing of ours. */
import { WithStartWorkflowOperation, type Client } from '@temporalio/client';
import { temporal as proto } from '@temporalio/proto';
import type { World } from './world.js';

export interface Payload {
  readonly metadata?: Record<string, Uint8Array>;
  readonly data?: Uint8Array;
}

export interface Outside {
  start(id: string, ...args: unknown[]): Promise<void>;
  /** A start whose argument is written by hand. */
  startRaw(id: string, payloads: readonly Payload[]): Promise<void>;
  /** Starts a workflow of its own, which continues as this one: what a worker of somebody else's can do. */
  continueAs(id: string, type: string, argument: unknown): Promise<void>;
  /** The same, with what is written by hand, once the id of its first run is known. */
  continueAsRaw(id: string, type: string, payloadOf: (life: string) => Payload): Promise<void>;
  signal(id: string, name: string, ...args: unknown[]): Promise<void>;
  /** A signal whose arguments are written by hand; undefined sends none at all. */
  signalRaw(id: string, name: string, payloads?: readonly Payload[]): Promise<void>;
  update(id: string, name: string, argument?: unknown): Promise<unknown>;
  /** Update-with-start: one round trip, attaching to a conversation that runs. */
  updateWithStart(id: string, name: string, argument: unknown, start: unknown): Promise<unknown>;
  /** A start and a signal in one call, so that both come in the first workflow task. */
  signalWithStart(id: string, name: string, argument: unknown, start: unknown): Promise<void>;
  query(id: string, name: string): Promise<unknown>;
  outcome(id: string): Promise<unknown>;
}

const TYPE = 'conversation';

export function jsonPayload(value: unknown, metadata: Payload['metadata'] = {}): Payload {
  return { metadata: { encoding: Buffer.from('json/plain'), ...metadata }, data: Buffer.from(JSON.stringify(value)) };
}

export function outside({ temporal, taskQueue }: Pick<World, 'temporal' | 'taskQueue'>): Outside {
  const { workflowService } = temporal;
  const handle = (id: string): ReturnType<Client['workflow']['getHandle']> => temporal.workflow.getHandle(id);
  return {
    async start(id, ...args) {
      await temporal.workflow.start(TYPE, { workflowId: id, taskQueue, args });
    },
    async startRaw(id, payloads) {
      await workflowService.startWorkflowExecution({
        namespace: 'default',
        workflowId: id,
        workflowType: { name: TYPE },
        taskQueue: { name: taskQueue },
        input: { payloads: [...payloads] },
        requestId: id,
      });
    },
    continueAs(id, type, argument) {
      return this.continueAsRaw(id, type, () => jsonPayload(argument));
    },
    async continueAsRaw(id, type, payloadOf) {
      const theirs = { name: `theirs-${id}` };
      const { runId } = await workflowService.startWorkflowExecution({
        namespace: 'default',
        workflowId: id,
        workflowType: { name: 'theirs' },
        taskQueue: theirs,
        requestId: id,
      });
      const { taskToken } = await temporal.withDeadline(Date.now() + 10_000, () =>
        workflowService.pollWorkflowTaskQueue({ namespace: 'default', taskQueue: theirs, identity: 'theirs' }),
      );
      const continueAsNewWorkflowExecutionCommandAttributes = {
        workflowType: { name: type },
        taskQueue: { name: taskQueue },
        input: { payloads: [payloadOf(runId)] },
      };
      const commandType = proto.api.enums.v1.CommandType.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION;
      await workflowService.respondWorkflowTaskCompleted({
        namespace: 'default',
        taskToken,
        identity: 'theirs',
        commands: [{ commandType, continueAsNewWorkflowExecutionCommandAttributes }],
      });
    },
    signal: (id, name, ...args) => handle(id).signal(name, ...args),
    async signalRaw(id, name, payloads) {
      await workflowService.signalWorkflowExecution({
        namespace: 'default',
        workflowExecution: { workflowId: id },
        signalName: name,
        ...(payloads ? { input: { payloads: [...payloads] } } : {}),
      });
    },
    update: (id, name, argument) =>
      argument === undefined ? handle(id).executeUpdate(name) : handle(id).executeUpdate<unknown, [unknown]>(name, { args: [argument] }),
    updateWithStart: (id, name, argument, start) =>
      temporal.workflow.executeUpdateWithStart(name, {
        args: [argument],
        startWorkflowOperation: new WithStartWorkflowOperation(TYPE, {
          workflowId: id,
          taskQueue,
          args: [start],
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      }),
    async signalWithStart(id, name, argument, start) {
      await temporal.workflow.signalWithStart(TYPE, { workflowId: id, taskQueue, args: [start], signal: name, signalArgs: [argument] });
    },
    query: (id, name) => handle(id).query(name),
    outcome: (id) => handle(id).result(),
  };
}

/** The type of the failure behind what an update, a query or a workflow threw, and its words. */
export async function failureOf(doing: Promise<unknown>): Promise<{ readonly type?: string; readonly message: string }> {
  const error: unknown = await doing.then(
    () => new Error('it did not fail'),
    (thrown: unknown) => thrown,
  );
  let at = error as { readonly type?: string; readonly message: string; readonly cause?: unknown };
  while (at.type === undefined && at.cause instanceof Error) at = at.cause;
  return at.type === undefined ? { message: at.message } : { type: at.type, message: at.message };
}
