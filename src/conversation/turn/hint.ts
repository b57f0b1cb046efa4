/** Seed 004, soft threshold: the model is told once in an epoch that its context fills; what it makes of that is its own affair. */
import { compactsAt, suggestsCompaction } from '../context/compaction.js';
import type { AgentSettings } from '../activity-io/settings.js';
import type { Entry } from '../../records/message.js';
import { settle } from '../outbox/settlement.js';
import { withSlot } from '../../records/slots.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-usage.js';
import { turnId } from '../../records/turn-id.js';

/** An entry of its own, so that the prompt stays as it is once it was said. */
export function withHint(state: ConversationState): ConversationState {
  const { turn, settings, memory, epoch, session, now } = state;
  if (!turn || !settings || memory.hintedIn === epoch || !suggestsCompaction(state)) return state;
  const slot = state.counters.slot + 1;
  const seq = turn.seq + 1;
  const text =
    `[The context has about ${state.contextTokens} tokens; ${whatComes(settings)}. ` +
    'When a task has just been completed, compact_context does it at a better moment.]';
  const entry: Entry = { v: 1, slot, session, turn: turnId(turn.number), seq, ts: now / 1000, message: { role: 'user', text } };
  const told = settle({ ...state, counters: { ...state.counters, slot }, context: withSlot(state.context, slot) }, [
    { effect: `${turnId(turn.number)}/hint-${epoch}`, entry },
  ]);
  return {
    ...told,
    contextTokens: told.contextTokens + estimateTokens(text.length),
    turn: { ...turn, seq },
    memory: { ...told.memory, hintedIn: epoch },
  };
}

/** An agent that compacts only when asked loses the oldest at the last line instead. */
function whatComes(settings: AgentSettings): string {
  const { thresholds } = settings;
  if (thresholds.autoCompact === false) return `beyond ${thresholds.truncation} its oldest messages are left out of the prompt`;
  return `from ${compactsAt(settings)} on its older turns become memory by themselves`;
}
