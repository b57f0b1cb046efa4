/// <reference path="../../types/ms.d.ts" preserve="true" />
/** Entry of the workflow bundle, and what a custom entry is made of (`perdura/workflows`). */
export { conversation, createConversation } from './conversation.js';
export { memory } from './memory.js';
export { memoryCare } from './memory.js';
export { webhook } from './webhook.js';
export type {
  AppChunk,
  AppEvent,
  BuiltInChunk,
  ChunkOperation,
  NewChunk,
  Reducer,
  Reducers,
  ReducerView,
} from '../conversation/inbox/reducers.js';
