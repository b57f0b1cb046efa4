/** Messages that are to reach the model while it works: they join the running turn, or become the next one. */
import type { QueuedMessage } from '../state/queue-state.js';
import { withSlot } from '../../records/slots.js';
import { assignTurn } from '../requests.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-usage.js';

/** Steering messages that wait join the turn; they come after the tool results, and the next model call's step writes them. */
export function joinSteering(state: ConversationState): ConversationState {
  return state.queue.reduce((now, item) => {
    if (item.kind !== 'message' || item.turn !== 0 || !now.turn) return now;
    const { number, seq, messageIds } = now.turn;
    const messageTokens = now.turn.messageTokens + estimateTokens(item.bytes);
    const joined: ConversationState = {
      ...now,
      turn: { ...now.turn, seq: seq + 1, messageIds: [...messageIds, item.messageId], messageTokens },
      queue: now.queue.filter((other) => other !== item),
      outbox: { ...now.outbox, messages: [...now.outbox.messages, { ...item, turn: number, session: now.session, seq: seq + 1 }] },
      context: withSlot(now.context, item.slot),
      contextTokens: now.contextTokens + estimateTokens(item.bytes),
    };
    return assignTurn(joined, item.messageId, number);
  }, state);
}

export function steeringBecomesNext(state: ConversationState): ConversationState {
  const unused = state.queue.filter((item): item is QueuedMessage => item.kind === 'message' && item.turn === 0);
  if (unused.length === 0) return state;
  const first = state.counters.turn + 1;
  const next = unused.map((item, i): QueuedMessage => ({ ...item, turn: first + i, session: state.session, delivery: 'queue' }));
  const queued: ConversationState = {
    ...state,
    counters: { ...state.counters, turn: state.counters.turn + unused.length },
    queue: [...next, ...state.queue.filter((item) => !unused.includes(item as QueuedMessage))],
  };
  return next.reduce((now, { messageId, turn }) => assignTurn(now, messageId, turn), queued);
}
