/** Messages: a turn as a message, and as its events. Pure. */
import type { StopReason, TurnResult } from '../../conversation/protocol/contract.js';
import { joined, type Whole } from '../core/turn-texts.js';

export interface MessageHead {
  readonly id: string;
  readonly model: string;
}

const STOP: Partial<Record<StopReason, string>> = { 'tool-limit': 'max_tokens', budget: 'max_tokens', refused: 'refusal' };

function stopReason(result: TurnResult): string {
  return STOP[result.stopReason] ?? 'end_turn';
}

function usageOf({ usage }: TurnResult): object {
  return {
    input_tokens: usage.inputTokens - usage.cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedTokens,
    output_tokens: usage.outputTokens,
  };
}

export function message({ id, model }: MessageHead, { result, texts }: Whole): object {
  const text = joined(texts);
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: text === '' ? [] : [{ type: 'text', text, citations: null }],
    stop_reason: stopReason(result),
    stop_sequence: null,
    usage: usageOf(result),
  };
}

export interface MessageEvent {
  readonly type: string;
}

export function messageStart({ id, model }: MessageHead): MessageEvent {
  const usage = { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
  const begun = { id, type: 'message', role: 'assistant', model, content: [], stop_reason: null, stop_sequence: null, usage };
  return { type: 'message_start', ...{ message: begun } };
}

const AT = { index: 0 };
export const blockStart: MessageEvent = {
  type: 'content_block_start',
  ...AT,
  ...{ content_block: { type: 'text', text: '', citations: null } },
};
export const blockStop: MessageEvent = { type: 'content_block_stop', ...AT };

export function textDelta(text: string): MessageEvent {
  return { type: 'content_block_delta', ...AT, ...{ delta: { type: 'text_delta', text } } };
}

export function messageEnd(result: TurnResult): readonly MessageEvent[] {
  const delta = { stop_reason: stopReason(result), stop_sequence: null };
  return [{ type: 'message_delta', ...{ delta, usage: usageOf(result) } }, { type: 'message_stop' }];
}
