/** Messages: a turn as a message, and as its events. Pure. */
import type { StopReason, TurnResult } from '../../conversation/protocol/contract.js';
import { publicCallId, type ClientCall } from '../core/client-calls.js';
import { joinTexts, type FinalAnswer } from '../core/answer.js';

export interface MessageHead {
  readonly id: string;
  readonly model: string;
  readonly conversation: string;
}

const STOP: Partial<Record<StopReason, string>> = { 'tool-limit': 'max_tokens', budget: 'max_tokens', refused: 'refusal' };

function stopReason({ result, calls }: FinalAnswer): string {
  if (calls.length > 0) return 'tool_use';
  return STOP[result.stopReason] ?? 'end_turn';
}

function toUsage({ usage }: TurnResult): object {
  return {
    input_tokens: usage.inputTokens - usage.cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedTokens,
    output_tokens: usage.outputTokens,
  };
}

export function message(head: MessageHead, answer: FinalAnswer): object {
  const { id, model } = head;
  const text = joinTexts(answer.texts);
  return {
    id,
    type: 'message',
    role: 'assistant',
    model,
    content: [
      ...(text === '' ? [] : [{ type: 'text', text, citations: null }]),
      ...answer.calls.map((call) => ({ ...toolUse(head, call), input: call.input })),
    ],
    stop_reason: stopReason(answer),
    stop_sequence: null,
    usage: toUsage(answer.result),
  };
}

function toolUse({ conversation }: MessageHead, { callId, name }: ClientCall): object {
  return { type: 'tool_use', id: publicCallId(conversation, callId, 'toolu_'), name, caller: { type: 'direct' } };
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

/** Calls after the text, one block each; `first`: the number of the first. */
function callBlocks(head: MessageHead, { calls }: FinalAnswer, first: number): readonly MessageEvent[] {
  return calls.flatMap((call, at) => {
    const index = first + at;
    const delta = { type: 'input_json_delta', partial_json: JSON.stringify(call.input) };
    return [
      { type: 'content_block_start', ...{ index, content_block: { ...toolUse(head, call), input: {} } } },
      { type: 'content_block_delta', ...{ index, delta } },
      { type: 'content_block_stop', ...{ index } },
    ];
  });
}

/** `hasText`: a text block came before. */
export function messageEnd(head: MessageHead, answer: FinalAnswer, hasText: boolean): readonly MessageEvent[] {
  const delta = { stop_reason: stopReason(answer), stop_sequence: null };
  return [
    ...callBlocks(head, answer, hasText ? 1 : 0),
    { type: 'message_delta', ...{ delta, usage: toUsage(answer.result) } },
    { type: 'message_stop' },
  ];
}
