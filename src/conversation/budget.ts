/** What a conversation may use in all, sub-agents included: looked at before every model call. */
import type { TurnError } from './contract.js';
import type { Budget } from './effects.js';
import type { Usage } from './message.js';
import type { ConversationState } from './state.js';

export function budgetOf({ budget, settings }: ConversationState): Budget {
  return budget ?? settings?.budget ?? {};
}

/** Why no model is asked any more; undefined while there is something left. */
export function overBudget(state: ConversationState): TurnError | undefined {
  const { maxCostUsd, maxTokens } = budgetOf(state);
  const { costUsd } = state.usage;
  const how = 'raise it (perdura budget, or the update raiseBudget) and say "continue"';
  if (maxCostUsd !== undefined && costUsd !== null && costUsd >= maxCostUsd) {
    return { type: 'budget', message: `The conversation has used $${costUsd.toFixed(4)} of its $${maxCostUsd}; ${how}.` };
  }
  const tokens = tokensOf(state.usage);
  if (maxTokens !== undefined && tokens >= maxTokens) {
    return { type: 'budget', message: `The conversation has used ${tokens} of its ${maxTokens} tokens; ${how}.` };
  }
  return undefined;
}

/** For a sub-agent: never less than the smallest sum, so that it says itself that nothing is left. */
export function leftOf({ maxCostUsd, maxTokens }: Budget, usage: Usage): Budget {
  return {
    ...(maxCostUsd === undefined ? {} : { maxCostUsd: Math.max(0, maxCostUsd - (usage.costUsd ?? 0)) }),
    ...(maxTokens === undefined ? {} : { maxTokens: Math.max(0, maxTokens - tokensOf(usage)) }),
  };
}

function tokensOf({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens;
}
