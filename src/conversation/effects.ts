/** What steps ask of activities and what activities answer: plain JSON, small, without what history has already. */
import type { Answer } from './answer.js';
import type { FeedEvent } from './contract.js';
import type { AssistantBlock, Entry, JsonObject, Media, ModelStop, Usage } from './message.js';
import type { SlotRange } from './slots.js';
import type { ToolPlan } from './tool-effects.js';

/**
 * Who is asking, beyond what Temporal tells an activity anyway (namespace and workflow id). `life` is the first run id: a new
 * start under a used id is a new life.
 */
export interface ConversationIdentity {
  readonly life: string;
  readonly agent: string;
  readonly scope: string;
}

/** What a conversation may use in all. Absent: no limit of that kind. */
export interface Budget {
  readonly maxCostUsd?: number;
  /** Of prompts and answers together. */
  readonly maxTokens?: number;
}

/** The conversation that asked for this one, and the call that waits for it. */
export interface ParentLink {
  readonly conversation: string;
  readonly life: string;
  readonly callId: string;
  /** 1 for a sub-agent of a conversation that people began. */
  readonly depth: number;
  /** Whose items it sees and adds to, or sees as they were at this time (epoch milliseconds). Absent: it has its own alone. */
  readonly memory?: { readonly session: number; readonly until: number | null };
}

/** What an agent's files and the worker's settings say, as of the start of a turn. */
export interface AgentSettings {
  /** Of everything below and of the files behind it: unchanged means nothing to tell. */
  readonly hash: string;
  /** The beginning of the hash of the agent's files. */
  readonly agentHash: string;
  readonly model: string;
  readonly maxTokens: number;
  readonly maxToolRounds: number;
  /** Tokens that a prompt may have: what the model takes, less its answer and a margin (seed 000, section 10). */
  readonly contextBudget: number;
  /** Share of the budget from which a reported prompt is compacted. */
  readonly compactionRatio: number;
  /** Estimate of the system prompt and the tools together. */
  readonly fixedTokens: number;
  /** Which the worker counts with; absent where the model's is not public: then characters over four. */
  readonly tokenizer?: string;
  readonly handOver: { readonly events: number; readonly bytes: number; readonly updates: number };
  /** Absent in settings of earlier versions: then nothing is truncated. */
  readonly thresholds?: Thresholds;
  /** Of a conversation whose start names none. */
  readonly budget?: Budget;
  /** True: somebody is to be told when a person is waited for. */
  readonly notifies?: boolean;
  /** Absent in settings that an earlier version gave. */
  readonly memory?: MemorySettings;
}

/** Seed 001, Configuration; and the scope's MEMORY.md as of the start of the turn. */
export interface MemorySettings {
  /** Messages beyond which older ones are consolidated and leave the context. */
  readonly window: number;
  /** How many stay. */
  readonly keep: number;
  /** Milliseconds that anybody waits for a consolidation. */
  readonly timeoutMs: number;
  readonly version: string;
  /** How many things the scope is to forget: 0 spares the look at which. */
  readonly forgotten: number;
}

export interface ConfigureRequest {
  readonly agent: string;
  readonly scope: string;
  /** The start argument's model; it wins over agent.json and PERDURA_MODEL. */
  readonly model: string | null;
  readonly knownHash: string | null;
  /** Version of MEMORY.md at the turn before; absent where there was none. */
  readonly knownMemory?: string;
}

export type Configured =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'settings'; readonly settings: AgentSettings }
  | { readonly kind: 'unusable'; readonly type: string; readonly message: string };

export interface MessageToRecord extends Media {
  readonly output?: JsonObject;
  readonly context?: JsonObject;
  readonly messageId: string;
  readonly slot: number;
  readonly turn: string;
  readonly seq: number;
  readonly session: number;
  readonly ts: number;
  readonly text: string;
  /** Slot of the same message under numbers that were never counted (recording.ts, R4): it goes from there. */
  readonly movedFrom?: number;
}

/**
 * `record`: everything short that must reach the store, in one local activity. All of it may be done again.
 * `settle` ends effects whose outcome nobody waits for any more: fence it, then write `entry` unless it has committed.
 */
export interface RecordInput {
  readonly identity: ConversationIdentity;
  readonly messages: readonly MessageToRecord[];
  readonly settle: readonly Settlement[];
  readonly facts: readonly FeedEvent[];
  /** Slots of queued messages to read back (spill.ts). */
  readonly readBack: readonly number[];
  /** True in the first one of each run: are our search attributes registered? */
  readonly asksAttributes: boolean;
  /** A session begins: what the scope knows is to stand before it. */
  readonly opensSession: boolean;
  /** Values for tools that the start has brought. */
  readonly startContext?: JsonObject;
  readonly configure: ConfigureRequest | null;
}

