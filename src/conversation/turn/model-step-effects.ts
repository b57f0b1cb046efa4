/** Inputs and results of the activities `model-step` and `title`: plain JSON, kept small by leaving out what history already has. */
import type { EstimatedPrompt } from '../../records/token-estimate.js';
import type { Fallback, TurnError } from '../protocol/contract.js';
import type {
  AssistantBlock,
  ModelStop,
  Stop,
  Usage,
  Body,
  ItemRef,
  JsonObject,
  JsonValue,
  Media,
  ToolOutcome,
  ToolResultMessage,
} from '../../records/message.js';
import type { SlotRange } from '../../records/slots.js';
import type { CallNumbers } from '../context/call-gate.js';
import type { AppContextRef, Writes, Written, StepFailure } from '../outbox/writes.js';
import type { ConversationIdentity, ParentLink, Budget } from '../../records/identity.js';
import type { Shares } from '../../records/shared-budget.js';
import type { ConfigureRequest, CallSettings, Configured, LearnedBudget } from '../state/settings.js';
import type { Task } from '../../records/episodes.js';
import type { PinnedMemory, PromptHead } from '../state/compaction-state.js';

/**
 * `model-step`: writes pending data, runs the quick tools whose results the model needs, and calls the model. The ledger has each part
 * under an id, so a second attempt repeats nothing that was committed.
 */
export interface ModelStepInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly turn: string;
  readonly write: Writes;
  /** Quick tool calls that ride on this step: it runs them before it calls the model. */
  readonly tools: readonly RidingTool[];
  readonly appContext?: AppContextRef;
  readonly parent?: ParentLink;
  /** Set in the first step of a turn, which checks whether the agent's settings have changed. */
  readonly configure: ConfigureRequest | null;
  readonly asksAttributes?: true;
  /** The workflow's summary shows the first words of the message. */
  readonly showsWords?: true;
  /** No person has set the mode: if the agent or the worker sets stepping, the step does not call the model yet. */
  readonly wantsMode?: true;
  /** The conversation has no title yet: its first message gives it one. */
  readonly wantsTitle?: true;
  /** A session begins: its prompt starts with the scope's facts. */
  readonly opensSession?: true;
  /** The numbers that decide whether to call the model, as the workflow knows them. */
  readonly numbers: CallNumbers;
  /** As the turn began; null before the first turn, whose step reads them. */
  readonly settings: CallSettings | null;
  /** MEMORY.md in this epoch's prompts. Absent: as the settings have it. */
  readonly pinned?: Omit<PinnedMemory, 'epoch'>;
  /** A context size that the step applies to settings that it reads. */
  readonly learned?: LearnedBudget;
  /** Reasons that deferred a step since the last answer; none defers a step again. */
  readonly deferred?: readonly DeferReason[];
  /** Budgets shared with other conversations. */
  readonly shares?: Shares;
  readonly call: CallInput;
}

export type RidingTool = Pick<RunToolInput, 'callId' | 'name' | 'slot' | 'seq' | 'askedIn' | 'plan' | 'target'>;

export interface CallInput {
  readonly id: string;
  readonly slot: number;
  readonly seq: number;
  readonly context: readonly SlotRange[];
  /** Reference to the text before these messages in this epoch. */
  readonly base: string | null;
  /** Start of the session in epoch milliseconds, for the date in the system prompt. Absent in older histories. */
  readonly since?: number;
  /** Hash of what the last prompt began with; absent: there was none. */
  readonly prefix?: string;
  /** Slots of cited messages: the prompt shows only their beginning and end. */
  readonly cited?: readonly SlotRange[];
  /** Messages that the provider refused, and the base as slot 0: prompts are without them. */
  readonly refused?: readonly SlotRange[];
  /** True: a prompt as long was never answered, and a shorter one has not been tried. */
  readonly doubtsSize?: true;
  /** True: the call has failed again and again, or a shorter prompt has not helped: it may be about any of its messages. */
  readonly doubtsReason?: true;
  /** Tokens of an estimated token, as earlier prompts have shown; absent: 1. */
  readonly tokenRatio?: number;
  /** The same of the system prompt and the tools. */
  readonly fixedRatio?: number;
  /** True: the next turn may come later than a cache keeps a prompt by default (turn/pace.ts). */
  readonly isSlow?: true;
  /** Number of the first tool call that this answer may make: ids are `<turn>/c<n>`. */
  readonly firstToolCall: number;
  /** Schema that the turn's answer must fit: reference to its JSON text. */
  readonly output?: string;
  /** Client tools that came with the turn's message: reference to their JSON text. */
  readonly tools?: string;
  /** Tool calls that the turn had made when they came; absent: none. */
  readonly callsBefore?: number;
  readonly stop?: Stop;
  /** What the turn used before this step, for the event of its end; absent if nothing. */
  readonly soFar?: { readonly usage: Usage; readonly toolCalls: number; readonly fallback?: Fallback };
}

