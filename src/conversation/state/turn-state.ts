/** A turn that runs, what is left of one that has ended, as state. */
import type { Fallback, StopReason, TurnError, WaitKind } from '../protocol/contract.js';
import type { AppContextRef, StepFailure } from '../outbox/writes.js';
import type { DeferReason, ApprovedWith, ToolPlan } from '../turn/model-step-effects.js';
import type { Stop, Usage } from '../../records/message.js';
import type { Approval } from '../protocol/human-input.js';
import type { ChildControl } from '../protocol/stepping.js';

export interface Turn {
  readonly number: number;
  readonly messageIds: readonly string[];
  /** Slot of its first message: from there on the context is this turn's. */
  readonly firstSlot: number;
  /** Of its messages, by estimate. */
  readonly messageTokens: number;
  /** The agent's settings are as this turn found them, and are not read again. */
  readonly isConfigured: boolean;
  /** Why steps of this turn came back without a call; none does so twice. */
  readonly deferred: readonly DeferReason[];
  /** Traces of this turn so far (seed 000's `seq` of the last one). */
  readonly seq: number;
  readonly rounds: number;
  /** How often the model has reported in this turn that its context is full, and the context was made smaller. */
  readonly overflowRecoveries: number;
  /** Tokens of a prompt that was refused without a reason that is known: it may have been too long. Absent: none was. */
  readonly suspected?: number;
  readonly modelCalls: number;
  readonly toolCalls: number;
  readonly usage: Usage;
  /** Slot of the assistant's last text. */
  readonly answerSlot: number | null;
  /** `riding`: quick calls whose results this model call is to see; they run in its step, and are in the context already. */
  readonly phase:
    | { readonly kind: 'model'; readonly call: ModelCall; readonly riding: readonly ToolCall[] }
    | { readonly kind: 'tools'; readonly calls: readonly ToolCall[] };
  readonly stopping: Stopping | null;
  /** Where the schema of its answer lies. */
  readonly outputRef?: string;
  /** Where the tools lie that its message has brought. */
  readonly toolsRef?: string;
  /** Tool calls that the turn had made when these tools came; absent: none. */
  readonly callsBefore?: number;
  readonly stop?: Stop;
  /** What was wrong with the answer that did not fit it. */
  readonly schemaViolation?: string;
  /** Calls of the last round, and how many rounds in a row each was in. */
  readonly repeats?: readonly (readonly [fingerprint: string, rounds: number])[];
  readonly delegations?: number;
  /** Of the request that brought its first message (W3C), for its trace. */
  readonly traceparent?: string;
  /** Absent: no model of the agent's list has failed in this turn (fallback.ts). */
  readonly fallback?: TurnFallback;
}

export interface TurnFallback extends Omit<Fallback, 'model'> {
  /** Is called now; null: the first again, after all of them had failed. */
  readonly model: string | null;
  /** How often all of them have failed. */
  readonly rounds: number;
  /** Epoch milliseconds: the earliest time at which one of those that failed in this round may be called again. Absent: none has. */
  readonly until?: number;
}

export interface ModelCall {
  readonly id: string;
  readonly slot: number;
  readonly seq: number;
  readonly failures: number;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly slot: number;
  readonly seq: number;
  readonly askedIn: number;
  /** What it is about, in a few words, for people. */
  readonly target: string;
  readonly plan: ToolPlan;
  /** `waiting` until it runs and while it does; `asking` a person, `sleeping` until a time, `delegated` to a sub-agent (approvals.ts). */
  readonly status: 'waiting' | 'asking' | 'sleeping' | 'delegated' | 'done';
  /** Epoch milliseconds. `notified`: the notification has been sent. */
  readonly asked?: { readonly kind: WaitKind; readonly at: number; readonly until: number };
  readonly sleepsUntil?: number;
  /** No worker of its task queue had taken it at this time (epoch milliseconds), for the first time; and how often by now. */
  readonly unserved?: { readonly since: number; readonly times: number };
  readonly child?: {
    readonly id: string;
    readonly looks?: Looks;
    readonly asks: readonly Approval[];
    /** Values for tools that were there at its start. */
    readonly given?: AppContextRef;
    /** The last order that was sent to it, and how it says that it stands (sub-agents.ts). */
    readonly ordered?: SentOrder;
    readonly control?: ChildControl;
  };
  readonly person?: ApprovedWith;
}

/** `key`: the content of the order, without its number. */
export interface SentOrder {
  readonly number: number;
  readonly key: string;
}

/** Of a sub-agent that an earlier run has started: only its report would say that it ended, so it is looked after now and then. */
export interface Looks {
  /** Epoch milliseconds. */
  readonly next: number;
  readonly count: number;
}

export interface Stopping {
  readonly reason: string | null;
  readonly at: number;
  /** The stop was sent to what is in flight at this time; after a grace it is not waited for. */
  readonly sentAt: number | null;
}

export interface Retry {
  readonly until: number;
  readonly attempts: number;
  readonly failure: StepFailure;
}

export interface EndedTurn {
  readonly number: number;
  readonly stopReason: StopReason;
  readonly usage: Usage;
  readonly toolCalls: number;
  readonly answerSlot: number | null;
  readonly fallback?: Fallback;
  readonly error?: TurnError;
  /** True: the answer is data that fits the requested schema. */
  readonly fits?: boolean;
}

/** How long the conversation rests between its turns (turn/pace.ts). */
export interface Pace {
  /** Epoch milliseconds of the model's last answer. */
  readonly answered: number;
  /** Milliseconds from such an answer to the turn after it, the newest last. */
  readonly gaps: readonly number[];
}
