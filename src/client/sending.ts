/** A message that is waited for until its turn has ended: over hand-overs, worker deaths and lost connections. */
import { WithStartWorkflowOperation, type Client, type WorkflowHandle, type WorkflowStartOptions } from '@temporalio/client';
import type { Message, StartOptions, TurnResult } from '../conversation/protocol/contract.js';
import { NO_USAGE } from '../records/message.js';
import { messageSignal, sendUpdate, turnUpdate, WORKFLOW_TYPE } from '../workflows/messages.js';
import { withRetries, type WithSignal } from './temporal/with-retries.js';
import { describeDelivery, type UnlessNoWorker } from './temporal/worker-patience.js';

export interface Sending {
  readonly client: Client;
  readonly taskQueue: string;
  readonly unlessAway: UnlessNoWorker;
  readonly handleOf: (id: string) => WorkflowHandle;
  readonly withSignal: WithSignal;
  /** Rejects for an agent that there is not. */
  readonly checkAgent: (id: string, start: StartOptions) => Promise<void>;
  readonly startOptions: (
    id: string,
    options: StartOptions,
  ) => WorkflowStartOptions & { readonly args: StartOptions[]; readonly workflowId: string };
  readonly withId: (message: string | Message) => Message & { readonly id: string };
}

export interface SendingClient {
  send(id: string, message: string | Message, options?: { start?: StartOptions; signal?: AbortSignal }): Promise<TurnResult>;
  turn(id: string, turnId: string, options?: { signal?: AbortSignal }): Promise<TurnResult>;
  untilEnded(id: string, first: TurnResult, signal?: AbortSignal): Promise<TurnResult>;
}

export function createSending(parts: Sending): SendingClient {
  const { client, taskQueue, unlessAway, handleOf, withSignal, startOptions, checkAgent, withId } = parts;

  /** Goes on asking until the turn has ended, whatever run answers. */
  const untilEnded = async (id: string, first: TurnResult, signal?: AbortSignal): Promise<TurnResult> => {
    let result = first;
    while ((result.stopReason === 'continues' || result.stopReason === 'queued') && result.turnId !== null) {
      const { turnId } = result;
      result = await withRetries({ attempt: `cannot wait for ${turnId} of ${id}`, signal }, () =>
        withSignal(signal, () => handleOf(id).executeUpdate(turnUpdate, { args: [{ turnId }] })),
      );
    }
    return result;
  };

  return {
    untilEnded,

    async send(id, message, { start, signal: given } = {}) {
      const outgoing = withId(message);
      if (start) await checkAgent(id, start);
      const attempt = `cannot send to ${id}`;
      /** A signal is in the history at once, worker or not; an update that no worker takes is nowhere. */
      const keep = async (): Promise<string> => {
        const signalled = { signal: messageSignal, signalArgs: [outgoing] as [Message] };
        if (start) await client.workflow.signalWithStart(WORKFLOW_TYPE, { ...startOptions(id, start), ...signalled });
        else await handleOf(id).signal(messageSignal, outgoing);
        return describeDelivery(outgoing.id);
      };
      const converse = async (signal: AbortSignal | undefined): Promise<TurnResult> => {
        for (;;) {
          const result = await withRetries({ attempt, signal }, () =>
            withSignal(signal, () => {
              const options = { args: [outgoing] as [Message], updateId: `send-${outgoing.id}` };
              if (!start) return handleOf(id).executeUpdate(sendUpdate, options);
              const startWorkflowOperation = new WithStartWorkflowOperation(WORKFLOW_TYPE, {
                ...startOptions(id, start),
                workflowIdConflictPolicy: 'USE_EXISTING',
              });
              // Its failure is the update's too; unobserved it would be an unhandled rejection.
              startWorkflowOperation.workflowHandle().catch(() => undefined);
              return client.workflow.executeUpdateWithStart(sendUpdate, { ...options, startWorkflowOperation });
            }),
          );
          // A reset that met a hand-over has no turn to ask for: it is sent again, to the next run.
          if (result.stopReason !== 'continues' || result.turnId !== null) return untilEnded(id, result, signal);
        }
      };
      return unlessAway({ id, attempt, signal: given, without: keep, ...(start && { queue: taskQueue }) }, converse);
    },

    turn: (id, turnId, { signal } = {}) =>
      unlessAway({ id, attempt: `cannot wait for ${turnId} of ${id}`, signal, without: 'the turn goes on once one does' }, (waitSignal) =>
        untilEnded(id, { turnId, text: '', stopReason: 'continues', usage: NO_USAGE, toolCalls: 0 }, waitSignal),
      ),
  };
}