/** Why a step returned without calling the model. */
export type DeferReason =
  /** The message was sent before: the store remembers ids for longer than the state. */
  | 'duplicate'
  /** The agent's files cannot be used. */
  | 'unusable'
  /** A limit, checked again with the step's settings and tool results (call-gate.ts). */
  | 'budget'
  | 'truncation'
  | 'compaction'
  /** The agent or the worker sets stepping mode, and this would be the first step. */
  | 'stepping'
  /** MEMORY.md has changed since the prompts of this epoch told of it. */
  | 'memory'
  /** An earlier message fits the turn, and enters the context before the model is called. */
  | 'recall'
  /** A person stopped the turn before the call began. */
  | 'stopped';

/** A change of MEMORY.md: told by a notice, or words must leave the prompt, and an epoch begins. */
export type MemoryNews = { readonly kind: 'notice'; readonly text: string } | { readonly kind: 'epoch' };

/** A model-made text that replaces a long result in later prompts; '' if the model's answer was unusable. */
export interface MadeCitation {
  /** Id of the result's item. */
  readonly item: string;
  readonly citation: string;
  /** Of the model that made it. */
  readonly usage?: Usage;
}

/** First words for Temporal's page: after input processors, without secrets, on one line; null: none. */
export interface ShownWords {
  readonly asked?: string | null;
  readonly answered?: string | null;
}

/** Turn and call are in the input, which history has too, so the result does not repeat them. */
export type ModelStepResult = {
  readonly written: Written;
  /** The riding tools that finished. */
  readonly tools: readonly ToolFinished[];
  /** Absent: the settings are as they were. */
  readonly configured?: Exclude<Configured, { kind: 'unchanged' }>;
  /** From the first message that this step wrote; absent if it has no words. */
  readonly title?: string;
  /** Only words that differ from what history shows (turn/title.ts). */
  readonly words?: ShownWords;
  /** The scope's facts, for a session that begins; absent if there are none. */
  readonly base?: { readonly ref: string; readonly text: string };
  /** Model-made citations of long results. */
  readonly citations?: readonly MadeCitation[];
  /** Cost of embeddings since the last step; absent if there were none. */
  readonly embedded?: Usage;
} & (
  | { readonly kind: 'answered'; readonly answer: ModelAnswer }
  /** The model failed, at an unknown cost. */
  | { readonly kind: 'failed'; readonly failure: StepFailure }
  /** `usedUp`: a shared budget is exhausted. `recalled`: the text of a notice. */
  | {
      readonly kind: 'deferred';
      readonly reason: DeferReason;
      readonly usedUp?: TurnError;
      readonly recalled?: string;
      readonly news?: MemoryNews;
    }
);

/** `title`: makes a title from the question and answer in these slots. */
export interface TitleInput {
  readonly identity: ConversationIdentity;
  /** The answer's turn. */
  readonly turn: string;
  readonly question: number;
  readonly answer: number;
  readonly model: string;
  /** The models of the agent's list after it. Absent: only this model is called. */
  readonly fallback?: readonly string[];
  readonly agentHash: string;
}

export interface MadeTitle {
  /** Absent: the model failed, or its answer is unusable. */
  readonly title?: string;
  readonly usage: Usage;
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
  /** One for each tool call of `blocks`, in their order; absent where there are none. */
  readonly plans?: readonly ToolPlan[];
  /** Hash of the prompt's fixed beginning: system prompt, tools, the epoch's base. */
  readonly prefix?: string;
  /** References to that beginning in the store. Absent: as before. */
  readonly head?: PromptHead;
  /** Why the answer does not fit its schema. Absent: it fits, or there is no schema. */
  readonly schemaViolation?: string;
  /** Set if the model's server cut the prompt: tokens sent, by estimate, and the far fewer that it read. */
  readonly promptCut?: { readonly sent: number; readonly read: number };
  /** What else the provider refused, the base as slot 0: it has answered without it. `isGuess`: so many that it may be a coincidence. */
  readonly refused?: readonly SlotRange[];
  readonly isGuess?: true;
  /** What was sent, by estimate; absent where the provider's count says nothing about it. */
  readonly estimated?: EstimatedPrompt;
  /** False: the store did not take it; the next step writes it first. */
  readonly persisted: boolean;
  /** True: the call was settled before it could commit; only its cost counts. */
  readonly fenced?: boolean;
}

