/** What long-term memory asks of activities, and what these answer (seed 001). */
import type { Episode, EpisodeLinks, Task } from '../../records/episodes.js';
import type { AskedConsolidation } from '../protocol/memory-contract.js';
import type { ConversationIdentity } from '../../records/identity.js';
import type { Usage } from '../../records/message.js';
import type { SlotRange } from '../../records/slots.js';

/**
 * To the workflow `memory:<scope>`: these messages are to be consolidated (seed 001). Done once per id, which is made of conversation,
 * life, session and range.
 */
export type ConsolidationRequest = Omit<AskedConsolidation, 'taskQueue'>;

/** `ask-memory`: hands a request to the memory workflow, which is started where it does not run. */
export interface AskMemoryInput {
  readonly identity: ConversationIdentity;
  readonly request: Omit<ConsolidationRequest, 'id' | 'conversation' | 'life'>;
}

/** `evict`: what a consolidation was about leaves the context for good, or is about to. All of it may be done again. */
export interface EvictInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  /** Numbers what archives and restores in this life: a late attempt of an earlier one changes nothing. */
  readonly move: number;
  readonly what:
    /** All of it leaves, and nothing stands for it. */
    | {
        readonly kind: 'session-end';
        readonly archive: readonly SlotRange[];
        readonly unfinished: readonly Asked[];
        /** What was pinned, for HISTORY. */
        readonly task: Task | null;
      }
    /** A consolidation of the window did not come in time; nothing leaves yet. */
    | { readonly kind: 'overdue'; readonly unfinished: readonly Asked[] }
    | ({ readonly kind: 'trim' } & TrimInput);
}

/** The entries of a request to long-term memory; of `unfinished` ones the last messages go to HISTORY as they are. */
export interface Asked {
  readonly requestId: string;
  readonly slots: readonly SlotRange[];
}

/** Consolidated turns leave the context of a session that goes on (trimming.ts). */
export interface TrimInput {
  /** What is still in the context, or was left out of the prompt, of each consolidation, oldest first. */
  readonly covered: readonly Asked[];
  /** Of these, what was left out of the prompt: it takes nothing there. */
  readonly leftOut: readonly SlotRange[];
  /** The first entries that stay and are older, as after a rewind: the goal may be among them. */
  readonly before: readonly SlotRange[];
  /** That it would begin. */
  readonly epoch: number;
  /** Of the episode that is to stand for them. */
  readonly number: number;
  /** Epoch milliseconds of the session's beginning. */
  readonly since: number;
  readonly task: Task | null;
  /** Estimate of what stands before the messages now. */
  readonly baseTokens: number;
  /** Tokens at which a compaction is due: what stands before the messages is kept small beside it. Histories of before have none. */
  readonly line?: number;
}

export interface Evicted {
  readonly life: string;
  readonly session: number;
  /** True when each of the unfinished ones had been done after all. */
  readonly finished: boolean;
  /** What went to HISTORY as it was; absent where nothing did. */
  readonly fallbacks?: readonly { readonly requestId: string; /** Epoch seconds. */ readonly ts: number; readonly text: string }[];
  /** Absent where nothing left the context: the prompt would have grown by it, or the session ended. */
  readonly trimmed?: TrimmedTurns;
}

export interface TrimmedTurns {
  readonly archived: readonly SlotRange[];
  readonly messages: number;
  /** Of these those that no model had summarized. */
  readonly unsummarized: number;
  /** Estimate of what left the prompt. */
  readonly tokens: number;
  readonly task: Task;
  /** What stands before the messages from now on. */
  readonly base: { readonly ref: string; readonly text: string };
  readonly episode: Episode & Pick<EpisodeLinks, 'supersedes'>;
  /** What it stands for, where that is more than what left the context now. */
  readonly covers?: readonly SlotRange[];
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
