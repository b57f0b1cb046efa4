/** Live events of a conversation, as they lie in its feed, and how a turn went. */
import type { BodyRef, JsonValue, Usage } from './message.js';

export const STOP_REASONS = [
  'end',
  'interrupted',
  'tool-limit',
  'budget',
  'refused',
  'failed',
  'continues',
  'queued',
  'withdrawn',
  'reset',
] as const;

export type StopReason = (typeof STOP_REASONS)[number];

/** Why a turn has no whole answer. */
export interface TurnError {
  /** Stable, for programs: `auth`, `rate-limit`, `unknown-agent`, … */
  readonly type: string;
  /** For people: what was attempted, on what, what to do. */
  readonly message: string;
}

/** How a turn went. A failed turn is data: the update that sent its message succeeds. */
export interface TurnResult {
  /** null only for a reset. */
  readonly turnId: string | null;
  /** The final answer; its beginning, when `textRef` says where the whole lies. */
  readonly text: string;
  readonly textRef?: BodyRef;
  readonly stopReason: StopReason;
  readonly usage: Usage;
  /** The answer as data, where the message wanted an `output` and the whole of it is at hand. */
  readonly payload?: JsonValue;
  /** How many tools were called. */
  readonly toolCalls: number;
  /** Present where another model than the first of the agent's list has answered. */
  readonly fallback?: Fallback;
  readonly error?: TurnError;
}

/** One model in place of another, which could not answer. */
export interface Fallback {
  /** That answers, as `provider/name`. */
  readonly model: string;
  /** The first of the agent's list. */
  readonly insteadOf: string;
  /** Stable type of the failure: `overloaded`, `rate-limit`, `timeout`, … */
  readonly reason: string;
}

/** For a person's approval, a person's answer, or what a tool of the client answers. */
export type WaitKind = 'approval' | 'question' | 'client-tool';

/** Live events, as they lie in the feed. `attempt` is random per try of a model call: a new one means "forget what you drew of this call". */
export type FeedEvent =
  | { readonly kind: 'message'; readonly turn: string; readonly messageId: string; readonly preview: string; readonly ts: number }
  | { readonly kind: 'thinking'; readonly turn: string; readonly call: string; readonly attempt: string; readonly text: string }
  | { readonly kind: 'text'; readonly turn: string; readonly call: string; readonly attempt: string; readonly text: string }
  | { readonly kind: 'reset'; readonly turn: string; readonly call: string; readonly attempt: string }
  | { readonly kind: 'tool-started'; readonly turn: string; readonly callId: string; readonly name: string; readonly input: string }
  | {
      readonly kind: 'tool-finished';
      readonly turn: string;
      readonly callId: string;
      readonly name: string;
      readonly outcome: string;
      /** Milliseconds that it ran; absent where it did not end by itself. */
      readonly ms?: number;
      readonly preview: string;
    }
  /** `reason` is the stable type of the failure that `for` words; a worker of an older version does not say it. */
  | { readonly kind: 'waiting'; readonly turn: string; readonly reason?: string; readonly for: string; readonly until: number }
  /** A model could not answer: what was drawn of this call is void, and another model gets a new call. */
  | ({ readonly kind: 'fallback'; readonly turn: string; readonly call: string; readonly for: string } & Fallback)
  /** A person is waited for, or the client that runs a tool; then what was decided: `approve`, `deny`, `answer` or `expired`. */
  | {
      readonly kind: 'asked';
      readonly turn: string;
      readonly callId: string;
      readonly name: string;
      readonly what: WaitKind;
      readonly target: string;
      readonly until: number;
      /** Of tools of the client, on the last of those that began to wait together: all of them, and what the turn has used so far. */
      readonly calls?: { readonly ids: readonly string[]; readonly askedIn: number; readonly usage: Usage };
    }
  | { readonly kind: 'decided'; readonly turn: string; readonly callId: string; readonly name: string; readonly decision: string }
  /** A breakpoint was reached. */
  | { readonly kind: 'paused'; readonly turn: string; readonly why: string }
  | { readonly kind: 'turn-finished'; readonly turn: string; readonly result: TurnResult }
  | { readonly kind: 'session'; readonly session: number }
  | {
      readonly kind: 'compacted';
      readonly turn: string;
      readonly epoch: number;
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | { readonly kind: 'resync' };

/** Events that belong to a turn. */
export type EventInTurn = Extract<FeedEvent, { readonly turn: string }>;

/** As readers of one turn get them; `resync`: some of its events were lost here. */
export type TurnEvent = EventInTurn | Extract<FeedEvent, { readonly kind: 'resync' }>;
