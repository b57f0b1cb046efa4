/** Inputs and results of the steps that write to and read from the store: plain JSON, without what history already has. */
import type { FeedEvent } from '../protocol/contract.js';
import type { Answer, Body, Entry, JsonObject, JsonValue, MessageContent } from '../../records/message.js';
import type { ConversationIdentity } from '../../records/identity.js';
import type { Limit } from '../../records/shared-budget.js';

export interface MessageToRecord extends MessageContent {
  readonly messageId: string;
  readonly slot: number;
  readonly turn: string;
  readonly seq: number;
  readonly session: number;
  readonly ts: number;
  /** References to bodies that, joined, are the JSON of a content that was too large for one input. */
  readonly parts?: readonly string[];
  /** The text is Perdura's, in the place of one that workers stood still in (outbox/text-until-written): no processor reads it. */
  readonly isWithheld?: true;
}

/**
 * What the store does not have yet. A model step writes it before it calls; if no call follows, a store step does. All writes are
 * idempotent, and history has them first, so healing can rebuild them.
 */
export interface Writes {
  readonly messages: readonly MessageToRecord[];
  readonly settle: readonly Settlement[];
  /** Entries of results that could not be stored when they were made. */
  readonly entries: readonly Entry[];
  readonly feed: readonly PendingFeedEvent[];
  /** Values for tools that came with the start. */
  readonly startContext?: JsonObject;
  /** A new limit of the budget that sub-agents share. */
  readonly limit?: Limit;
}

/** For watchers. The number identifies the event: publishing it again changes nothing. */
export interface PendingFeedEvent {
  readonly number: number;
  readonly event: FeedEvent;
  /** Slot of the text that its result lacks: the state has no texts, so who publishes it puts that in. */
  readonly answer?: number;
}

/** The receipt for `Writes`. */
export interface Written {
  /** As written, after input processors. */
  readonly messages: readonly {
    readonly slot: number;
    readonly bytes: number;
    /** By estimate, pictures and files with it. */
    readonly tokens?: number;
    /** References to the answer's schema, the values for tools, and the client's tools. */
    readonly output?: string;
    readonly context?: string;
    readonly tools?: string;
    /** Turn of the earlier message with this id; the slot of this one stays empty. */
    readonly duplicate?: string;
  }[];
  /** Effects that had committed before they could be fenced, with their results. */
  readonly committed?: readonly { readonly effect: string; readonly result: JsonValue }[];
  /** Where the start's values are stored. */
  readonly startContext?: string;
  /** Whether Perdura's search attributes are registered, looked up once in each run. */
  readonly attributes?: 'registered' | 'missing';
}

/** `store-step`: writes for which no model call follows. */
export interface StoreStepInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly write: Writes;
  /** Slots of queued messages to read again (inbox/queue-editing.ts). */
  readonly rehydrate: readonly number[];
  readonly asksAttributes?: true;
  /** A piece of a message that is too large for one input (outbox/large-message-in-parts). */
  readonly part?: { readonly slot: number; readonly text: string };
  readonly handBack?: HandBack;
}

/** JSON in the store; `origin`: the conversation that stored it, if another one. */
export interface ValuesRef {
  readonly ref: string;
  readonly origin?: { readonly conversation: string; readonly life: string };
}

/** Reference to values that tools see and the model never does (seed 003, Context). */
export interface AppContextRef extends ValuesRef {
  /** Changes by parallel tools, in the order in which they ended. A null value deletes its key. */
  readonly changes?: readonly ValuesRef[];
}

/** Values for tools that a sub-agent has changed, for its parent (turn/context-flows-back). */
export interface HandBack {
  readonly parent: { readonly conversation: string; readonly life: string };
  /** As they were at its start; null: there were none. */
  readonly given: AppContextRef | null;
  readonly now: AppContextRef;
}

/** Where the parent finds the values as its sub-agent leaves them, and what that one has changed. */
export interface HandedBack {
  readonly ref: string;
  readonly change: string;
}

export interface StoreStepResult {
  readonly life: string;
  readonly written: Written;
  readonly rehydrated?: readonly QueuedAgain[];
  /** Where the part is stored. */
  readonly part?: string;
  /** Null: the store has lost some of the values. */
  readonly handedBack?: HandedBack | null;
}

/** A queued message as read from the store; `lost` if the store does not have it. */
export interface QueuedAgain {
  readonly slot: number;
  readonly messageId: string;
  readonly turn: string;
  readonly session: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly bytes: number;
  readonly tokens?: number;
  readonly lost?: boolean;
}

export interface Settlement {
  readonly effect: string;
  readonly entry: Entry | null;
}

/** `heal`: queued messages that the store has lost, to be rebuilt from history. */
export interface HealInput {
  readonly identity: ConversationIdentity;
  readonly slots: readonly number[];
}

/** `recall`: reads the answer of an ended turn from the store. */
export interface RecallInput {
  readonly identity: ConversationIdentity;
  readonly slot: number;
}

/** Null when the store has lost it. */
export type Recalled = Answer | null;

/** Why a step failed, as activities/failures.ts classified it. */
export interface StepFailure {
  readonly type: string;
  readonly message: string;
  /** True: a later retry may help. */
  readonly transient: boolean;
  readonly retryAfterMs?: number;
  /** True: this attempt ended before a worker had taken it. */
  readonly unbegun?: true;
  /** Of HTTP, where a provider refused a request. */
  readonly status?: number;
  /** The model's, by then. */
  readonly words?: Body;
  /** No failure of the model: the call has a place in line, and was not made. */
  readonly isInLine?: true;
}
