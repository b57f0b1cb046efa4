/** Inputs and results of the activities that compact, truncate and consolidate. */
import type { ConversationIdentity } from '../../records/identity.js';
import type { Entry, Usage } from '../../records/message.js';
import type { SlotRange } from '../../records/slots.js';
import type { Task, Episode, EpisodeLinks, Fact, CompactionRecord, Replacement } from '../../records/episodes.js';
import type { AskedConsolidation } from '../protocol/memory-contract.js';

/** `compact`: turns the older turns of the context into memory. `epoch`: the one that it would begin. */
export interface CompactInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly epoch: number;
  /** Number of the episode in this life, from 1 (`ep_0001`). */
  readonly number: number;
  /** Counts compactions that were begun, for the effect's id, so that one without a result does not answer for the next. */
  readonly attempt: number;
  /** Counts effects that archive or restore in this life, so that a late attempt of an earlier one changes nothing. */
  readonly move: number;
  /** Why it is done, for people. */
  readonly cause: 'asked' | 'context-full' | 'ratio' | 'budget' | 'hard';
  /** Truncated messages, which become memory first. */
  readonly leftOut: readonly SlotRange[];
  readonly context: readonly SlotRange[];
  /** Cited messages of the context: the prompt shows only their beginning and end. */
  readonly cited: readonly SlotRange[];
  /** Tokens of the context now. */
  readonly contextTokens: number;
  /** Tokens at which a compaction is due; the new base is kept small in proportion. */
  readonly line: number;
  /** Tokens: if the older turns free this many, all else stays. 0: only the older turns are wanted. */
  readonly enough: number;
  /** Tokens to free if they do not: the compaction goes deeper (compaction/deeper-if-too-little). */
  readonly free: number;
  /** Tokens: freeing fewer is not worth a summary. */
  readonly atLeast: number;
  /** Its messages and its last tool round stay. */
  readonly currentTurn: string | null;
  /** Chunks that a program chose: only these become memory. Absent: the window decides. */
  readonly chosen?: Chosen;
  readonly task: Task | null;
  readonly model: string;
  /** Tokens of an estimated token of that model; absent: 1. */
  readonly tokenRatio?: number;
  /** The models of the agent's list after it. Absent: only this model is called. */
  readonly fallback?: readonly string[];
  readonly agentHash: string;
}

export type Compacted =
  | { readonly kind: 'nothing-to-compact'; readonly epoch: number }
  /** Citing long messages was enough: no turn became memory. */
  | ({ readonly kind: 'cited'; readonly epoch: number } & CitedMessages)
  | {
      readonly kind: 'compacted';
      readonly life: string;
      readonly epoch: number;
      /** Messages that stay. */
      readonly kept: readonly SlotRange[];
      /** What became memory: its entries are archived. */
      readonly archived: readonly SlotRange[];
      readonly turns: readonly string[];
      readonly task: Task;
      /** The text that begins the new epoch, and its reference. */
      readonly base: { readonly ref: string; readonly text: string };
      readonly episode: Episode & EpisodeLinks;
      /** What the episode covers, if more than what was archived now. */
      readonly covers?: readonly SlotRange[];
      readonly facts: readonly Fact[];
      /** Facts of the scope that no longer hold. */
      readonly replaced?: readonly Replacement[];
      readonly method: 'model' | 'repaired' | 'rules' | 'compactor';
      /** What the summary was made from, and by which model. */
      readonly record: CompactionRecord;
      /** Estimates of the messages before and after, the base with them. */
      readonly tokensBefore: number;
      readonly tokensAfter: number;
      readonly usage: Usage;
      /** Cited messages among those that stay. Absent: none. */
      readonly cited?: readonly SlotRange[];
    };

export interface Chosen {
  readonly requestId: string;
  readonly slots: readonly SlotRange[];
}

interface CitedMessages {
  readonly cited: readonly SlotRange[];
  /** Estimates of the messages before and after. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** `truncate`: which of the oldest entries leave the prompt, so that `excess` tokens are saved (seed 004, Truncation Strategy). */
export interface TruncateInput extends Pick<
  CompactInput,
  'identity' | 'epoch' | 'number' | 'agentHash' | 'context' | 'cited' | 'tokenRatio'
> {
  /** Reference to the text before the messages; the notice need not repeat what is pinned there. Absent: none. */
  readonly base?: string;
  /** As in the agent's settings. */
  readonly tokenizer?: string;
  /** Tokens to save: the total minus the hard threshold. */
  readonly excess: number;
  /** Its first message stays, and so does its last round. */
  readonly currentTurn: string | null;
  /** Chunks that a program chose: only these leave. Absent: the oldest leave. */
  readonly chosen?: Chosen;
  /** Place of the notice about the truncation. */
  readonly notice: { readonly slot: number; readonly turn: string; readonly seq: number; readonly session: number };
}

export interface Truncated {
  readonly life: string;
  readonly epoch: number;
  readonly dropped: readonly SlotRange[];
  /** Messages that were cited instead. Absent: none. */
  readonly cited?: readonly SlotRange[];
  /** Estimate of what left the prompt. */
  readonly tokens: number;
  readonly entries: number;
  /** What the model reads in their place; absent if nothing was dropped. */
  readonly notice?: Entry;
}

/** `uncompact`: undoes the compaction that began this epoch: its archived entries become active again, and its facts are removed. */
export interface UncompactInput {
  readonly identity: ConversationIdentity;
  readonly move: number;
  readonly epoch: number;
  readonly episode: string;
  readonly archived: readonly SlotRange[];
}

/**
 * Asks the workflow `memory:<scope>` to consolidate messages (seed 001), once per id, which consists of conversation, life, session and
 * range.
 */
type ConsolidationRequest = Omit<AskedConsolidation, 'taskQueue'>;

/** `ask-memory`: sends a request to the memory workflow, and starts it if it does not run. */
export interface AskMemoryInput {
  readonly identity: ConversationIdentity;
  readonly request: Omit<ConsolidationRequest, 'id' | 'conversation' | 'life'>;
}

/** `evict`: messages leave the context after their consolidation, or their consolidation is given up. Idempotent. */
export interface EvictInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  /** As in `CompactInput`. */
  readonly move: number;
  readonly what:
    /** The whole context leaves, without a summary in its place. */
    | {
        readonly kind: 'session-end';
        readonly archive: readonly SlotRange[];
        readonly unfinished: readonly Asked[];
        /** What was pinned, for HISTORY. */
        readonly task: Task | null;
      }
    /** A consolidation of the window timed out; nothing leaves yet. */
    | { readonly kind: 'overdue'; readonly unfinished: readonly Asked[] }
    | ({ readonly kind: 'trim' } & TrimInput);
}

