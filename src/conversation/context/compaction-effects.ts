/** What compacting and truncating ask of activities, and what these answer. */
import type { ConversationIdentity } from '../../records/identity.js';
import type { Entry, Usage } from '../../records/message.js';
import type { SlotRange } from '../../records/slots.js';
import type { Task, Episode, EpisodeLinks, Fact, CompactionRecord, Replacement } from '../../records/episodes.js';
import type { AskedConsolidation } from '../protocol/memory-contract.js';

/** `compact`: the context so far, of which the older turns are to become memory. `epoch` is the one that it would begin. */
export interface CompactInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly epoch: number;
  /** Of this life: `ep_0001` is its first episode. */
  readonly number: number;
  /** Counts what was begun: the effect's id, so that one that found nothing does not answer for the next. */
  readonly attempt: number;
  /** Numbers what archives and restores in this life: a late attempt of an earlier one changes nothing. */
  readonly move: number;
  /** Why it is done, for people. */
  readonly cause: 'asked' | 'context-full' | 'ratio' | 'budget' | 'hard';
  /** What was left out of the prompt and becomes memory first. */
  readonly leftOut: readonly SlotRange[];
  readonly context: readonly SlotRange[];
  /** Of the context, the messages that are shown by their ends. */
  readonly cited: readonly SlotRange[];
  /** Of the context as it is now. */
  readonly contextTokens: number;
  /** Tokens at which a compaction is due: what stands before the messages afterwards is kept small beside it. */
  readonly line: number;
  /** Tokens: where the older turns free as many, all else stays. 0: they are all that is wanted. */
  readonly enough: number;
  /** Tokens to free where they do not: it goes deeper (compaction/deeper-if-too-little). */
  readonly free: number;
  /** Less than this is not worth a summary. */
  readonly atLeast: number;
  /** Its messages and its last tool round stay. */
  readonly currentTurn: string | null;
  /** A program has named what becomes memory, and nothing else does. Absent: the window decides. */
  readonly chosen?: Chosen;
  readonly task: Task | null;
  readonly model: string;
  /** The models of the agent's list after it. Absent: only this model is called. */
  readonly fallback?: readonly string[];
  readonly agentHash: string;
}

export type Compacted =
  | { readonly kind: 'nothing-to-compact'; readonly epoch: number }
  /** Long messages are shown by their ends from now on, and that is enough: no turn became memory. */
  | ({ readonly kind: 'cited'; readonly epoch: number } & CitedMessages)
  | {
      readonly kind: 'compacted';
      readonly life: string;
      readonly epoch: number;
      /** What stays as real messages. */
      readonly kept: readonly SlotRange[];
      /** What became memory: its entries are archived. */
      readonly archived: readonly SlotRange[];
      readonly turns: readonly string[];
      readonly task: Task;
      /** The text of the new epoch's beginning, and where it lies. */
      readonly base: { readonly ref: string; readonly text: string };
      readonly episode: Episode & EpisodeLinks;
      /** What it stands for, where that is more than what was archived now. */
      readonly covers?: readonly SlotRange[];
      readonly facts: readonly Fact[];
      /** Facts of the scope that count no longer. */
      readonly replaced?: readonly Replacement[];
      readonly method: 'model' | 'repaired' | 'rules' | 'compactor';
      /** Of what it was made, and by whom. */
      readonly record: CompactionRecord;
      /** Estimates of the messages before and after, the base with them. */
      readonly tokensBefore: number;
      readonly tokensAfter: number;
      readonly usage: Usage;
      /** Of what stays. Absent: nothing was cited. */
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
export interface TruncateInput extends Pick<CompactInput, 'identity' | 'epoch' | 'number' | 'agentHash' | 'context' | 'cited'> {
  /** The text before the messages: what is pinned there need not be repeated. Absent: there is none. */
  readonly base?: string;
  /** As in the agent's settings. */
  readonly tokenizer?: string;
  /** Tokens that are too many: total less the hard threshold. */
  readonly excess: number;
  /** Its first message stays, and so does its last round. */
  readonly currentTurn: string | null;
  /** A program has named what leaves, and nothing else does. Absent: the oldest. */
  readonly chosen?: Chosen;
  /** Of the notice that says it. */
  readonly notice: { readonly slot: number; readonly turn: string; readonly seq: number; readonly session: number };
}

export interface Truncated {
  readonly life: string;
  readonly epoch: number;
  readonly dropped: readonly SlotRange[];
  /** Shown by their ends from now on. Absent: none. */
  readonly cited?: readonly SlotRange[];
  /** Estimate of what left the prompt. */
  readonly tokens: number;
  readonly entries: number;
  /** What the model reads in their place; absent when nothing could be dropped. */
  readonly notice?: Entry;
}

/** `uncompact`: the compaction that began this epoch, taken back; what it archived is active again, what it learned is gone. */
export interface UncompactInput {
  readonly identity: ConversationIdentity;
  readonly move: number;
  readonly epoch: number;
  readonly episode: string;
  readonly archived: readonly SlotRange[];
}

/**
 * To the workflow `memory:<scope>`: these messages are to be consolidated (seed 001). Done once per id, which is made of conversation,
 * life, session and range.
 */
type ConsolidationRequest = Omit<AskedConsolidation, 'taskQueue'>;

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

/** Consolidated turns leave the context of a session that goes on (consolidation.ts). */
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
interface MemoryLine {
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
