/** What a conversation may use in all, sub-agents included: looked at before every model call (call-gate.ts). */
import type { Budget } from '../../records/identity.js';
import { effectiveBudget, toAmount, missingIn, type SharedBudget, type Shares } from '../../records/shared-budget.js';
import { type Usage, type JsonValue, addUsage, NO_USAGE } from '../../records/message.js';
import type { ConversationState } from '../state.js';
import type { ModelAnswer, ModelStepResult } from '../turn/model-step-effects.js';

export function budgetOf({ budget, settings }: ConversationState): Budget {
  return effectiveBudget(budget, settings?.budget);
}

/** For a fork: never less than nothing, so that it says itself that nothing is left. */
export function leftOf({ maxCostUsd, maxTokens }: Budget, usage: Usage): Budget {
  return {
    ...(maxCostUsd === undefined ? {} : { maxCostUsd: Math.max(0, maxCostUsd - (usage.costUsd ?? 0)) }),
    ...(maxTokens === undefined ? {} : { maxTokens: Math.max(0, maxTokens - usage.inputTokens - usage.outputTokens) }),
  };
}

/** Budgets that hold for a sub-agent of this conversation: its budget, and the budgets that limit it. */
export function budgetsForChildren(state: ConversationState): readonly SharedBudget[] {
  const above = state.parent?.budgets ?? [];
  const limit = budgetOf(state);
  if (Object.keys(limit).length === 0) return above;
  const { conversation, identity, now, usage } = state;
  return [...above, { conversation, life: identity.life, limit, at: now, own: ownAmount(state), all: toAmount(usage) }];
}

/** Undefined where no budget is shared with others: then this conversation's numbers are enough, and the store is not read. */
export function sharesOf(state: ConversationState): Shares | undefined {
  const budgets = hasSubAgents(state) ? budgetsForChildren(state) : (state.parent?.budgets ?? []);
  const { settings } = state;
  return budgets.length === 0 ? undefined : { budgets, own: ownAmount(state), ...(settings && { fixedTokens: settings.fixedTokens }) };
}

/** The ledger learns of the new limit at once where sub-agents may run under it; later ones bring it along. */
export function raiseBudget(known: ConversationState, { budget, at }: { readonly budget: Budget; readonly at: number }): ConversationState {
  const state = { ...known, budget };
  return { ...state, ...(hasSubAgents(state) && state.turn && { outbox: { ...state.outbox, limit: { limit: budgetOf(state), at } } }) };
}

export function acceptChildUsage(state: ConversationState, usage: Usage): ConversationState {
  return { ...state, usage: addUsage(state.usage, usage), ofSubAgents: addUsage(state.ofSubAgents ?? NO_USAGE, usage) };
}

function hasSubAgents({ subAgents = [] }: ConversationState): boolean {
  return subAgents.length > 0;
}

function ownAmount({ usage, ofSubAgents }: ConversationState): Shares['own'] {
  return ofSubAgents ? missingIn(toAmount(ofSubAgents), toAmount(usage)) : toAmount(usage);
}

// What effects have cost, counted once each, also where their results came too late to count for anything else.

const MAX_ABANDONED = 64;

/** The conversation no longer waits for them; their cost comes with their fence, or with their late result. */
export function abandon(state: ConversationState, ids: readonly string[]): ConversationState {
  return { ...state, abandoned: [...state.abandoned, ...ids].slice(-MAX_ABANDONED) };
}

/** `result` is what the ledger has of the effect: of a model call or a tool. */
export function payOnce(state: ConversationState, effect: string, result: JsonValue): ConversationState {
  const { answer, usage, citations } = (result ?? {}) as Pick<ModelStepResult, 'citations'> & {
    readonly answer?: ModelAnswer;
    readonly usage?: Usage;
  };
  const cost = answer?.usage ?? usage;
  if (!cost || !state.abandoned.includes(effect)) return state;
  const whole = addUsage(cost, citationsUsage(citations) ?? NO_USAGE);
  return { ...state, abandoned: state.abandoned.filter((id) => id !== effect), usage: addUsage(state.usage, whole) };
}

/** What the citations of a step have taken; undefined where none was made. */
export function citationsUsage(citations: ModelStepResult['citations'] = []): Usage | undefined {
  const paid = citations.flatMap(({ usage }) => usage ?? []);
  return paid.length === 0 ? undefined : paid.reduce(addUsage, NO_USAGE);
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
