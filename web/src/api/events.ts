/** Live events as the gateway sends them: what `/openapi.json` describes as a stream of text. */

export interface Usage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** US dollars; null where the model's price is not known. */
  readonly costUsd: number | null;
}

export interface TurnResult {
  readonly turnId: string | null;
  readonly text: string;
  readonly stopReason: string;
  readonly usage: Usage;
  readonly toolCalls: number;
  readonly fallback?: { readonly model: string; readonly insteadOf: string; readonly reason: string };
  readonly error?: { readonly type: string; readonly message: string };
}

type Happened =
  | { readonly kind: 'message'; readonly messageId: string; readonly preview: string; readonly ts: number }
  | { readonly kind: 'thinking' | 'text'; readonly call: string; readonly attempt: string; readonly text: string }
  | { readonly kind: 'reset'; readonly call: string; readonly attempt: string }
  | { readonly kind: 'tool-started'; readonly callId: string; readonly name: string; readonly input: string }
  | {
      readonly kind: 'tool-finished';
      readonly callId: string;
      readonly name: string;
      readonly outcome: string;
      readonly ms?: number;
      readonly preview: string;
    }
  | { readonly kind: 'waiting'; readonly reason?: string; readonly for: string; readonly until: number }
  | { readonly kind: 'fallback'; readonly call: string; readonly for: string; readonly model: string; readonly insteadOf: string }
  | {
      readonly kind: 'asked';
      readonly callId: string;
      readonly name: string;
      readonly what: 'approval' | 'question' | 'client-tool';
      readonly target: string;
      readonly until: number;
    }
  | { readonly kind: 'decided'; readonly callId: string; readonly name: string; readonly decision: string }
  | { readonly kind: 'paused'; readonly why: string }
  | { readonly kind: 'compacted'; readonly epoch: number; readonly tokensBefore: number; readonly tokensAfter: number }
  | { readonly kind: 'turn-finished'; readonly result: TurnResult };

export type TurnEvent = Happened & { readonly turn: string };
export type LiveEvent = (TurnEvent | { readonly kind: 'session'; readonly session: number } | { readonly kind: 'resync' }) & {
  readonly conversation: string;
  /** To go on after it. */
  readonly cursor: string;
};
