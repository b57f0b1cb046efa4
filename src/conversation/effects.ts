/** What steps ask of activities and what activities answer: plain JSON, small, without what history has already. */
import type { Answer } from './answer.js';
import type {
  AssistantBlock,
  Body,
  Entry,
  ItemRef,
  JsonObject,
  JsonValue,
  Media,
  ModelStop,
  ToolOutcome,
  ToolResultMessage,
  Usage,
} from './message.js';
import type { FeedEvent, Origin } from './contract.js';
import type { Beginning, Cut } from './lives.js';
import type { SlotRange } from './slots.js';

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

/** `notify`: somebody is to hear that a person is waited for. */
export interface NotifyInput {
  readonly identity: ConversationIdentity;
  readonly title: string | null;
  readonly waiting: readonly {
    readonly callId: string;
    readonly kind: 'approval' | 'question';
    readonly tool: string;
    readonly askedIn: number;
    readonly until: number;
  }[];
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

/** `compact`: the context so far, of which the older turns are to become memory. `epoch` is the one that it would begin. */
export interface CompactInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly epoch: number;
  /** Of this life: `ep_0001` is its first episode. */
  readonly number: number;
  /** Counts what was begun: the effect's id, so that one that found nothing does not answer for the next. */
  readonly attempt: number;
  readonly context: readonly SlotRange[];
  /** Left alone, with its last whole turns before it. */
  readonly currentTurn: string | null;
  readonly task: Task | null;
  readonly model: string;
  readonly agentHash: string;
}

export type Compacted =
  | { readonly kind: 'nothing-to-compact'; readonly epoch: number }
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
      readonly episode: Episode;
      readonly facts: readonly Fact[];
      readonly method: 'model' | 'repaired' | 'rules' | 'compactor';
      /** Of what it was made, and by whom; absent in histories of earlier versions. */
      readonly record?: CompactionRecord;
      /** Estimates of the messages before and after, the base with them. */
      readonly tokensBefore: number;
      readonly tokensAfter: number;
      readonly usage: Usage;
    };

