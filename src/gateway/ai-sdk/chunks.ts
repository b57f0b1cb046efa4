/**
 * A turn as the AI SDK's UI message stream, version 1. Pure: events in, chunks out.
 *
 * A client answers an approval or a question with a new request, after the stream has ended: so the stream ends when it waits only for a
 * person.
 *
 * @rule ai-sdk/void-text-marked: Clients can only append. A text ends once its model call has committed; a void text ends with
 *   `providerMetadata.perdura.void`, by which a page leaves it out, and the next attempt is a new text. (test:
 *   test/gateway/ai-sdk/chunks.test.ts)
 * @rule ai-sdk/tools-run-here: Tools run here (`providerExecuted`): a client never runs one, and never reports its end as news. The
 *   client answers questions and calls of the page's tools, until it has answered. (test: test/gateway/ai-sdk/chunks.test.ts)
 */
import type { JsonValue, Usage } from '../../records/message.js';
import type { StopReason, TurnResult } from '../../conversation/protocol/contract.js';
import { isClientTool, withoutPrefix } from '../../conversation/protocol/message.js';
import { shortfall } from '../core/answer.js';
import type { WaitingCall } from '../core/interactive-turn.js';
import type { Change } from '../core/turn-stream.js';
import type { TextPart } from '../../records/turn-view.js';

export interface Metadata {
  readonly turn: string | null;
  readonly stopReason?: StopReason;
  /** The turn goes on once a person has answered, or the page alone with the results of its tools. */
  readonly waitingFor?: 'person' | 'client';
  readonly usage?: Usage;
  readonly error?: { readonly type: string; readonly message: string };
}

export type FinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';

export type Chunk =
  | { readonly type: 'start'; readonly messageId: string; readonly messageMetadata: Metadata }
  | { readonly type: 'start-step' | 'finish-step' | 'abort' }
  | { readonly type: 'text-start' | 'reasoning-start' | 'reasoning-end'; readonly id: string }
  | { readonly type: 'text-end'; readonly id: string; readonly providerMetadata?: { readonly perdura: { readonly void: true } } }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | {
      readonly type: 'tool-input-available';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: JsonValue;
      readonly providerExecuted: boolean;
    }
  | { readonly type: 'tool-approval-request'; readonly approvalId: string; readonly toolCallId: string }
  | { readonly type: 'tool-output-available'; readonly toolCallId: string; readonly output: JsonValue; readonly providerExecuted: true }
  | { readonly type: 'tool-output-error'; readonly toolCallId: string; readonly errorText: string; readonly providerExecuted: true }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | { readonly type: 'data-usage'; readonly data: Usage }
  | {
      readonly type: 'data-waiting' | 'data-paused' | 'data-fallback';
      readonly data: { readonly [name: string]: JsonValue };
      /** For `onData` alone: no part of the message. */
      readonly transient: true;
    }
  | { readonly type: 'finish'; readonly finishReason: FinishReason; readonly messageMetadata: Metadata }
  | { readonly type: 'error'; readonly errorText: string };

export interface Chunks {
  start(): readonly Chunk[];
  take(change: Change): readonly Chunk[];
  /** Ends the stream while the turn waits. */
  pause(waiting: readonly WaitingCall[]): readonly Chunk[];
}

interface ChunksOptions {
  readonly turn: string | null;
  readonly messageId: string;
  /** Calls of which the page has the result, because it has given it. */
  readonly given?: ReadonlySet<string>;
}

