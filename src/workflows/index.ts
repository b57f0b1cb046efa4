/// <reference path="../../types/ms.d.ts" preserve="true" />
/**
 * Entry of the workflow bundle, and what a custom entry is made of (`perdura/workflows`).
 *
 * @packageDocumentation
 */
import { createReducerRegistry, REDUCERS, type Reducers } from '../conversation/context/reducers.js';
import type { ConversationOutcome } from '../conversation/protocol/contract.js';
import type { GcOutcome, RetentionOutcome, WebhookDelivery, WebhookOutcome } from '../conversation/outbox/webhook-effects.js';
import { converse, type ConversationArgument } from './conversation.js';
import type { MeasureHistory } from './measured-history.js';
import { keepMemory, type MemoryArgument } from './memory.js';
import { temporalHost, withLimits } from './temporal-host.js';
import { applyRetention, collectGarbage, deliverWebhook } from './webhook.js';

export type { ConversationArgument };
export type { MemoryArgument };
export type { ConversationIdentity } from '../records/identity.js';
export type { CareRequest, MemoryStart } from '../conversation/protocol/memory-contract.js';
export type { GcOutcome, RetentionOutcome, WebhookDelivery, WebhookOutcome };
export type {
  AppChunk,
  AppEvent,
  BuiltInChunk,
  ChunkOperation,
  NewChunk,
  Reducer,
  Reducers,
  ReducerView,
} from '../conversation/context/reducers.js';

/** With reducers for application events (seed 004): a custom entry exports what this makes as `conversation`. */
export function createConversation(
  options: { readonly reducers?: Reducers } = {},
): (argument?: ConversationArgument, measure?: MeasureHistory) => Promise<ConversationOutcome> {
  const reducers = options.reducers ?? {};
  const reduce = withLimits(createReducerRegistry(reducers));
  const conversation = (argument?: ConversationArgument, measure?: MeasureHistory): Promise<ConversationOutcome> =>
    converse(temporalHost(measure), argument, reduce);
  return Object.assign(conversation, { [REDUCERS]: reducers });
}

/** The workflow `conversation`, without reducers. */
export const conversation = createConversation();

/** The workflow `memory:<scope>`: the one writer of a scope's long-term memory. */
export function memory(argument: MemoryArgument, measure?: MeasureHistory): Promise<never> {
  return keepMemory(temporalHost(measure), argument);
}

/** The workflow `webhook`: delivers one event. Fails with `NotDelivered` where no attempt was acknowledged. */
export function webhook(delivery: WebhookDelivery): Promise<WebhookOutcome> {
  return deliverWebhook(temporalHost(), delivery);
}

/** The workflow `retention`: deletes conversations that were over or idle for as long as the worker's settings say. */
export function retention(): Promise<RetentionOutcome> {
  return applyRetention(temporalHost());
}

/** The workflow `gc`: ends conversations that are idle for as long as they say, and archives what is old. */
export function gc(): Promise<GcOutcome> {
  return collectGarbage(temporalHost());
}
