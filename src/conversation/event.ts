/** What happens to a conversation: past tense, plain JSON. Times are epoch milliseconds and come from outside. */
import type { AgentStatus } from './attributes.js';
import type { Delivery } from './contract.js';
import type { Compacted, ModelAnswer, Recorded, StepFailure, ToolFinished } from './effects.js';
import type { MediaSource } from './message.js';

export type ConversationEvent =
  // Someone said something.
  | {
      readonly kind: 'message-received';
      readonly messageId: string;
      readonly text: string;
      readonly images?: readonly MediaSource[];
      readonly audio?: readonly MediaSource[];
      readonly video?: readonly MediaSource[];
      readonly delivery: Delivery;
      readonly at: number;
    }
  | { readonly kind: 'reset-requested'; readonly resetId: string; readonly at: number }
  | { readonly kind: 'interrupt-requested'; readonly reason: string | null; readonly at: number }
  | { readonly kind: 'close-requested'; readonly at: number }
  | { readonly kind: 'renamed'; readonly title: string; readonly at: number }
  | { readonly kind: 'input-rejected'; readonly name: string; readonly reason: string; readonly at: number }
  // The store.
  | { readonly kind: 'record-started'; readonly at: number }
  | { readonly kind: 'recorded'; readonly recorded: Recorded; readonly at: number }
  | { readonly kind: 'record-failed'; readonly failure: StepFailure; readonly at: number }
  | { readonly kind: 'heal-started'; readonly at: number }
  | { readonly kind: 'heal-ended'; readonly at: number }
  | { readonly kind: 'persist-started'; readonly at: number }
  | { readonly kind: 'persisted'; readonly slots: readonly number[]; readonly at: number }
  | { readonly kind: 'persist-failed'; readonly failure: StepFailure; readonly at: number }
  // The model.
  | { readonly kind: 'model-call-started'; readonly call: string; readonly at: number }
  | { readonly kind: 'model-answered'; readonly answer: ModelAnswer; readonly at: number }
  | { readonly kind: 'model-call-failed'; readonly call: string; readonly failure: StepFailure; readonly at: number }
  // Tools.
  | { readonly kind: 'tools-started'; readonly callIds: readonly string[]; readonly at: number }
  | { readonly kind: 'tool-finished'; readonly result: ToolFinished; readonly at: number }
  | { readonly kind: 'tool-run-failed'; readonly callId: string; readonly failure: StepFailure; readonly at: number }
  // Memory.
  | { readonly kind: 'compaction-requested'; readonly requestId: string; readonly at: number }
  | { readonly kind: 'compact-started'; readonly epoch: number; readonly at: number }
  | { readonly kind: 'compacted'; readonly result: Compacted; readonly at: number }
  | { readonly kind: 'compact-failed'; readonly epoch: number; readonly failure: StepFailure; readonly at: number }
  | { readonly kind: 'undo-requested'; readonly requestId: string; readonly at: number }
  | { readonly kind: 'uncompact-started'; readonly epoch: number; readonly at: number }
  | { readonly kind: 'uncompacted'; readonly epoch: number; readonly at: number }
  | { readonly kind: 'uncompact-failed'; readonly epoch: number; readonly failure: StepFailure; readonly at: number }
  // Stopping and sessions.
  | { readonly kind: 'stop-sent'; readonly at: number }
  | { readonly kind: 'consolidated'; readonly consolidation: 'model' | 'raw-fallback' | 'nothing-to-do'; readonly at: number }
  // The run itself.
  | { readonly kind: 'attributes-told'; readonly status: AgentStatus; readonly turns: number; readonly at: number }
  | { readonly kind: 'time-passed'; readonly at: number }
  | { readonly kind: 'hand-over-due'; readonly reason: string; readonly at: number }
  | { readonly kind: 'run-continued'; readonly at: number };
