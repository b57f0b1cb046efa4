/** What happens to a conversation: past tense, plain JSON. Times are epoch milliseconds and come from outside. */
import type { AgentStatus } from './attributes.js';
import type { Approval, Breakpoints, ChildReport, Consolidation, ControlMode, Decision, Delivery, QueueEdit } from './contract.js';
import type { Budget, ModelAnswer, Recorded, StepFailure } from './effects.js';
import type { Compacted, Truncated } from './compaction-effects.js';
import type { OpenedOrigin, Rewound } from './lineage-effects.js';
import type { PutAway } from './memory-effects.js';
import type { ToolFinished } from './tool-effects.js';
import type { Reduced } from './reducers.js';
import type { JsonObject, JsonValue, MediaSource, Usage } from './message.js';

export type ConversationEvent =
  // Someone said something.
  | {
      readonly kind: 'message-received';
      readonly messageId: string;
      readonly text: string;
      readonly images?: readonly MediaSource[];
      readonly audio?: readonly MediaSource[];
      readonly video?: readonly MediaSource[];
      readonly output?: JsonObject;
      readonly context?: JsonObject;
      readonly delivery: Delivery;
      readonly at: number;
    }
  | { readonly kind: 'withdraw-requested'; readonly messageId: string; readonly at: number }
  | { readonly kind: 'decided'; readonly decision: Decision; readonly at: number }
  | { readonly kind: 'app-event-received'; readonly id: string; readonly type: string; readonly payload: JsonValue; readonly at: number }
  | { readonly kind: 'app-event-reduced'; readonly id: string; readonly reduced: Reduced; readonly at: number }
  | { readonly kind: 'mode-set'; readonly mode: ControlMode; readonly at: number }
  | { readonly kind: 'breakpoints-set'; readonly breakpoints: Breakpoints; readonly at: number }
  | { readonly kind: 'step-requested'; readonly id: string; readonly at: number }
  | { readonly kind: 'queue-edited'; readonly edit: QueueEdit; readonly at: number }
  | { readonly kind: 'budget-raised'; readonly budget: Budget; readonly at: number }
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
  // Sub-agents, and who is told of a wait.
  | { readonly kind: 'child-started'; readonly callId: string; readonly child: string; readonly at: number }
  | { readonly kind: 'child-running'; readonly callId: string; readonly at: number }
  | { readonly kind: 'child-asks'; readonly callId: string; readonly asks: readonly Approval[]; readonly at: number }
  | { readonly kind: 'child-ended'; readonly callId: string; readonly report: ChildReport; readonly at: number }
  | { readonly kind: 'look-started'; readonly callId: string; readonly at: number }
  /** `status` is Temporal's; null where it could not be had. */
  | { readonly kind: 'looked'; readonly callId: string; readonly status: string | null; readonly at: number }
  | { readonly kind: 'children-told'; readonly at: number }
  | { readonly kind: 'parent-told'; readonly asks: string; readonly at: number }
  | { readonly kind: 'report-started'; readonly at: number }
  | { readonly kind: 'reported'; readonly at: number }
  | { readonly kind: 'notify-started'; readonly callIds: readonly string[]; readonly at: number }
  | { readonly kind: 'notified'; readonly at: number }
  // Memory.
  | { readonly kind: 'compaction-requested'; readonly requestId: string; readonly at: number }
  | { readonly kind: 'compact-started'; readonly epoch: number; readonly at: number }
  | { readonly kind: 'compacted'; readonly result: Compacted; readonly at: number }
  | { readonly kind: 'compact-failed'; readonly epoch: number; readonly failure: StepFailure; readonly at: number }
  | { readonly kind: 'truncation-requested'; readonly requestId: string; readonly at: number }
  | { readonly kind: 'truncate-started'; readonly epoch: number; readonly at: number }
  | { readonly kind: 'truncated'; readonly result: Truncated; readonly at: number }
  | { readonly kind: 'truncate-failed'; readonly epoch: number; readonly failure: StepFailure; readonly at: number }
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