export function createChunks({ turn, messageId, given = new Set() }: ChunksOptions): Chunks {
  let isInStep = false;
  const names = new Map<string, { readonly name: string; readonly input: JsonValue }>();
  const denied = new Set<string>();

  const endStep = (): Chunk[] => {
    const ends: Chunk[] = isInStep ? [{ type: 'finish-step' }] : [];
    isInStep = false;
    return ends;
  };
  const inStep = (): Chunk[] => {
    if (isInStep) return [];
    isInStep = true;
    return [{ type: 'start-step' }];
  };
  const callChunk = (callId: string, providerExecuted: boolean): Chunk => {
    const { name = 'tool', input = {} } = names.get(callId) ?? {};
    return { type: 'tool-input-available', toolCallId: callId, toolName: withoutPrefix(name), input, providerExecuted };
  };

  const finish = (result: TurnResult): Chunk[] => {
    const { stopReason, usage, error } = result;
    const isError = error !== undefined && stopReason !== 'end' && stopReason !== 'interrupted';
    return [
      ...endStep(),
      { type: 'data-usage', data: usage },
      ...(stopReason === 'interrupted' ? [{ type: 'abort' } as const] : []),
      { type: 'finish', finishReason: toFinishReason(result), messageMetadata: { turn, stopReason, usage, ...(error && { error }) } },
      // A client reads nothing after it.
      ...(isError ? [{ type: 'error', errorText: error.message } as const] : []),
    ];
  };

  return {
    start: () => [{ type: 'start', messageId, messageMetadata: { turn } }],

    take(change) {
      switch (change.kind) {
        case 'call':
          return [...endStep(), ...inStep()];
        case 'begin':
          return [...inStep(), { type: change.of === 'text' ? 'text-start' : 'reasoning-start', id: change.part }];
        case 'grow':
          return [{ type: change.of === 'text' ? 'text-delta' : 'reasoning-delta', id: change.part, delta: change.text }];
        case 'end':
          return change.of === 'text' ? [] : [{ type: 'reasoning-end', id: change.part }];
        case 'settle':
          return textsIn(change.parts).map(({ id }) => ({ type: 'text-end', id }));
        case 'void':
          return textsIn(change.parts).map(({ id }) => ({ type: 'text-end', id, providerMetadata: { perdura: { void: true } } }));
        case 'tool-called':
          names.set(change.callId, change);
          return [...inStep(), callChunk(change.callId, true)];
        case 'tool-started':
          return [];
        case 'asked':
          if (change.isOver) return [];
          if (change.what !== 'approval') return [callChunk(change.callId, false)];
          return [{ type: 'tool-approval-request', approvalId: change.callId, toolCallId: change.callId }];
        case 'decided':
          if (change.decision === 'deny') denied.add(change.callId);
          return [];
        case 'tool-finished': {
          const call = { toolCallId: change.callId };
          if (given.has(change.callId)) return [];
          if (denied.has(change.callId) && change.outcome === 'rejected') return [{ type: 'tool-output-denied', ...call }];
          if (change.outcome === 'ok') {
            const output = isClientTool(change.name) ? toOutput(change.preview) : change.preview;
            return [{ type: 'tool-output-available', ...call, output, providerExecuted: true }];
          }
          return [{ type: 'tool-output-error', ...call, errorText: change.preview || change.outcome, providerExecuted: true }];
        }
        case 'waiting':
          return [{ type: 'data-waiting', data: { for: change.for, until: change.until }, transient: true }];
        case 'paused':
          return [{ type: 'data-paused', data: { why: change.why }, transient: true }];
        case 'fallback': {
          const { model, insteadOf, reason } = change;
          return [{ type: 'data-fallback', data: { model, insteadOf, reason }, transient: true }];
        }
        case 'finished':
          return finish(change.result);
      }
    },

    pause(waiting) {
      const waitingFor = waiting.some(({ what }) => what !== 'client-tool') ? 'person' : 'client';
      return [...endStep(), { type: 'finish', finishReason: 'tool-calls', messageMetadata: { turn, waitingFor } }];
    },
  };
}

function textsIn(parts: readonly TextPart[]): readonly TextPart[] {
  return parts.filter(({ kind }) => kind === 'text');
}

/** The answer of a tool of the page, as the page gave it: the record has JSON for values other than text. */
export function toOutput(text: string): JsonValue {
  if (!/^[[{]/.test(text)) return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

function toFinishReason(result: TurnResult): FinishReason {
  const { stopReason } = result;
  if (stopReason === 'end') return shortfall(result) === 'length' ? 'length' : 'stop';
  if (stopReason === 'refused') return 'content-filter';
  return stopReason === 'failed' ? 'error' : stopReason === 'reset' ? 'stop' : 'other';
}
