/** What waits for a person, what the person decides, and what a sub-agent tells its parent. */
import type { JsonValue, Usage } from '../../records/message.js';
import type { StopReason, TurnError } from './contract.js';

/** How a sub-agent's turn ended, for the call that waits for it. */
export interface ChildReport {
  readonly text: string;
  readonly stopReason: StopReason;
  readonly usage: Usage;
  readonly error?: TurnError;
}

/** Payload of the signal `child`, from a sub-agent to its parent. */
export type ChildNews =
  | { readonly callId: string; readonly kind: 'asks'; readonly asks: readonly Approval[] }
  | { readonly callId: string; readonly kind: 'ended'; readonly report: ChildReport };

/** Something that waits for a person: whether a tool may run, or an answer. The arguments stand in the store, in entry `askedIn`. */
export interface Approval {
  /** The conversation itself, or a sub-agent of it. */
  readonly conversation: string;
  readonly callId: string;
  readonly turnId: string;
  readonly kind: 'approval' | 'question';
  readonly tool: string;
  /** What it is about, in a few words. */
  readonly target: string;
  /** Of tool and arguments: a decision that names it counts for these alone. */
  readonly hash: string;
  readonly askedIn: number;
  readonly why?: string;
  /** Epoch milliseconds. */
  readonly askedAt: number;
  readonly expiresAt: number;
}

/** What a person says to one of them. For a question, `note` is the answer. */
export interface Decision {
  readonly callId: string;
  readonly decision: 'approve' | 'deny';
  /** Of a sub-agent's call: its conversation. */
  readonly conversation?: string;
  /** The model reads it. */
  readonly note?: string;
  /** In place of the model's arguments. */
  readonly input?: JsonValue;
  readonly hash?: string;
}

export interface Decided {
  readonly callId: string;
  readonly decision: 'approve' | 'deny';
}
