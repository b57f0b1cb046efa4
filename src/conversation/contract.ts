/** What crosses the border of a conversation, both ways (design section 3). Programs outside this repository rely on it. */
import type { BodyRef, Media, Usage } from './message.js';

export type Delivery = 'queue' | 'steer' | 'interrupt';

/** One message to a conversation. The same `id` twice is one message. */
export interface Message extends Media {
  readonly id?: string;
  readonly text: string;
  readonly delivery?: Delivery;
}

export type StopReason =
  'end' | 'interrupted' | 'tool-limit' | 'budget' | 'refused' | 'failed' | 'continues' | 'queued' | 'withdrawn' | 'reset';

export interface TurnError {
  /** Stable, for programs: `auth`, `rate-limit`, `unknown-agent`, … */
  readonly type: string;
  /** For people: what was attempted, on what, what to do. */
  readonly message: string;
}

/** How a turn went. A failed turn is data: the update that asked for it succeeds. */
export interface TurnResult {
  /** null only for a reset. */
  readonly turnId: string | null;
  /** The final answer; its beginning, when `textRef` says where the whole lies. */
  readonly text: string;
  readonly textRef?: BodyRef;
  readonly stopReason: StopReason;
  readonly usage: Usage;
  /** How many tools were called. */
  readonly toolCalls: number;
  readonly error?: TurnError;
}

export type Phase =
  'idle' | 'thinking' | 'running-tools' | 'waiting-for-person' | 'waiting-to-retry' | 'compacting' | 'resetting' | 'stepping' | 'closing';

export interface Status {
  readonly phase: Phase;
  /** In words, with a time where there is one: `rate-limit: 429 …; trying again at 2026-11-21T10:00:00.000Z`. */
  readonly waitingFor?: string;
  readonly session: number;
  /** Number of the latest turn. */
  readonly turn: number;
  /** How many turns have ended. */
  readonly turns: number;
  readonly epoch: number;
  readonly mode: 'auto' | 'stepping';
  readonly stepLock: string | null;
  readonly queued: number;
  readonly context: {
    readonly tokens: number;
    readonly budget: number;
    readonly chunks: number;
    readonly prefixHash: string | null;
    readonly prefixChanges: number;
    /** Why it changed last. */
    readonly prefixCause: 'new epoch' | 'memory' | 'agent or tools' | null;
    readonly compactions: number;
  };
  /** What long-term memory does not have yet of this session. */
  readonly window: {
    /** Epoch milliseconds of the session's beginning; trimming does not change it (seed 001, Session Metadata Preservation). */
    readonly since: number;
    /** User messages and final answers. */
    readonly messages: number;
    /** Beyond it older ones are consolidated; null until the first turn. */
    readonly limit: number | null;
    /** Consolidations that are waited for. */
    readonly consolidating: number;
    /** Those that the memory workflow has not been told of yet. */
    readonly owed: number;
  };
  readonly pendingApprovals: number;
  readonly usage: Usage;
  readonly historyEvents: number;
  /** Beyond design section 3: what a client needs to find the conversation's traces, and what was refused. */
  readonly agent: string;
  readonly scope: string;
  readonly model: string | null;
  readonly title: string | null;
  readonly life: string;
  /** Where it comes from; absent for a conversation of its own. */
  readonly origin?: Pick<Origin, 'kind' | 'conversation' | 'turn'>;
  readonly rejectedInputs: { readonly count: number; readonly last: readonly RejectedInput[] };
}

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
    | { readonly kind: 'message'; readonly messageId: string; readonly turnId: string; readonly bytes: number; readonly delivery: Delivery }
    | { readonly kind: 'reset'; readonly resetId: string }
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
      /** Who summarized: the model, the model at its second try, or rules without a model. */
      readonly method: 'model' | 'repaired' | 'rules';
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | { readonly kind: 'undone'; readonly epoch: number }
  | { readonly kind: 'nothing-to-compact' | 'nothing-to-undo' }
  | { readonly kind: 'failed'; readonly message: string };

