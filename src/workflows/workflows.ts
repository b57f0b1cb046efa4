/** The workflows, each on Temporal. */
import { createReducerRegistry, type Reducers } from '../conversation/inbox/reducers.js';
import type { ConversationOutcome } from '../conversation/protocol/contract.js';
import type { CareRequest, MemoryStart } from '../conversation/protocol/memory-contract.js';
import type { WebhookDelivery, WebhookOutcome } from '../conversation/activity-io/webhook-effects.js';
import { converse, type ConversationArgument } from './conversation.js';
import type { MeasureHistory } from './measured-history.js';
import { askForCare, keepMemory, type MemoryArgument } from './memory.js';
import { temporalHost } from './temporal-host.js';
import { deliverWebhook } from './webhook.js';

/** With reducers for the application's own events (seed 004): a custom entry exports what this makes as `conversation`. */
export function createConversation(
  own: { readonly reducers?: Reducers } = {},
): (argument?: ConversationArgument, measure?: MeasureHistory) => Promise<ConversationOutcome> {
  const reduce = createReducerRegistry(own.reducers ?? {});
  return (argument, measure) => converse(temporalHost(measure), argument, reduce);
}

/** The workflow `conversation`, without reducers. */
export const conversation = createConversation();

/** The workflow `memory:<scope>`: the one writer of a scope's long-term memory. */
export function memory(argument: MemoryArgument, measure?: MeasureHistory): Promise<never> {
  return keepMemory(temporalHost(measure), argument);
}

/** What a schedule starts (`perdura memory schedule`): it asks the scope's one writer, `memory`, to take care of its memory. */
export function memoryCare(argument: MemoryStart & CareRequest & { readonly memory: string }): Promise<void> {
  return askForCare(temporalHost(), argument);
}

/** The workflow `webhook`: delivers one event. Fails with `NotDelivered` where no attempt was acknowledged. */
export function webhook(delivery: WebhookDelivery): Promise<WebhookOutcome> {
  return deliverWebhook(temporalHost(), delivery);
}
