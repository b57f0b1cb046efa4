/**
 * When a run hands over to the next (continue-as-new): before its history is long. Whether it can at once is for next-step.ts
 * (conversation/nothing-in-flight), and workflows/conversation.ts does it (workflows/handlers-answered).
 */
import type { AgentSettings } from './state/settings.js';
import type { ConversationState } from './state.js';

type RunLength = AgentSettings['handOver'];

/** Well before the server's limits; an agent may ask for less (`limits.handOver`). */
export const HAND_OVER: RunLength = { events: 3_000, bytes: 2 * 1024 * 1024, updates: 1_500 };

/** Characters of state that a continue-as-new may carry; the server terminates the workflow at 2 MiB. */
const MAX_STATE = 1_500_000;

/** What is due a hand-over, for people; undefined while none is due, and while one has been decided already. */
export function handOverReason(state: ConversationState, length: RunLength): string | undefined {
  if (state.handOver !== null) return undefined;
  const limits = state.settings?.handOver ?? HAND_OVER;
  const reached = (['events', 'bytes', 'updates'] as const).find((unit) => length[unit] >= limits[unit]);
  return reached !== undefined && JSON.stringify(state).length <= MAX_STATE ? `${length[reached]} ${reached}` : undefined;
}
