/** What a tool call asks of activities, and what these answer; and how it is to be run. */
import type { Task } from '../../records/episodes.js';
import type { Budget, ConversationIdentity, ParentLink } from '../../records/identity.js';
import type { Body, ItemRef, JsonObject, JsonValue, ToolOutcome, ToolResultMessage, Usage } from '../../records/message.js';

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
