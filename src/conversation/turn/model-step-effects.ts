/** What a model step and a title bring an activity, and what they answer: plain JSON, small, without what history has already. */
import type { Fallback, TurnError } from '../protocol/contract.js';
import type {
  AssistantBlock,
  ModelStop,
  Usage,
  Body,
  ItemRef,
  JsonObject,
  JsonValue,
  ToolOutcome,
  ToolResultMessage,
} from '../../records/message.js';
import type { SlotRange } from '../../records/slots.js';
import type { CallNumbers } from '../context/call-gate.js';
import type { Writes, Written, StepFailure } from '../outbox/writes.js';
import type { ConversationIdentity, ParentLink, Budget } from '../../records/identity.js';
import type { Shares } from '../../records/shared-budget.js';
import type { ConfigureRequest, CallSettings, Configured, LearnedBudget } from '../state/settings.js';
import type { Task } from '../../records/episodes.js';

/**
 * `model-step`: writes what must be written, runs the quick tools whose results the model needs, and calls the model; each part under
 * the ledger by its id, so that a second attempt repeats nothing that was committed.
 */
export interface ModelStepInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly turn: string;
  readonly write: Writes;
  /** The tool calls that ride. */
  readonly tools: readonly RidingTool[];
  readonly appContext?: AppContextRef;
  readonly parent?: ParentLink;
  /** The first step of a turn: are the agent's settings still the same? */
  readonly configure: ConfigureRequest | null;
  readonly asksAttributes?: true;
  /** Its summary shows the first words of the message. */
  readonly showsWords?: true;
  /** Its mode is still the agent's or the worker's to say: where that is stepping, the model is not called yet. */
  readonly wantsMode?: true;
  /** The conversation has no title yet: its first message gives it one. */
  readonly wantsTitle?: true;
  /** A session begins: what the scope knows is to stand before it. */
  readonly opensSession?: true;
  /** What decides whether the model is called, before the step has found anything. */
  readonly numbers: CallNumbers;
  /** As the turn began; null before the first one, and then the step finds them. */
  readonly settings: CallSettings | null;
  /** For settings that the step finds. */
  readonly learned?: LearnedBudget;
  /** Reasons for which a step was deferred since the last answer: they do not defer it again. */
  readonly deferred?: readonly DeferReason[];
  /** Budgets that others share with it. */
  readonly shares?: Shares;
  readonly call: CallInput;
}

export type RidingTool = Pick<RunToolInput, 'callId' | 'name' | 'slot' | 'seq' | 'askedIn' | 'plan' | 'target'>;

export interface CallInput {
  readonly id: string;
  readonly slot: number;
  readonly seq: number;
  readonly context: readonly SlotRange[];
  /** The text that stands before these messages in this epoch, by reference. */
  readonly base: string | null;
  /** Epoch milliseconds of the session's beginning, whose date the system prompt has. Histories of before have none. */
  readonly since?: number;
  /** Slots of messages that are shown by their ends. */
  readonly cited?: readonly SlotRange[];
  /** Number of the first tool call that this answer may make: ids are `<turn>/c<n>`. */
  readonly firstToolCall: number;
  /** Schema that the turn's answer must fit: reference to its JSON text. */
  readonly output?: string;
  /** Tools that the turn's message has brought: reference to their JSON text. */
  readonly tools?: string;
  /** Of this turn before this step, for the announcement of its end; absent where there was nothing. */
  readonly soFar?: { readonly usage: Usage; readonly toolCalls: number; readonly fallback?: Fallback };
}

/** Why a step came back without having called the model: what it found changes the decision. */
export type DeferReason =
  /** The message was sent before; the store knows it for longer than state. */
  | 'duplicate'
  /** The agent's files cannot be used. */
  | 'unusable'
  /** Limits, as the settings or the results of tools that rode have them now (call-gate.ts). */
  | 'budget'
  | 'truncation'
  | 'compaction'
  /** By the agent or the worker it goes on step by step, and this would be the first. */
  | 'stepping'
  /** An earlier message fits the turn: it is to stand in the context before the model is called. */
  | 'recall'
  /** A person stopped the turn before the call began. */
  | 'stopped';

/** What stands for a long result from then on, as a model has made it: '' where its answer was of no use. */
export interface MadeCitation {
  /** Id of the result's item. */
  readonly item: string;
  readonly citation: string;
  /** What that one took. */
  readonly usage?: Usage;
}

/** After input processors, without secrets, on one line; null: none. */
export interface ShownWords {
  readonly asked?: string | null;
  readonly answered?: string | null;
}

/** Which turn and call it is of, its input says: history has them in one place. */
export type ModelStepResult = {
  readonly written: Written;
  /** Of the tools that rode, those that finished. */
  readonly tools: readonly ToolFinished[];
  /** Absent: the settings are as they were. */
  readonly configured?: Exclude<Configured, { kind: 'unchanged' }>;
  /** Made of the first message that this step has written; absent where that has no words. */
  readonly title?: string;
  /** First words for Temporal's page that are not those of the message and the answer in history (turn/title.ts). */
  readonly words?: ShownWords;
  /** What the scope knows, for a session that begins; absent when it knows nothing. */
  readonly base?: { readonly ref: string; readonly text: string };
  /** What a model has made to be shown for long results, by the item of each. */
  readonly citations?: readonly MadeCitation[];
  /** What vectors of its texts and questions have cost since its last step; absent where none were made. */
  readonly embedded?: Usage;
} & (
  | { readonly kind: 'answered'; readonly answer: ModelAnswer }
  /** The model failed; what it had cost is unknown. */
  | { readonly kind: 'failed'; readonly failure: StepFailure }
  /** `usedUp`: a budget that it shares has nothing left. `recalled`: what a notice is to say. */
  | { readonly kind: 'deferred'; readonly reason: DeferReason; readonly usedUp?: TurnError; readonly recalled?: string }
);

