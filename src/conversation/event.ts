/** What happens to a conversation: past tense, plain JSON. Times are epoch milliseconds and come from outside. */
import type { Consolidation, Delivery, QueueEdit, AgentStatus } from './protocol/contract.js';
import type { Budget } from '../records/identity.js';
import type { EffectEvent } from './effect.js';
import type { JsonValue, MessageContent, Usage } from '../records/message.js';
import type { Reduced } from './context/reducers.js';
import type { Breakpoints, ChildControl, ControlMode, ControlOrder, StepScope } from './protocol/stepping.js';
import type { SlotRange } from '../records/slots.js';
import type { SentOrder } from './state/turn-state.js';
import type { Approval, ChildReport, Decision } from './protocol/human-input.js';

/** What happens to a conversation, as observers are told. Kinds and fields may be added in any version. */
export type ConversationEvent =
  // A client sent something.
  | ({
      readonly kind: 'message-received';
      readonly messageId: string;
      readonly delivery: Delivery;
      readonly traceparent?: string;
      readonly at: number;
    } & MessageContent)
  | { readonly kind: 'withdraw-requested'; readonly messageId: string; readonly at: number }
  | { readonly kind: 'decided'; readonly decision: Decision; readonly at: number }
  | {
      readonly kind: 'app-event-received';
      readonly id: string;
      readonly type: string;
      readonly payload: JsonValue;
      /** Its sender waits for what becomes of it. */
      readonly isAwaited?: true;
      readonly at: number;
    }
  | { readonly kind: 'mode-set'; readonly mode: ControlMode; readonly at: number }
  | { readonly kind: 'breakpoints-set'; readonly breakpoints: Breakpoints; readonly at: number }
  | { readonly kind: 'step-requested'; readonly id: string; readonly scope?: StepScope; readonly at: number }
  | { readonly kind: 'queue-edited'; readonly edit: QueueEdit; readonly at: number }
  | { readonly kind: 'budget-raised'; readonly budget: Budget; readonly at: number }
  | { readonly kind: 'model-set'; readonly model: string | null; readonly at: number }
  | { readonly kind: 'reset-requested'; readonly resetId: string; readonly at: number }
  | { readonly kind: 'compaction-requested'; readonly requestId: string; readonly at: number }
  | { readonly kind: 'truncation-requested'; readonly requestId: string; readonly at: number }
  | {
      readonly kind: 'chunks-chosen';
      readonly requestId: string;
      readonly what: 'truncate' | 'compact';
      readonly slots: readonly SlotRange[];
      readonly at: number;
    }
  | { readonly kind: 'undo-requested'; readonly requestId: string; readonly at: number }
  | {
      readonly kind: 'rewind-requested';
      readonly requestId: string;
      readonly to: string;
      readonly before?: true;
      readonly messageId?: string;
      readonly at: number;
    }
  | { readonly kind: 'interrupt-requested'; readonly reason: string | null; readonly at: number }
  /** `memory: false`: nothing of it is consolidated. */
  | { readonly kind: 'close-requested'; readonly at: number; readonly memory?: false }
  | { readonly kind: 'renamed'; readonly title: string; readonly at: number }
  | { readonly kind: 'input-rejected'; readonly name: string; readonly reason: string; readonly at: number }
  // Everything that was started: activities, sub-agents, reports (effect.ts).
  | EffectEvent
  // What the conversation did by itself, at once.
  | { readonly kind: 'turn-begun'; readonly at: number }
  | { readonly kind: 'app-event-reduced'; readonly id: string; readonly reduced: Reduced; readonly at: number }
  | { readonly kind: 'stop-sent'; readonly at: number }
  | { readonly kind: 'children-notified'; readonly at: number }
  | { readonly kind: 'late-children-stopped'; readonly at: number }
  | { readonly kind: 'children-ordered'; readonly orders: readonly (SentOrder & { readonly callId: string })[]; readonly at: number }
  /** Which approvals wait, or how it is stepped. */
  | { readonly kind: 'parent-notified'; readonly asks?: string; readonly control?: ChildControl; readonly at: number }
  | {
      readonly kind: 'attributes-upserted';
      readonly status: AgentStatus;
      readonly turns: number;
      readonly model?: string;
      readonly at: number;
    }
  | { readonly kind: 'title-upserted'; readonly at: number }
  // What other workflows say.
  | { readonly kind: 'child-asks'; readonly callId: string; readonly asks: readonly Approval[]; readonly at: number }
  | { readonly kind: 'child-stepped'; readonly callId: string; readonly control: ChildControl; readonly at: number }
  | { readonly kind: 'parent-ordered'; readonly order: ControlOrder; readonly at: number }
  | { readonly kind: 'child-ended'; readonly callId: string; readonly report: ChildReport; readonly at: number }
  | {
      readonly kind: 'consolidation-ended';
      readonly requestId: string;
      readonly consolidation: Consolidation;
      readonly usage: Usage | null;
      readonly handover?: string | undefined;
      readonly at: number;
    }
  // The run itself.
  | { readonly kind: 'time-passed'; readonly at: number }
  | { readonly kind: 'hand-over-due'; readonly reason: string; readonly at: number }
  /** Another build of the workers takes new runs; `parked`: a turn that waits for a person moves too. */
  | { readonly kind: 'upgrade-due'; readonly parked?: true; readonly at: number }
  | { readonly kind: 'run-continued'; readonly at: number };

export type EventOf<Kind extends ConversationEvent['kind']> = Extract<ConversationEvent, { kind: Kind }>;
