/** Messages that are to reach the model while it works: they join the running turn, or become the next one. */
import type { QueuedMessage } from '../state/queue-state.js';
import { withSlot } from '../../records/slots.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-usage.js';

/** Steering messages that wait join the turn; they come after the tool results, and the next model call's step writes them. */
export function joinSteering(state: ConversationState): ConversationState {
  return state.queue.reduce((now, item) => {
    if (item.kind !== 'message' || item.turn !== 0 || !now.turn) return now;
    const { number, seq, messageIds } = now.turn;
    const messageTokens = now.turn.messageTokens + estimateTokens(item.bytes);
    return {
      ...now,
      turn: { ...now.turn, seq: seq + 1, messageIds: [...messageIds, item.messageId], messageTokens },
      queue: now.queue.filter((other) => other !== item),
      outbox: { ...now.outbox, messages: [...now.outbox.messages, { ...item, turn: number, session: now.session, seq: seq + 1 }] },
      context: withSlot(now.context, item.slot),
      contextTokens: now.contextTokens + estimateTokens(item.bytes),
      seen: now.seen.map((pair) => (pair[0] === item.messageId ? ([item.messageId, number] as const) : pair)),
    };
  }, state);
}

export function steeringBecomesNext(state: ConversationState): ConversationState {
  const unused = state.queue.filter((item): item is QueuedMessage => item.kind === 'message' && item.turn === 0);
  if (unused.length === 0) return state;
  const first = state.counters.turn + 1;
  const next = unused.map((item, i): QueuedMessage => ({ ...item, turn: first + i, session: state.session, delivery: 'queue' }));
  const turns = new Map(next.map((item) => [item.messageId, item.turn]));
  return {
    ...state,
    counters: { ...state.counters, turn: state.counters.turn + unused.length },
    queue: [...next, ...state.queue.filter((item) => !unused.includes(item as QueuedMessage))],
    seen: state.seen.map(([id, turn]) => [id, turns.get(id) ?? turn] as const),
  };
}
