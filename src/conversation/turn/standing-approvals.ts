/**
 * What a person has allowed for good, in this conversation: calls that are the same as one that the person has seen (the worker says which
 * are, by `plan.approval.same`).
 *
 * P4  It counts for what was shown: a call that differs in any argument, or whose path leads elsewhere, is asked about.
 * P5  What the agent's rules deny is not run, and what is asked about each time (no `same`) cannot be allowed for good.
 * P6  It ends with the session, and no fork, resumed life or sub-agent inherits it.
 */
import type { ConversationState } from '../state.js';
import type { ToolCall } from '../state/turn-state.js';

/** As many as are remembered: beyond it the oldest is asked about again. */
const MAX_ALLOWED = 100;

/** P5 */
export function sameOf({ plan: { approval } }: Pick<ToolCall, 'plan'>): string | undefined {
  return approval?.policy === 'ask' ? approval.same : undefined;
}

export function isAllowed({ allowedCalls = [] }: ConversationState, call: ToolCall): boolean {
  const same = sameOf(call);
  return same !== undefined && allowedCalls.some((one) => one.same === same);
}

export function allowAlways(state: ConversationState, call: ToolCall): ConversationState {
  const same = sameOf(call);
  if (same === undefined || isAllowed(state, call)) return state;
  const { name: tool, target, id: callId } = call;
  return { ...state, allowedCalls: [...(state.allowedCalls ?? []), { same, tool, target, callId }].slice(-MAX_ALLOWED) };
}

/** P6 */
export function forgetAllowed({ allowedCalls: _, ...state }: ConversationState): ConversationState {
  return state;
}
