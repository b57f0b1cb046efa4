/** What a test is handed of conversations in memory. in-memory.ts runs them. */
import type { ConversationEvent } from '../conversation/event.js';
import type { Reducers } from '../conversation/context/reducers.js';
import type { ConversationOutcome, Message, ResetResult, StartOptions, Status, TurnResult } from '../conversation/protocol/contract.js';
import type { Approval } from '../conversation/protocol/human-input.js';
import type { ConversationMessage, JsonObject, JsonValue, ToolOutcome } from '../records/message.js';
import type { TestOptions } from './project.js';

/** What `startInMemory` is given. */
export interface InMemoryOptions extends TestOptions {
  /** When the test begins; default: now. */
  readonly now?: Date;
  /** For the application's events, as `createConversation` of `perdura/workflows` takes them. */
  readonly reducers?: Reducers;
}

/** Conversations of one test, with one store and one clock. */
export interface InMemory {
  /** Starts a conversation. Without an id one is made. Throws `ClientError` `invalid` for options that no start may have. */
  start(options?: StartOptions, id?: string): TestConversation;
  /** The time as tools and prompts see it. */
  now(): Date;
  /**
   * Lets time pass: what would have happened by then happens, in its order. An approval that is not given expires, `wait_until` ends.
   * Milliseconds.
   */
  advance(ms: number): Promise<void>;
  /** MEMORY.md of a scope as it stands; empty where there is none. A scope is an agent's name, unless a start gave another. */
  memory(scope?: string): Promise<string>;
  /** Where tools find their files. */
  readonly workspace: string;
  /** Waits for what still runs and deletes the test's folder. */
  close(): Promise<void>;
}

/** What waits for a person, with the arguments that the tool would run with. */
export interface TestApproval extends Approval {
  readonly arguments: JsonValue;
}

/** A tool call that was made in a conversation, and how it ended. */
export interface TestToolCall {
  readonly callId: string;
  readonly name: string;
  readonly input: JsonValue;
  /** Absent while it runs or waits for a person. */
  readonly outcome?: ToolOutcome;
  /** What the model reads of it. */
  readonly result?: string;
}

/**
 * A conversation in memory. Each request runs at once, and each call comes back when nothing more happens by itself. Time stands still
 * while a person is waited for; else it jumps to the next moment at which something is due, so that retries take no time.
 */
export interface TestConversation {
  readonly id: string;
  /**
   * Sends a message and answers with the result of its turn. A failed turn is a result with `stopReason: 'failed'` and `error`. Throws
   * where the turn cannot end by itself, and says what it waits for: use `enqueue` for those.
   */
  send(message: string | Message): Promise<TurnResult>;
  /** Sends a message and comes back once its turn has ended or waits for something. Answers with the turn's id, `turn_0001`. */
  enqueue(message: string | Message): Promise<string>;
  /** How a turn ended; without an id the latest one. Throws where it has not ended. */
  turn(turnId?: string): Promise<TurnResult>;
  /** What waits for a person, in it and in its sub-agents, oldest first. */
  approvals(): Promise<readonly TestApproval[]>;
  /** Allows a call; without an id the only one that waits. `input`: arguments in place of the model's. */
  approve(callId?: string, options?: { readonly note?: string; readonly input?: JsonObject }): Promise<void>;
  /** Refuses a call; the model reads the note. */
  deny(callId?: string, note?: string): Promise<void>;
  /** Answers a question of `ask_user`. */
  answer(text: string, callId?: string): Promise<void>;
  /** Stops the running turn. */
  interrupt(reason?: string): Promise<void>;
  /** Begins a new session; the old one goes to long-term memory. */
  reset(): Promise<ResetResult>;
  /** Ends the conversation once what is queued is done. */
  close(): Promise<ConversationOutcome>;
  /** Hands over an event of the application, for its reducer. */
  dispatch(type: string, payload?: JsonValue): Promise<void>;
  /** How it stands, as `client.status` answers. */
  status(): Status;
  /** All its messages, oldest first, with long texts whole. */
  messages(): Promise<readonly ConversationMessage[]>;
  /** The calls of all its turns, in their order. */
  toolCalls(): Promise<readonly TestToolCall[]>;
  /** What has happened to it, as observers get it. */
  readonly events: readonly ConversationEvent[];
}
