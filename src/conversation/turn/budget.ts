/** What a conversation may use in all, sub-agents included: looked at before every model call (call-gate.ts). */
import type { Budget } from '../../records/identity.js';
import { type Usage, type JsonValue, addUsage } from '../../records/message.js';
import type { ConversationState } from '../state.js';
import type { ModelAnswer } from '../activity-io/effects.js';

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

/** What effects have cost, counted once each, also where their results came too late to count for anything else. */

const MAX_ABANDONED = 64;

/** They are not waited for any more; what they cost comes with their fence, or with their own late result. */
export function abandon(state: ConversationState, ids: readonly string[]): ConversationState {
  return { ...state, abandoned: [...state.abandoned, ...ids].slice(-MAX_ABANDONED) };
}

/** `result` is what the ledger has of the effect: of a model call or a tool. */
export function payOnce(state: ConversationState, effect: string, result: JsonValue): ConversationState {
  const { answer, usage } = (result ?? {}) as { readonly answer?: ModelAnswer; readonly usage?: Usage };
  const cost = answer?.usage ?? usage;
  if (!cost || !state.abandoned.includes(effect)) return state;
  return { ...state, abandoned: state.abandoned.filter((id) => id !== effect), usage: addUsage(state.usage, cost) };
}

/**
 * How many sub-agents a turn may start with all of theirs, and how many of them each may start in its turn. Equal shares, given at the
 * start: nothing is counted across conversations, so no crash, retry or hand-over changes the sum.
 */
export function delegationLimits(
  { parent }: Pick<ConversationState, 'parent'>,
  { maxTotal = Infinity, maxChildren }: { readonly maxTotal?: number; readonly maxChildren: number },
): { readonly total: number; readonly share: number } {
  const total = Math.min(maxTotal, parent?.share ?? Infinity);
  return { total, share: total === Infinity ? 0 : Math.max(0, Math.floor(total / maxChildren) - 1) };
}
