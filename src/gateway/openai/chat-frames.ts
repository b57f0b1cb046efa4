/** Chat Completions: a turn as frames. Pure. */
import type { StopReason, TurnResult } from '../../conversation/protocol/contract.js';
import { joined, type Whole } from '../core/turn-texts.js';

export interface Completion {
  readonly id: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly model: string;
}

type FinishReason = 'stop' | 'length' | 'content_filter';

const FINISH: Partial<Record<StopReason, FinishReason>> = { 'tool-limit': 'length', budget: 'length', refused: 'content_filter' };

export function finishReason({ stopReason }: TurnResult): FinishReason {
  return FINISH[stopReason] ?? 'stop';
}

export function completion({ id, created, model }: Completion, { result, texts }: Whole): object {
  const message = { role: 'assistant', content: joined(texts), refusal: null };
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(result) }],
    usage: usageOf(result),
  };
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
  return { ...chunk(of, {}), choices: [], usage: usageOf(result) };
}

function usageOf({ usage }: TurnResult): object {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  };
}
