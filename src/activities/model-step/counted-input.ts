/** What a model was given, where its provider does not report it (seed 000, Phase D: counted from the messages, overridden by a report). */
import { tokensOf } from '../../memory/tokens.js';
import type { ModelRequest, ModelResponse } from '../../models/model.js';
import { tokenCounterFor } from '../../models/token-counter.js';
import { fixedTokens } from './budget.js';

/** `model`: `provider/model`. An answer that was stopped stays as it is: its report may not have come yet. */
export async function withCountedInput(response: ModelResponse, request: ModelRequest, model: string): Promise<ModelResponse> {
  const { usage, stop } = response;
  if (usage.inputTokens > 0 || stop === 'interrupted') return response;
  const { count } = await tokenCounterFor(model);
  const inputTokens = fixedTokens(request.system, request.tools, count) + tokensOf(request.messages, count);
  return { ...response, usage: { ...usage, inputTokens } };
}
