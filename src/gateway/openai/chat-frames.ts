/** Chat Completions: a turn as frames. Pure. */
import type { StopReason, TurnResult } from '../../conversation/protocol/contract.js';
import { publicCallId } from '../core/client-calls.js';
import { joinTexts, type FinalAnswer } from '../core/answer.js';

export interface Completion {
  readonly id: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly model: string;
  readonly conversation: string;
}

type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls';

const FINISH: Partial<Record<StopReason, FinishReason>> = { 'tool-limit': 'length', budget: 'length', refused: 'content_filter' };

export function finishReason({ result: { stopReason }, calls }: FinalAnswer): FinishReason {
  if (calls.length > 0) return 'tool_calls';
  return FINISH[stopReason] ?? 'stop';
}

export function completion(of: Completion, answer: FinalAnswer): object {
  const { id, created, model } = of;
  const { result, texts } = answer;
  const calls = toolCalls(of, answer);
  const content = calls.length > 0 && texts.length === 0 ? null : joinTexts(texts);
  const message = { role: 'assistant', content, refusal: null, ...(calls.length > 0 && { tool_calls: calls }) };
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(answer) }],
    usage: toUsage(result),
  };
}

interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

function toolCalls({ conversation }: Completion, { calls }: FinalAnswer): readonly ToolCall[] {
  return calls.map(({ callId, name, input }) => ({
    id: publicCallId(conversation, callId),
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }));
}

/** Each call begins with its name, and its arguments follow. */
export function callDeltas(of: Completion, answer: FinalAnswer): readonly object[] {
  return toolCalls(of, answer).flatMap(({ id, type, function: { name, arguments: given } }, index) => [
    { tool_calls: [{ index, id, type, function: { name, arguments: '' } }] },
    { tool_calls: [{ index, function: { arguments: given } }] },
  ]);
}

export function chunk(of: Completion, delta: object, finish: FinishReason | null = null, extra: object = {}): object {
  return {
    id: of.id,
    object: 'chat.completion.chunk',
    created: of.created,
    model: of.model,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...extra,
  };
}

export function usageChunk(of: Completion, result: TurnResult): object {
  return { ...chunk(of, {}), choices: [], usage: toUsage(result) };
}

function toUsage({ usage }: TurnResult): object {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  };
}
