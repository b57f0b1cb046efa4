/** What effects have cost, counted once each, also where their results came too late to count for anything else. */
import type { ModelAnswer } from '../activity-io/effects.js';
import type { JsonValue, Usage } from '../../records/message.js';
import type { ConversationState } from '../state.js';
import { addUsage } from '../../records/usage.js';

const MAX_ABANDONED = 64;

/** They are not waited for any more; what they cost is told by their fence, or by their own late result. */
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
