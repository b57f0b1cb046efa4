/** What crosses the border of a conversation, both ways (design section 3). Programs outside this repository rely on it. */
import type { Delivery, Message } from './message.js';
import type { Origin } from './input.js';
import type { ControlMode, SubAgent } from './stepping.js';
import type { Budget } from '../../records/identity.js';
import type { Fallback, StopReason, TurnError, WaitKind } from '../../records/feed-event.js';
import type { Usage } from '../../records/message.js';

export { CHILD_PATTERN, CONVERSATION_PATTERN, ID_PATTERN, LIFE_PATTERN, LIMITS } from './limits.js';
export { STOP_REASONS } from '../../records/feed-event.js';
export type { Fallback, FeedEvent, StopReason, TurnError, TurnResult, WaitKind } from '../../records/feed-event.js';
export type { Delegation } from './human-input.js';
export type { StartOptions } from './input.js';
export type { Delivery, Message } from './message.js';
export type { QueueEdit } from './stepping.js';

/** What a conversation does now, in one word. */
export type Phase =
  'idle' | 'thinking' | 'running-tools' | 'waiting-for-person' | 'waiting-to-retry' | 'compacting' | 'resetting' | 'stepping' | 'closing';

/** What a conversation waits for, for programs. `until` is an ISO 8601 time. */
export type Waiting =
  /** Of a fork or a resumed life: for the turns that it begins with. */
  | { readonly kind: 'origin'; readonly conversation: string }
  /** `reason` is a failure's stable type: `rate-limit`, `auth`, … */
  | { readonly kind: 'retry'; readonly reason: string; readonly message: string; readonly until: string }
  /** For the consolidation of a session that has ended. */
  | { readonly kind: 'memory'; readonly scope: string; readonly until: string }
  /** `next` is what the step would do, in words. */
  | { readonly kind: 'step'; readonly next: string }
  | { readonly kind: 'breakpoint'; readonly next: string; readonly why: string }
  /** For a person; `conversation` may be a sub-agent, `others` counts the further requests. */
  | {
      readonly kind: WaitKind;
      readonly conversation: string;
      readonly callId: string;
      readonly tool: string;
      readonly target: string;
      readonly others: number;
      readonly until: string;
    }
  /** `tool` waits for a worker of `taskQueue`; since that time none had taken it. */
  | { readonly kind: 'worker'; readonly tool: string; readonly taskQueue: string; readonly since: string }
  /** A tool waits for a time. */
  | { readonly kind: 'time'; readonly tool: string; readonly until: string }
  | { readonly kind: 'sub-agent'; readonly conversation: string };