/** Answer of the query `context`: what the next model call would see, in its order. Tokens are estimates, but for `reported`. */
export interface ContextIndex {
  readonly epoch: number;
  readonly session: number;
  readonly budget: number;
  /** Tokens from which the older turns are compacted. */
  readonly compactsAt: number;
  readonly total: number;
  /** Of the last prompt, as the provider counted it. */
  readonly reported: number | null;
  readonly compactions: number;
  readonly canUndo: boolean;
  readonly chunks: readonly {
    readonly kind: 'SYSTEM' | 'MEMORY' | 'WORKING_FLOW';
    readonly tokens: number;
    /** First and last of each range, for messages. */
    readonly slots?: readonly (readonly [number, number])[];
    readonly ref?: string;
  }[];
}

export interface ResetResult {
  readonly reply: 'Session cleared.';
  /** Number of the session that begins. */
  readonly session: number;
  readonly consolidation: Consolidation;
}

/** How a consolidation ended: MEMORY.md and HISTORY have it, or HISTORY has its last messages as they were. */
export type Consolidation = 'model' | 'raw-fallback' | 'nothing-to-do';

/** Argument of the workflow `conversation` at its start. */
export interface StartOptions {
  readonly agent?: string;
  readonly scope?: string;
  readonly title?: string;
  readonly model?: string;
  /** What it begins with: the turns of another life, up to one of them. */
  readonly origin?: Origin;
}

export interface Origin {
  readonly kind: 'fork' | 'resume';
  readonly conversation: string;
  readonly life: string;
  /** A run of that life, for healing; absent where Temporal has none any more. */
  readonly run?: string;
  /** Default: the last one. */
  readonly turn?: string;
}

/** Answer of the update `opened`, once a conversation with an origin has its beginning. */
export interface Opened {
  readonly conversation: string;
  /** The last one that is shared. */
  readonly turn: string;
  /** How many turns it begins with, and how many of them its model sees word for word. */
  readonly turns: number;
  readonly inContext: number;
  /** Estimate. */
  readonly tokens: number;
}

/** Answer of the update `rewind`. */
export interface RewindResult {
  readonly to: string;
  /** Turns that were cut, and the branch in which they are kept; null when nothing came after. */
  readonly cut: number;
  readonly branch: number | null;
  readonly session: number;
  readonly epoch: number;
}

/** What the workflow completes with after `close`. */
export interface ConversationOutcome {
  readonly turns: number;
  readonly sessions: number;
  readonly usage: Usage;
}

/** Live events, as they lie in the feed. `attempt` is random per try of a model call: a new one means "forget what you drew of this call". */
export type FeedEvent =
  | { readonly kind: 'message'; readonly turn: string; readonly messageId: string; readonly preview: string; readonly ts: number }
  | { readonly kind: 'thinking'; readonly turn: string; readonly call: string; readonly attempt: string; readonly text: string }
  | { readonly kind: 'text'; readonly turn: string; readonly call: string; readonly attempt: string; readonly text: string }
  | { readonly kind: 'reset'; readonly turn: string; readonly call: string; readonly attempt: string }
  | { readonly kind: 'tool-started'; readonly turn: string; readonly callId: string; readonly name: string; readonly input: string }
  | {
      readonly kind: 'tool-finished';
      readonly turn: string;
      readonly callId: string;
      readonly name: string;
      readonly outcome: string;
      readonly preview: string;
    }
  | { readonly kind: 'waiting'; readonly turn: string; readonly for: string; readonly until: number }
  | { readonly kind: 'turn-finished'; readonly turn: string; readonly result: TurnResult }
  | { readonly kind: 'session'; readonly session: number }
  | {
      readonly kind: 'compacted';
      readonly turn: string;
      readonly epoch: number;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | { readonly kind: 'resync' };

export const LIMITS = {
  /** UTF-8 bytes of one message, images, audio and video included; longer ones travel by reference. */
  messageBytes: 1024 * 1024,
  /** Levels of nesting in anything that comes in. */
  depth: 64,
  /** Message ids remembered in state; older ones are known to the store. */
  rememberedIds: 256,
  /** Turns that `turn` answers at once. */
  rememberedTurns: 50,
  /** Waiting `send`s after which the next is told `queued`; the server takes 10 updates in flight. */
  waitingSends: 6,
  idLength: 128,
  /** Images, audio and video together. */
  mediaPerMessage: 20,
} as const;

/** Conversations, agents and scopes alike. */
export const ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