/** The entries of a request to long-term memory; of `unfinished` ones the last messages go to HISTORY as they are. */
export interface Asked {
  readonly requestId: string;
  readonly slots: readonly SlotRange[];
}

/** Consolidated turns leave the context of a session that goes on (consolidation.ts). */
export interface TrimInput {
  /** For each consolidation, oldest first: its messages that are in the context or truncated, and what it has handed over. */
  readonly covered: readonly (Asked & { readonly handover?: string })[];
  /** Of these, truncated messages, which take no room in the prompt. */
  readonly leftOut: readonly SlotRange[];
  /** Older entries that stay, as after a rewind: the goal may be among them. */
  readonly before: readonly SlotRange[];
  /** The epoch that the trim would begin. */
  readonly epoch: number;
  /** Number of the episode that replaces them. */
  readonly number: number;
  /** Epoch milliseconds of the session's beginning. */
  readonly since: number;
  readonly task: Task | null;
  /** Estimated tokens of the current base. */
  readonly baseTokens: number;
  /** As in `CompactInput`. */
  readonly tokenRatio?: number;
  /** Tokens at which a compaction is due; the base is kept small in proportion. Absent in older histories. */
  readonly line?: number;
}

export interface Evicted {
  readonly life: string;
  readonly session: number;
  /** True if all unfinished consolidations had finished after all. */
  readonly finished: boolean;
  /** Messages that went to HISTORY unsummarized; absent if none did. */
  readonly fallbacks?: readonly { readonly requestId: string; /** Epoch seconds. */ readonly ts: number; readonly text: string }[];
  /** Absent if nothing was trimmed: the prompt would have grown, or the session ended. */
  readonly trimmed?: TrimmedTurns;
}

export interface TrimmedTurns {
  readonly archived: readonly SlotRange[];
  readonly messages: number;
  /** Of these, messages that no model had summarized. */
  readonly unsummarized: number;
  /** Estimate of what left the prompt. */
  readonly tokens: number;
  readonly task: Task;
  /** The new base. */
  readonly base: { readonly ref: string; readonly text: string };
  readonly episode: Episode & Pick<EpisodeLinks, 'supersedes'>;
  /** What the episode covers, if more than what left the context now. */
  readonly covers?: readonly SlotRange[];
}

/** `consolidate`: asks a model, and writes nothing that a prompt or a person sees. */
export interface ConsolidateInput {
  readonly scope: string;
  readonly request: ConsolidationRequest;
  /** What the store must have from earlier consolidations; absent: nothing. */
  readonly written?: WrittenMemory;
}

export interface WrittenMemory {
  /** Of MEMORY.md after the last write. */
  readonly version: string;
  /** True: a summary went to HISTORY. */
  readonly summary: boolean;
}

export type Consolidated =
  /** None of the messages is left to consolidate. */
  | { readonly kind: 'nothing-to-do' }
  /** The model's answers were unusable; HISTORY gets `fallback` instead. */
  | { readonly kind: 'unusable'; readonly reason: string; readonly fallback: string; readonly usage: Usage }
  | {
      readonly kind: 'done';
      readonly history: string | null;
      readonly update: MemoryUpdate | null;
      /** Lines that wait for a person. */
      readonly proposed: readonly MemoryLine[];
      /** Reference to what is handed over to a conversation that goes on without these messages, in its bodies. Absent: nothing is. */
      readonly handover?: string;
      readonly usage: Usage;
    };

/** A new MEMORY.md, made from the version `from`. */
export interface MemoryUpdate {
  readonly from: string;
  readonly text: string;
  /** The lines that are new in it. */
  readonly added: readonly MemoryLine[];
  /** UTF-8 bytes that memory may have, as the agent wanted; absent in what older versions made. */
  readonly limit?: number;
}

/** A line of memory and where it comes from; `trust` as `memory/documents/` names it. */
interface MemoryLine {
  readonly line: string;
  readonly source: {
    readonly trust: 'user' | 'model' | 'person' | 'file' | 'application' | `tool:${string}`;
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