/** How a conversation stands, as its workflow answers. */
export interface Status {
  readonly phase: Phase;
  /** Absent where nothing is waited for, and from a worker of an older version. */
  readonly waiting?: Waiting;
  /** The same in words, with a time where there is one: `rate-limit: 429 …; trying again at 2026-11-21T10:00:00.000Z`. */
  readonly waitingFor?: string;
  readonly session: number;
  /** Number of the latest turn. */
  readonly turn: number;
  /** How many turns have ended. */
  readonly turns: number;
  /** Epoch milliseconds of its model's last answer. Absent: there was none. */
  readonly answeredAt?: number;
  readonly epoch: number;
  readonly mode: ControlMode;
  readonly stepLock: string | null;
  /** Why it stopped by itself, and what a step would do; null in `auto`. */
  readonly pausedBy: string | null;
  readonly nextStep: string | null;
  /** Those at work, each before its sub-agents; absent where there are none. */
  readonly subAgents?: readonly SubAgent[];
  readonly queued: number;
  readonly context: {
    readonly tokens: number;
    readonly budget: number;
    /** Tokens from which older turns become memory. Absent: not known before the first turn. */
    readonly compactsAt?: number;
    readonly chunks: number;
    readonly prefixHash: string | null;
    readonly prefixChanges: number;
    /** Why it changed last. */
    readonly prefixCause: 'new epoch' | 'memory' | 'model' | 'agent or tools' | null;
    readonly compactions: number;
  };
  /** What long-term memory does not have yet of this session. */
  readonly window: {
    /** Epoch milliseconds of the session's beginning; trimming does not change it (seed 001, Session Metadata Preservation). */
    readonly since: number;
    /** User messages and final answers since the last consolidation. */
    readonly messages: number;
    /** Those before them that are still in the prompt, although long-term memory has them. */
    readonly consolidated: number;
    /** Beyond it older ones are consolidated; null until the first turn. */
    readonly limit: number | null;
    /** Consolidations that are waited for. */
    readonly consolidating: number;
    /** Requests that the memory workflow does not have yet. */
    readonly owed: number;
  };
  readonly pendingApprovals: number;
  /** What the conversation may use in all; null without a limit. */
  readonly budget: Budget | null;
  readonly usage: Usage;
  readonly historyEvents: number;
  /** Of the last turn, where that has no whole answer; absent otherwise, and from a worker of an older version. */
  readonly lastError?: TurnError & { readonly turnId: string; readonly stopReason: StopReason };
  /** Beyond design section 3: what a client needs to find the conversation's traces, and what was refused. */
  readonly agent: string;
  /** Its whole name: a tenant's begins with the tenant and a full stop. */
  readonly scope: string;
  /** Absent: of none. */
  readonly tenant?: string;
  /** That answers next; null while it is not known. */
  readonly model: string | null;
  /** Of the start, or set since; null: the agent's model answers. Absent from a worker of an older version. */
  readonly chosenModel?: string | null;
  /** Calls that a person has allowed for good, until the session is cleared. Absent: none. */
  readonly allowedCalls?: readonly { readonly tool: string; readonly target: string; readonly callId: string }[];
  /** Another model than the first of the agent's list answers the running turn, or has answered the latest. */
  readonly fallback?: Fallback & { readonly turn: string };
  readonly title: string | null;
  readonly life: string;
  /** Where it comes from; absent for a conversation with no origin. */
  readonly origin?: Pick<Origin, 'kind' | 'conversation' | 'turn'>;
  readonly rejectedInputs: { readonly count: number; readonly last: readonly RejectedInput[] };
  /** Of application events: chunks that stand in the context, events without a reducer, and those on which a reducer failed. */
  readonly appEvents?: {
    readonly chunks: number;
    readonly unreduced: { readonly count: number; readonly types: readonly string[] };
    readonly parkedCount: number;
    readonly parked: readonly { readonly id: string; readonly type: string; readonly error: string; readonly at: number }[];
  };
}

