/// <reference path="../../types/ms.d.ts" preserve="true" />
/**
 * Entry of the workflow bundle, and what a custom entry is made of (`perdura/workflows`).
 *
 * @packageDocumentation
 */
export { conversation, createConversation, memory, webhook } from './workflows.js';
export type { ConversationArgument } from './conversation.js';
export type { MemoryArgument } from './memory.js';
export type { ConversationIdentity } from '../records/identity.js';
export type { CareRequest, MemoryStart } from '../conversation/protocol/memory-contract.js';
export type { WebhookDelivery, WebhookOutcome } from '../conversation/outbox/webhook-effects.js';
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