/** A queued message as the store has it; `lost` when it has not. */
export interface QueuedAgain {
  readonly slot: number;
  readonly messageId: string;
  readonly turn: string;
  readonly session: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly bytes: number;
  readonly lost?: boolean;
}

export interface Settlement {
  readonly effect: string;
  readonly entry: Entry | null;
}

export interface Recorded {
  /** One for each message, with what healing needs: a local activity's input is not in history. */
  readonly messages: readonly {
    readonly messageId: string;
    readonly slot: number;
    readonly turn: string;
    readonly session: number;
    readonly ts: number;
    readonly bytes: number;
    /** Where the schema of its answer lies, and the values for tools. */
    readonly output?: string;
    readonly context?: string;
    /** Turn of an earlier message of that id: this one is the same message again. */
    readonly duplicate?: string;
    /** Its slot. */
    readonly first?: number;
    /** Not written: something else lies in its slot. */
    readonly taken?: true;
  }[];
  readonly readBack?: readonly QueuedAgain[];
  /** Where the start's values lie. */
  readonly startContext?: string;
  readonly attributes?: 'registered' | 'missing';
  /** What the scope knows, for a session that begins; absent when it knows nothing. */
  readonly base?: { readonly ref: string; readonly text: string };
  readonly configured: Configured | null;
}

export interface CallModelInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly turn: string;
  readonly call: string;
  readonly slot: number;
  readonly seq: number;
  readonly context: readonly SlotRange[];
  /** The text that stands before these messages in this epoch, by reference. */
  readonly base: string | null;
  /** What is left of messages that were trimmed; stands in the system prompt. Absent: nothing was. */
  readonly recap?: string;
  /** Absent where an earlier version asks: then there is no MEMORY.md. */
  readonly memory?: Pick<MemorySettings, 'version' | 'forgotten'>;
  /** Agent and system prompt as they were at the turn's start. */
  readonly agentHash: string;
  readonly model: string;
  /** Number of the first tool call that this answer may make: ids are `<turn>/c<n>`. */
  readonly firstToolCall: number;
  /** Schema that the turn's answer must fit: reference to its JSON text. */
  readonly output?: string;
  /** Of this turn before this call, for the announcement of its end. */
  readonly soFar: { readonly usage: Usage; readonly toolCalls: number };
}

/** Tokens (seed 004, Token-Based Thresholds), for a model of that size already. */
export interface Thresholds {
  readonly soft: number;
  readonly hard: number;
  readonly truncation: number;
  readonly autoCompact: boolean;
  /** True: the model has the tool to act on a hint. */
  readonly suggests: boolean;
}

/** `heal`: queued messages that the store has lost, to be rebuilt from history. */
export interface HealInput {
  readonly identity: ConversationIdentity;
  readonly slots: readonly number[];
}

/** `recall`: the text that an ended turn answered with, when the workflow no longer has it at hand. */
export interface RecallInput {
  readonly identity: ConversationIdentity;
  readonly slot: number;
}

/** Null when the store has lost it. */
export type Recalled = Answer | null;

export interface ModelAnswer {
  readonly life: string;
  readonly session: number;
  readonly turn: string;
  readonly call: string;
  readonly slot: number;
  readonly ts: number;
  readonly model: string;
  readonly blocks: readonly AssistantBlock[];
  readonly stop: ModelStop;
  readonly usage: Usage;
  /** One for each tool call of `blocks`, in their order. */
  readonly plans: readonly ToolPlan[];
  /** Of the bytes that the prompt begins with: system prompt, tools, the epoch's base. Absent in answers of earlier versions. */
  readonly prefix?: string;
  /** What is wrong with an answer that had to fit a schema. Absent: nothing, or there was none. */
  readonly misfit?: string;
  /** False: the store did not take it; a `persist` step must write it before the next model call. */
  readonly persisted: boolean;
  /** True: it was settled before it could commit, and counts for its cost only. */
  readonly fenced?: boolean;
}

/** Why a step did not succeed, in the classifier's words. */
export interface StepFailure {
  readonly type: string;
  readonly message: string;
  /** True: trying again later may help. */
  readonly transient: boolean;
  readonly retryAfterMs?: number;
}