/** Something that was sent and not taken. */
export interface RejectedInput {
  readonly name: string;
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** Seed 004. `id` begins with `qevt_`; `queuedAt` is epoch milliseconds. */
export interface QueuedEvent {
  readonly id: string;
  readonly event:
    | {
        readonly kind: 'message';
        readonly messageId: string;
        readonly turnId: string;
        readonly bytes: number;
        readonly delivery: Delivery;
        /** The first words, on one line; absent where it has none, or an earlier version answers. */
        readonly preview?: string;
      }
    | { readonly kind: 'reset'; readonly resetId: string }
    | { readonly kind: 'app'; readonly type: string; readonly id: string }
    /** Messages further back, which lie in the store. */
    | { readonly kind: 'more'; readonly count: number };
  readonly queuedAt: number;
}

/** Answer of the updates `compact` and `undoCompaction`. */
export type CompactionOutcome =
  | {
      readonly kind: 'compacted';
      readonly epoch: number;
      /** How many turns became memory. */
      readonly turns: number;
      /** Who summarized: the model, the model at its second try, rules without a model, or a custom compactor. */
      readonly method: 'model' | 'repaired' | 'rules' | 'compactor';
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  /** Long messages are shown by their ends from now on, and that was enough: no turn became memory. */
  | { readonly kind: 'cited'; readonly messages: number; readonly tokensBefore: number; readonly tokensAfter: number }
  | { readonly kind: 'undone'; readonly epoch: number }
  | { readonly kind: 'truncated'; readonly tokensBefore: number; readonly tokensAfter: number; readonly entries: number }
  | { readonly kind: 'nothing-to-compact' | 'nothing-to-undo' | 'nothing-to-truncate' }
  | { readonly kind: 'failed'; readonly message: string };

/** Answer of the query `context`: what the next model call would see, in its order. Tokens are estimates, but for `reported`. */
export interface ContextIndex {
  readonly epoch: number;
  readonly session: number;
  readonly budget: number;
  /** The assumed budget, where the model has refused a prompt and so takes less; absent where it never has. */
  readonly assumedBudget?: number;
  /** Tokens from which the older turns are compacted. */
  readonly compactsAt: number;
  readonly total: number;
  /** That the worker counts with; absent where the model's is not public: then texts are estimated by their scripts. */
  readonly tokenizer?: string;
  /** Tokens of an estimated token, as this conversation's prompts have shown. Absent: 1. */
  readonly tokenRatio?: number;
  /** Of the last prompt, as the provider counted it. */
  readonly reported: number | null;
  readonly compactions: number;
  readonly canUndo: boolean;
  /**
   * What long-term memory has and the prompt need not have any longer (`memory.trim`): messages still in it, and from how many tokens on
   * they leave; and what left it in this session. For `unsummarized` ones shortened lines stand, for the others their summary. Absent:
   * there was nothing of it yet.
   */
  readonly window?: {
    readonly consolidated: number;
    /** null: at once. */
    readonly trimsFrom: number | null;
    readonly trims: number;
    readonly messages: number;
    readonly unsummarized: number;
  };
  readonly chunks: readonly {
    readonly kind: 'SYSTEM' | 'MEMORY' | 'WORKING_FLOW';
    readonly tokens: number;
    /** First and last of each range, for messages. */
    readonly slots?: readonly (readonly [number, number])[];
    /** Of the text before the messages, and of the system prompt as it was sent last. */
    readonly ref?: string;
    /** Of the list of tools that stood with that system prompt. */
    readonly tools?: string;
  }[];
  /** Of these messages, persons' long ones that are shown by their beginning and end. Absent: none. */
  readonly cited?: readonly (readonly [number, number])[];
  /** Messages that truncation has left out of the prompt until the next summary. Absent: none. */
  readonly leftOut?: readonly (readonly [number, number])[];
}

/** How a reset went: a new session has begun. */
export interface ResetResult {
  readonly reply: 'Session cleared.';
  /** Number of the session that begins. */
  readonly session: number;
  readonly consolidation: Consolidation;
}

/** How a consolidation ended: MEMORY.md and HISTORY have it, or HISTORY has its last messages as they were. */
export type Consolidation = 'model' | 'raw-fallback' | 'nothing-to-do';

/** Payload of the update `rewind`: the last turn that stays, or the first that goes. The same `id` twice is one rewind. */
export type RewindRequest = {
  readonly id?: string;
  /** Replaces the removed messages: it is answered first. */
  readonly message?: Message;
} & ({ readonly to: string; readonly before?: undefined } | { readonly before: string; readonly to?: undefined });

/** A receipt for a message. */
export interface Enqueued {
  readonly messageId: string;
  /** The turn that it becomes; null while it waits to join the running one. */
  readonly turnId: string | null;
  readonly acceptedAs: Delivery | 'duplicate';
  /** How many come before it. */
  readonly position: number;
}

/** Whether a message was taken back. */
export interface Withdrawn {
  readonly messageId: string;
  readonly withdrawn: boolean;
  /** Why not. */
  readonly reason?: string;
}

/** What the workflow completes with after `close`. */
export interface ConversationOutcome {
  readonly turns: number;
  readonly sessions: number;
  readonly usage: Usage;
}

/** The search attribute `AgentStatus`. */
export type AgentStatus = 'running' | 'waiting' | 'failed' | 'done';
