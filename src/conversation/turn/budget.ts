/** What a conversation may use in all, sub-agents included: looked at before every model call (call-gate.ts). */
import type { Budget } from '../../records/identity.js';
import type { Usage } from '../../records/message.js';
import type { ConversationState } from '../state.js';

export function budgetOf({ budget, settings }: ConversationState): Budget {
  return budget ?? settings?.budget ?? {};
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