/** `title`: a title of the first exchange, whose messages are in these slots. */
export interface TitleInput {
  readonly identity: ConversationIdentity;
  /** Of the answer. */
  readonly turn: string;
  readonly question: number;
  readonly answer: number;
  readonly model: string;
  /** The models of the agent's list after it. Absent: only this model is called. */
  readonly fallback?: readonly string[];
  readonly agentHash: string;
}

export interface MadeTitle {
  /** Absent: the model failed, or its answer is of no use. */
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
  /** Of the bytes that the prompt begins with: system prompt, tools, the epoch's base. */
  readonly prefix?: string;
  /** What is wrong with an answer that had to fit a schema. Absent: nothing, or there was none. */
  readonly schemaViolation?: string;
  /** Tokens that were sent, by estimate, where the model's server has read far fewer: it has cut the prompt. */
  readonly promptCut?: { readonly sent: number; readonly read: number };
  /** False: the store did not take it; the next step writes it first. */
  readonly persisted: boolean;
  /** True: it was settled before it could commit, and counts for its cost only. */
  readonly fenced?: boolean;
}

/** How one tool call is to be run; comes with the call, so that a bundle's age does not matter. */
export interface ToolPlan {
  /** True: quick, repeatable, and allowed without a request to a person: it may ride on the model step that needs its result. */
  readonly rides: boolean;
  readonly repeatable: boolean;
  readonly timeoutMs: number;
  /** Of a repeatable tool whose run failed; 1 when absent. */
  readonly attempts?: number;
  /** True: what a broken attempt has done can be found out, so that another may look. */
  readonly verifiable?: boolean;
  /** SHA-256 of name and arguments (memory/call-fingerprint.ts): other arguments than these are not run. */
  readonly fingerprint?: string;
  /** Absent: it runs without a request to a person. */
  readonly approval?:
    | {
        readonly policy: 'ask';
        readonly expiresMs: number;
        readonly why?: string;
        /** Of this call and those that are the same (tools/call-identity.ts). Absent: each call needs an approval. */
        readonly same?: string;
      }
    | { readonly policy: 'deny'; readonly why: string };
  /** What the conversation does itself, in place of a run. */
  readonly workflowAction?: WorkflowAction;
}

/** What a conversation does in place of a tool's run. */
export type WorkflowAction =
  /** A person answers; the question stands in the arguments. */
  | { readonly kind: 'ask-person'; readonly expiresMs: number; /** To choose from. */ readonly options?: readonly string[] }
  /** A tool of the client's: the program that brought it runs it, and answers. */
  | { readonly kind: 'ask-client'; readonly expiresMs: number }
  /** Epoch milliseconds. */
  | { readonly kind: 'wait-until'; readonly until: number }
  /** Counted by the conversation from when the wait begins: the clock of the worker that planned it may be off. */
  | { readonly kind: 'wait-for'; readonly ms: number }
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
      /** Sub-agents of one turn with theirs, to the last level. Absent in plans of earlier versions: no limit. */
      readonly maxTotal?: number;
      readonly budget?: Budget;
      /** Seed 003, ShareMemoryWithSubAgents. Absent: no. */
      readonly memory?: 'shared' | 'snapshot';
      /** Random, made by the worker: what comes in the sub-agent's name shows it. Absent in plans of an earlier version. */
      readonly capability?: string;
    };

/** `input` stands in the place of the model's arguments. */
export interface ApprovedWith {
  readonly note?: string;
  readonly input?: JsonValue;
  /** It was allowed for good before, and needed no approval this time. */
  readonly standing?: true;
}

/** JSON in the store, maybe of the conversation that began it. */
export interface ValuesRef {
  readonly ref: string;
  readonly origin?: { readonly conversation: string; readonly life: string };
}

/** Where values lie that tools see and the model never does (seed 003, Context). */
export interface AppContextRef extends ValuesRef {
  /** What tools have changed since, side by side with others, in the order in which they ended. A key that is null goes. */
  readonly changes?: readonly ValuesRef[];
}

export interface RunToolInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly turn: string;
  readonly callId: string;
  readonly name: string;
  /** What it is about, in a few words, for people. */
  readonly target: string;
  readonly slot: number;
  readonly seq: number;
  /** The entry that asks for it: arguments are read there and travel once. */
  readonly askedIn: number;
  readonly plan: ToolPlan;
  /** What the person added when they allowed it. */
  readonly person?: ApprovedWith;
  readonly appContext?: AppContextRef;
  /** The models of the agent's list after the one that asks for it. Absent: what the tool asks a model for, that one alone answers. */
  readonly fallback?: readonly string[];
  /** Whose sub-agent this conversation is. */
  readonly parent?: ParentLink;
}

/** How one call of a tool ended. */
export interface ToolFinished {
  /** From a tool that sets it. */
  readonly task?: Task;
  /** From a tool that works on them. */
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
  /** The values that tools share, as this one has left them. */
  readonly appContext?: AppContextRef;
  /** What of them it has changed, and what it saw; `values` where they are short, so that they can be healed. */
  readonly contextChange?: { readonly ref: string; readonly on: AppContextRef | null; readonly values?: JsonObject };
  /** Absent for what is short, and where the agent has no memory channel. */
  readonly item?: ItemRef;
  /** Usage of a model that the tool has called. */
  readonly usage?: Usage;
  readonly persisted: boolean;
  readonly fenced?: boolean;
}