/** How to run one tool call. The worker makes it, so the age of the workflow's bundle does not matter. */
export interface ToolPlan {
  /** True: quick and repeatable, so the call may ride on the model step that needs its result. */
  readonly rides: boolean;
  readonly repeatable: boolean;
  readonly timeoutMs: number;
  /** Where its workers are; absent: those of the conversation run it. */
  readonly taskQueue?: string;
  /** How often a repeatable tool is tried; absent: once. */
  readonly attempts?: number;
  /** True: a further attempt can find out what a broken one has done. */
  readonly verifiable?: boolean;
  /** SHA-256 of name and arguments (memory/bodies.ts): the call runs with no others. */
  readonly fingerprint?: string;
  /** Absent: the call needs no approval. */
  readonly approval?:
    | {
        readonly policy: 'ask';
        readonly expiresMs: number;
        readonly why?: string;
        /** Key that equal calls share, for standing approvals (tools/call-identity.ts). Absent: each call needs an approval. */
        readonly same?: string;
      }
    | { readonly policy: 'deny'; readonly why: string };
  /** Absent: the tool runs. */
  readonly workflowAction?: WorkflowAction;
}

/** What a conversation does in place of a tool's run. */
export type WorkflowAction =
  /** A person answers the question in the arguments. */
  | { readonly kind: 'ask-person'; readonly expiresMs: number; /** To choose from. */ readonly options?: readonly string[] }
  /** The client that sent the tool runs it and answers. */
  | { readonly kind: 'ask-client'; readonly expiresMs: number }
  /** Epoch milliseconds. */
  | { readonly kind: 'wait-until'; readonly until: number }
  /** From the beginning of the wait, by the workflow's clock: the clock of the worker that planned it may be off. */
  | { readonly kind: 'wait-for'; readonly ms: number }
  /** The model asks for a compaction. */
  | { readonly kind: 'compact' }
  | {
      readonly kind: 'delegate';
      readonly agent: string;
      readonly task: string;
      readonly title: string;
      /** Limits: levels of sub-agents below the root conversation, and sub-agents per turn. */
      readonly maxDepth: number;
      readonly maxChildren: number;
      /** Sub-agents per turn on all levels together. Absent in plans of earlier versions: no limit. */
      readonly maxTotal?: number;
      readonly budget?: Budget;
      /** Seed 003, ShareMemoryWithSubAgents. Absent: not shared. */
      readonly memory?: 'shared' | 'snapshot';
      /** Random secret from the worker: messages in the sub-agent's name must carry it. Absent in plans of earlier versions. */
      readonly capability?: string;
    };

/** `input` replaces the model's arguments. */
export interface ApprovedWith {
  readonly note?: string;
  readonly input?: JsonValue;
  /** A standing approval allowed it. */
  readonly standing?: true;
}

export interface RunToolInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly turn: string;
  readonly callId: string;
  readonly name: string;
  /** The subject of the call in a few words, for people. */
  readonly target: string;
  readonly slot: number;
  readonly seq: number;
  /** Slot of the entry with the call: the activity reads the arguments there. */
  readonly askedIn: number;
  readonly plan: ToolPlan;
  /** How often no worker of its task queue had taken it in time; absent: never. */
  readonly unserved?: number;
  /** What the person added to the approval. */
  readonly person?: ApprovedWith;
  readonly appContext?: AppContextRef;
  /** Fallbacks for the tool's model calls: the agent's list after the current model. Absent: none. */
  readonly fallback?: readonly string[];
  /** The parent, if this conversation is a sub-agent. */
  readonly parent?: ParentLink;
}

/** How one call of a tool ended. */
export interface ToolFinished extends Media {
  /** Set by a tool that changes the task. */
  readonly task?: Task;
  /** Files that the tool worked on. */
  readonly files?: ToolResultMessage['files'];
  readonly life: string;
  readonly session: number;
  readonly turn: string;
  readonly callId: string;
  readonly name: string;
  readonly slot: number;
  readonly ts: number;
  /** Milliseconds that it ran. */
  readonly ms: number;
  readonly outcome: ToolOutcome;
  readonly text: Body;
  /** The shared values after this tool. */
  readonly appContext?: AppContextRef;
  /** The values that it changed, and the state that it saw; `values`: short ones, so that healing can rebuild them. */
  readonly contextChange?: { readonly ref: string; readonly on: AppContextRef | null; readonly values?: JsonObject };
  /** Absent for short results and for agents without a memory channel. */
  readonly item?: ItemRef;
  /** Usage of a model that the tool has called. */
  readonly usage?: Usage;
  readonly persisted: boolean;
  readonly fenced?: boolean;
}
