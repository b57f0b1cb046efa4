/** What steps write to the store and read of it again, and what activities answer: plain JSON, without what history has already. */
import type { FeedEvent } from '../protocol/contract.js';
import type { Answer, Entry, JsonObject, JsonValue, MessageContent } from '../../records/message.js';
import type { ConversationIdentity } from '../../records/identity.js';
import type { Limit } from '../../records/shared-budget.js';

export interface MessageToRecord extends MessageContent {
  readonly messageId: string;
  readonly slot: number;
  readonly turn: string;
  readonly seq: number;
  readonly session: number;
  readonly ts: number;
  /** Bodies whose texts, joined, are the JSON of its text, media, output and context: it was too large for one input. */
  readonly parts?: readonly string[];
}

/**
 * What the state holds that the store does not have yet; a model step takes it along before it calls, a store step takes it where no call follows. All of
 * it may be done again. History has it before anything is written: healing reads it there.
 */
export interface Writes {
  readonly messages: readonly MessageToRecord[];
  readonly settle: readonly Settlement[];
  /** Of results that the store did not take when they were made. */
  readonly entries: readonly Entry[];
  readonly feed: readonly PendingFeedEvent[];
  /** Values for tools that the start has brought. */
  readonly startContext?: JsonObject;
  /** A new limit of the budget that sub-agents share. */
  readonly limit?: Limit;
}

/** For watchers. The number is its identity: an attempt that publishes it again changes nothing. */
export interface PendingFeedEvent {
  readonly number: number;
  readonly event: FeedEvent;
}

/** What of `Writes` is in the store now. */
export interface Written {
  /** By slot; `bytes` are of what was written, after input processors. */
  readonly messages: readonly {
    readonly slot: number;
    readonly bytes: number;
    /** Where the schema of its answer is stored, the values for tools, and the tools that it brings. */
    readonly output?: string;
    readonly context?: string;
    readonly tools?: string;
    /** Turn of an earlier message of that id: this one is the same message again, and its slot stays empty. */
    readonly duplicate?: string;
  }[];
  /** Effects that had committed before they could be fenced, with their results. */
  readonly committed?: readonly { readonly effect: string; readonly result: JsonValue }[];
  /** Where the start's values are stored. */
  readonly startContext?: string;
  /** Whether our search attributes are registered, looked up once in each run. */
  readonly attributes?: 'registered' | 'missing';
}

/** `store-step`: for what no model call follows. */
export interface StoreStepInput {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly write: Writes;
  /** Slots of queued messages to read again (inbox/queue-editing.ts). */
  readonly rehydrate: readonly number[];
  readonly asksAttributes?: true;
  /** A piece of a message that is too large for one input (outbox/large-message-in-parts). */
  readonly part?: { readonly slot: number; readonly text: string };
}

export interface StoreStepResult {
  readonly life: string;
  readonly written: Written;
  readonly rehydrated?: readonly QueuedAgain[];
  /** Where the part is stored. */
  readonly part?: string;
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

/** Why a step did not succeed, in the classifier's words. */
export interface StepFailure {
  readonly type: string;
  readonly message: string;
  /** True: trying again later may help. */
  readonly transient: boolean;
  readonly retryAfterMs?: number;
}
