/** Somebody is to hear that a person is waited for: once for each wait, and nobody waits for the telling. */
import type { NotifyInput } from '../activity-io/tool-effects.js';
import { isRunning, type Started } from '../lifecycle.js';
import type { ConversationState } from '../state.js';
import type { ToolCall } from '../state/turn-state.js';
import { withToolCalls } from './turn-access.js';

/** Undefined when there is nothing to notify of, or no notifier. */
export function notifyInput(state: ConversationState): NotifyInput | undefined {
  if (state.settings?.notifies !== true || isRunning(state, 'notify') || state.turn?.phase.kind !== 'tools') return undefined;
  const waiting = state.turn.phase.calls.flatMap((call) => (needsNotice(call) && call.asked ? [{ call, asked: call.asked }] : []));
  if (waiting.length === 0) return undefined;
  return {
    identity: state.identity,
    title: state.title,
    waiting: waiting.map(({ call, asked }) => ({
      callId: call.id,
      kind: asked.kind,
      tool: call.name,
      askedIn: call.askedIn,
      until: asked.until,
    })),
  };
}

export function startNotifying(state: ConversationState, { input }: Started<'notify'>): ConversationState {
  const callIds = input.waiting.map(({ callId }) => callId);
  return withToolCalls(state, (call) =>
    call.asked && callIds.includes(call.id) ? { ...call, asked: { ...call.asked, notified: true } } : call,
  );
}

function needsNotice({ status, asked }: ToolCall): boolean {
  return status === 'asking' && asked?.notified === false;
}
