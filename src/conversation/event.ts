/** What happens to a conversation: past tense, plain JSON. Times are epoch milliseconds and come from outside. */
import type { AgentStatus } from './attributes.js';
import type { Consolidation, Delivery } from './contract.js';
import type { Compacted, ModelAnswer, OpenedOrigin, PutAway, Recorded, Rewound, StepFailure, ToolFinished } from './effects.js';
import type { MediaSource, Usage } from './message.js';

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
  // Long-term memory.
  | { readonly kind: 'memory-ask-started'; readonly requestId: string; readonly at: number }
  | { readonly kind: 'memory-asked'; readonly requestId: string; readonly at: number }
  | { readonly kind: 'memory-ask-failed'; readonly requestId: string; readonly failure: StepFailure; readonly at: number }
  | {
      readonly kind: 'consolidation-ended';
      readonly requestId: string;
      readonly consolidation: Consolidation;
      readonly usage: Usage | null;
      readonly at: number;
    }
  | { readonly kind: 'put-away-started'; readonly at: number }
  | { readonly kind: 'put-away'; readonly result: PutAway; readonly at: number }
  | { readonly kind: 'put-away-failed'; readonly failure: StepFailure; readonly at: number }
  // Other lives, and turns taken back.
  | { readonly kind: 'origin-open-started'; readonly at: number }
  | { readonly kind: 'origin-opened'; readonly result: OpenedOrigin; readonly at: number }
  | { readonly kind: 'origin-open-failed'; readonly failure: StepFailure; readonly at: number }
  | { readonly kind: 'rewind-requested'; readonly requestId: string; readonly to: string; readonly at: number }
  | { readonly kind: 'rewind-started'; readonly requestId: string; readonly at: number }
  | { readonly kind: 'rewound'; readonly requestId: string; readonly result: Rewound; readonly at: number }
  | { readonly kind: 'rewind-failed'; readonly requestId: string; readonly failure: StepFailure; readonly at: number }
  // Stopping and sessions.
  | { readonly kind: 'stop-sent'; readonly at: number }
  | { readonly kind: 'consolidated'; readonly consolidation: Consolidation; readonly at: number }
  // The run itself.
  | { readonly kind: 'attributes-told'; readonly status: AgentStatus; readonly turns: number; readonly at: number }
  | { readonly kind: 'time-passed'; readonly at: number }
  | { readonly kind: 'hand-over-due'; readonly reason: string; readonly at: number }
  | { readonly kind: 'run-continued'; readonly at: number };
