/**
 * What a person has allowed for good, in this conversation: calls that are the same as one that the person has seen (the worker says which
 * are, by `plan.approval.same`).
 *
 * An approval for good covers the call that the person saw: a call that differs in any argument, or whose path leads elsewhere, needs
 * a new approval.
 *
 * @rule turn/denied-stays-denied: A call that the agent's rules deny does not run, and a call without `same` cannot be allowed for good.
 *   (test: test/conversation/turn/standing-approvals.test.ts)
 * @rule turn/approval-ends-with-session: An approval for good ends with the session, and no fork, resumed life or sub-agent inherits it.
 *   (test: test/conversation/turn/standing-approvals.test.ts)
 */
import type { ConversationState } from '../state.js';
import type { ToolCall } from '../state/turn-state.js';

/** As many as are remembered: beyond it the oldest needs a new approval. */
const MAX_ALLOWED = 100;

/** (turn/denied-stays-denied) */
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

/** (turn/approval-ends-with-session) */
export function forgetAllowed({ allowedCalls: _, ...state }: ConversationState): ConversationState {
  return state;
}