/** Kept with the episode, so that "why did it forget?" has an answer: the episode has the turns and the summary. */
export interface CompactionRecord {
  /** sha256, hex, of what it was made of: the messages, the goal, the open tasks, the progress and the facts known by then. */
  readonly inputsHash: string;
  /** `WorkingFlowCompactor`, or one of one's own. */
  readonly compactor: string;
  readonly method: 'model' | 'repaired' | 'rules' | 'compactor';
  /** `provider/model` that was there to be asked. */
  readonly model: string;
  /** Why not the agent's own compactor, or not at the first try. */
  readonly failure?: string;
  /** Estimates of the messages before and after, the base with them. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** What the conversation is for; pinned, whatever else becomes memory (design section 4). */
export interface Task {
  readonly goal: string;
  readonly openTasks: readonly string[];
}

/** As seed 000, section 21, names and writes them. */
export interface Episode {
  readonly id: string;
  /** Epoch seconds. */
  readonly ts: number;
  readonly turn_ids: readonly string[];
  readonly summary: string;
  readonly tags: readonly string[];
  readonly salience: number;
}

export interface Fact {
  readonly id: string;
  readonly ts: number;
  readonly fact: string;
  readonly tags: readonly string[];
  readonly confidence: number;
  readonly salience: number;
}

/** `truncate`: which of the oldest entries leave the prompt, so that `excess` tokens are saved (seed 004, Truncation Strategy). */
export interface TruncateInput {
  readonly identity: ConversationIdentity;
  readonly epoch: number;
  readonly number: number;
  readonly context: readonly SlotRange[];
  /** Tokens that are too many: total less the hard threshold. */
  readonly excess: number;
  /** Its first message stays, and so does its last round. */
  readonly currentTurn: string | null;
  /** Of the notice that says it. */
  readonly notice: { readonly slot: number; readonly turn: string; readonly seq: number; readonly session: number };
}

export interface Truncated {
  readonly life: string;
  readonly epoch: number;
  readonly dropped: readonly SlotRange[];
  /** Estimate of what left the prompt. */
  readonly tokens: number;
  readonly entries: number;
  /** What the model reads in their place; absent when nothing could be dropped. */
  readonly notice?: Entry;
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

/** `uncompact`: the compaction that began this epoch, taken back; what it archived is active again, what it learned is gone. */
export interface UncompactInput {
  readonly identity: ConversationIdentity;
  readonly epoch: number;
  readonly episode: string;
  readonly archived: readonly SlotRange[];
}

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

/** `put-away`: messages leave the context for good, at a session's end or when the window is full. All of it may be done again. */
export interface PutAwayInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly archive: readonly SlotRange[];
  /** Those of them that the context still has: a compaction may have taken the others out. */
  readonly leaving: readonly SlotRange[];
  /** Consolidations that did not come in time: their last messages go to HISTORY as they are. */
  readonly unfinished: readonly { readonly requestId: string; readonly slots: readonly SlotRange[] }[];
  /** For a session that goes on: when it began (epoch milliseconds). Null: no recap is made. */
  readonly recapSince: number | null;
}

export interface PutAway {
  readonly life: string;
  readonly session: number;
  /** True when each of the unfinished ones had been done after all. */
  readonly finished: boolean;
  readonly recap?: { readonly ref: string; readonly text: string };
  /** Estimate of what left the context. */
  readonly tokens: number;
}

/** `consolidate`: asks a model, and writes nothing that a prompt or a person sees. */
export interface ConsolidateInput {
  readonly scope: string;
  readonly request: ConsolidationRequest;
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

/** What a life goes on with after another one's turns, or after a rewind. */
export interface Resumption {
  /** What a model call sees word for word. */
  readonly context: readonly SlotRange[];
  /** What stands before it: summaries of the turns that are not in it, and what the scope knows. */
  readonly base?: { readonly ref: string; readonly text: string };
  /** What is left of turns that neither has. */
  readonly recap?: { readonly ref: string; readonly text: string };
  /** As a tool has set it. */
  readonly task: Task | null;
  /** Written for it, because those that there are belong to another life or session. */
  readonly episodes: readonly RetoldEpisode[];
  /** Highest number of an episode. */
  readonly compactions: number;
  /** Estimate of the context, the base and the recap. */
  readonly tokens: number;
}

export interface RetoldEpisode {
  readonly episode: Episode;
  readonly session: number;
  readonly slots: readonly SlotRange[];
}

/** `open-origin`: a new life begins with turns of another one. Done again it gives the same. */
export interface OpenOriginInput {
  readonly identity: ConversationIdentity;
  readonly origin: Origin;
}

export interface OpenedOrigin extends Resumption {
  readonly life: string;
  readonly beginning: Beginning;
  /** The highest that it shares. */
  readonly slot: number;
  readonly session: number;
  /** How many turns it shares, and how many of them are in the context. */
  readonly turns: number;
  readonly inContext: number;
  /** Turns that long-term memory does not have yet, of a life that nobody else goes on with. */
  readonly window: readonly { readonly turn: number; readonly messages: number; readonly slots: readonly SlotRange[] }[];
  readonly attributes: 'registered' | 'missing';
}

/** `rewind`: turns after `to` are cut out, and kept as a branch. */
export interface RewindInput {
  readonly identity: ConversationIdentity;
  readonly requestId: string;
  readonly branch: number;
  readonly to: string;
  /** The highest slot given out, and of messages that wait: these are not cut. */
  readonly slot: number;
  readonly waiting: readonly SlotRange[];
  readonly session: number;
  /** Epoch seconds. */
  readonly at: number;
  readonly compactions: number;
}

export interface Rewound extends Resumption {
  readonly life: string;
  /** null when nothing came after that turn. */
  readonly cut: Cut | null;
  readonly turns: number;
  readonly session: number;
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

/** How one tool call is to be run; comes with the call, so that a bundle's age does not matter. */
export interface ToolPlan {
  readonly local: boolean;
  readonly repeatable: boolean;
  readonly timeoutMs: number;
  /** Of a repeatable tool whose run failed; 1 when absent. */
  readonly attempts?: number;
  /** True: what a broken attempt has done can be found out, so that another may look. */
  readonly verifiable?: boolean;
  /** Of name and arguments. Absent in plans of earlier versions. */
  readonly fingerprint?: string;
  /** Absent: it runs without anybody being asked. */
  readonly approval?:
    { readonly policy: 'ask'; readonly expiresMs: number; readonly why?: string } | { readonly policy: 'deny'; readonly why: string };
  /** What the conversation does itself, in place of a run. */
  readonly instead?: Instead;
}

export type Instead =
  /** A person answers; the question stands in the arguments. */
  | { readonly kind: 'ask-person'; readonly expiresMs: number }
  /** Epoch milliseconds. */
  | { readonly kind: 'wait-until'; readonly until: number }
  /** The model itself asks that its older turns become memory. */
  | { readonly kind: 'compact' }
  | {
      readonly kind: 'delegate';
      readonly agent: string;
      readonly task: string;
      readonly title: string;
      /** Levels of sub-agents below the first conversation, and sub-agents of one turn. */
      readonly maxDepth: number;
      readonly maxChildren: number;
      readonly budget?: Budget;
      /** Seed 003, ShareMemoryWithSubAgents. Absent: no. */
      readonly memory?: 'shared' | 'snapshot';
    };

/** `input` stands in the place of the model's arguments. */
export interface ApprovedWith {
  readonly note?: string;
  readonly input?: JsonValue;
}

/** Where values lie that tools see and the model never does (seed 003, Context): in the store, maybe of the conversation that began it. */
export interface AppContextRef {
  readonly ref: string;
  readonly origin?: { readonly conversation: string; readonly life: string };
}

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

export interface RunToolInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly turn: string;
  readonly callId: string;
  readonly name: string;
  readonly slot: number;
  readonly seq: number;
  /** The entry that asks for it: arguments are read there and travel once. */
  readonly askedIn: number;
  readonly plan: ToolPlan;
  /** What the person who allowed it has said. */
  readonly person?: ApprovedWith;
  readonly appContext?: AppContextRef;
  /** Whose sub-agent this conversation is. */
  readonly parent?: ParentLink;
}

export interface ToolFinished {
  /** Said by a tool that sets it. */
  readonly task?: Task;
  /** Said by a tool that works on them. */
  readonly files?: ToolResultMessage['files'];
  readonly life: string;
  readonly session: number;
  readonly turn: string;
  readonly callId: string;
  readonly name: string;
  readonly slot: number;
  readonly ts: number;
  readonly outcome: ToolOutcome;
  readonly text: Body;
  /** The values that tools share, as this one has left them. */
  readonly appContext?: AppContextRef;
  /** Absent for what is short, and where the agent has no memory channel. */
  readonly item?: ItemRef;
  /** What a model took that the tool has asked. */
  readonly usage?: Usage;
  readonly persisted: boolean;
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
