/** Deliveries of events to webhooks, as workflows beside their conversation: begun, looked for, and ended with it. */
import { WorkflowExecutionAlreadyStartedError, type Client, type ConnectionLike } from '@temporalio/client';
import { openClient } from './temporal/encryption.js';
import type { WebhookDelivery } from '../conversation/outbox/webhook-effects.js';
import type { Approval } from '../conversation/protocol/human-input.js';
import { approvalsQuery, WEBHOOK_WORKFLOW_TYPE } from '../workflows/messages.js';

interface Place {
  readonly connection: ConnectionLike;
  readonly namespace: string;
  readonly taskQueue: string;
}

const ANSWER_MS = 3_000;

export function deliveryId({ conversation, id }: Pick<WebhookDelivery, 'conversation' | 'id'>): string {
  return `webhook:${conversation}:${id}`;
}

/** Those of a conversation and its sub-agents. */
export async function listDeliveries(client: Client, conversation: string): Promise<{ readonly id: string; readonly runId: string }[]> {
  const found: { readonly id: string; readonly runId: string }[] = [];
  const query = `WorkflowType = '${WEBHOOK_WORKFLOW_TYPE}' AND WorkflowId STARTS_WITH 'webhook:${conversation}:'`;
  for await (const { workflowId: id, runId } of client.workflow.list({ query })) found.push({ id, runId });
  return found;
}

/** Begun twice it is one, also when the first has ended. */
export function createStartDelivery({ connection, namespace, taskQueue }: Place): (delivery: WebhookDelivery) => Promise<void> {
  const client = openClient({ connection, namespace });
  return async (delivery) => {
    const { type, conversation } = delivery;
    try {
      await client.workflow.start(WEBHOOK_WORKFLOW_TYPE, {
        workflowId: deliveryId(delivery),
        workflowIdReusePolicy: 'REJECT_DUPLICATE',
        taskQueue,
        args: [delivery],
        memo: { conversation, type },
        staticSummary: `${type} of ${conversation}`,
      });
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    }
  };
}

/** Asks the conversation itself. */
export function createIsWaiting({
  connection,
  namespace,
}: Omit<Place, 'taskQueue'>): (conversation: string, callId: string) => Promise<boolean> {
  const client = openClient({ connection, namespace });
  return async (conversation, callId) => {
    const ask = (): Promise<Approval[]> => client.workflow.getHandle(conversation).query(approvalsQuery);
    const waiting = await client.withDeadline(Date.now() + ANSWER_MS, ask);
    return waiting.some((one) => one.callId === callId && one.conversation === conversation);
  };
}
