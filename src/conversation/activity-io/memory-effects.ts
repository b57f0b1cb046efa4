/** What long-term memory asks of activities, and what these answer (seed 001). */
import type { ConversationIdentity } from '../../records/identity.js';
import type { Usage } from '../../records/message.js';
import type { SlotRange } from '../../records/slots.js';

/**
 * To the workflow `memory:<scope>`: these messages are to be consolidated (seed 001). Done once per id, which is made of conversation,
 * life, session and range.
 */
export interface ConsolidationRequest {
  readonly id: string;
  /** The conversation's own name for it. */
  readonly requestId: string;
  readonly conversation: string;
  readonly life: string;
  readonly session: number;
  readonly slots: readonly SlotRange[];
  /** How many messages these are, for people. */
  readonly messages: number;
  readonly agent: string;
  /** The conversation's own model, for agents that name no other for this. */
  readonly model: string;
  readonly why: 'reset' | 'window' | 'close';
}

/** `ask-memory`: hands a request to the memory workflow, which is started where it does not run. */
export interface AskMemoryInput {
  readonly identity: ConversationIdentity;
  readonly request: Omit<ConsolidationRequest, 'id' | 'conversation' | 'life'>;
}

/** `evict`: messages leave the context for good, at a session's end or when the window is full. All of it may be done again. */
export interface EvictInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  /** Numbers what archives and restores in this life: a late attempt of an earlier one changes nothing. */
  readonly move: number;
  readonly archive: readonly SlotRange[];
  /** Those of them that the context still has: a compaction may have taken the others out. */
  readonly leaving: readonly SlotRange[];
  /** Consolidations that did not come in time: their last messages go to HISTORY as they are. */
  readonly unfinished: readonly { readonly requestId: string; readonly slots: readonly SlotRange[] }[];
  /** For a session that goes on: when it began (epoch milliseconds). Null: no recap is made. */
  readonly recapSince: number | null;
}

export interface Evicted {
  readonly life: string;
  readonly session: number;
  /** True when each of the unfinished ones had been done after all. */
  readonly finished: boolean;
  readonly recap?: { readonly ref: string; readonly text: string };
  /** Estimate of what left the context. */
  readonly tokens: number;
  /** What went to HISTORY as it was; absent where nothing did. */
  readonly fallbacks?: readonly { readonly requestId: string; /** Epoch seconds. */ readonly ts: number; readonly text: string }[];
}

/** `consolidate`: asks a model, and writes nothing that a prompt or a person sees. */
export interface ConsolidateInput {
  readonly scope: string;
  readonly request: ConsolidationRequest;
  /** What a store must have of what was remembered before; absent: nothing was. */
  readonly written?: WrittenMemory;
}

export interface WrittenMemory {
  /** Of MEMORY.md after the last write. */
  readonly version: string;
  /** True: a summary went to HISTORY. */
  readonly summary: boolean;
}

export type Consolidated =
  /** No message of these is left to be consolidated. */
  | { readonly kind: 'nothing-to-do' }
  /** The model's answers were of no use; what HISTORY gets instead. */
  | { readonly kind: 'unusable'; readonly reason: string; readonly fallback: string; readonly usage: Usage }
  | {
      readonly kind: 'done';
      readonly history: string | null;
      readonly update: MemoryUpdate | null;
      /** Lines that only a tool's word stands behind. */
      readonly proposed: readonly MemoryLine[];
      readonly usage: Usage;
    };

/** A new MEMORY.md, made from the version `from`. */
export interface MemoryUpdate {
  readonly from: string;
  readonly text: string;
  /** The lines that are new in it. */
  readonly added: readonly MemoryLine[];
}

/** A line of memory and where it comes from; `trust` as `memory/documents/` names it. */
export interface MemoryLine {
  readonly line: string;
  readonly source: {
    readonly trust: 'user' | 'model' | 'person' | `tool:${string}`;
    readonly conversation?: string;
    readonly turn_ids?: readonly string[];
    readonly tools?: readonly string[];
  };
}

/** `remember`: what a consolidation has made, written once per `id`. */
export interface RememberInput {
  readonly scope: string;
  readonly id: string;
  readonly cause: 'consolidation' | 'care';
  readonly history: { readonly kind: 'summary' | 'raw-fallback'; readonly text: string } | null;
  readonly update: MemoryUpdate | null;
  readonly proposed: readonly MemoryLine[];
}

export interface Remembered {
  /** Version of MEMORY.md after it. */
  readonly version: string;
}
