/** A message taken back: it was queued, and no turn has taken it yet. */
import { remember } from './arrivals.js';
import { LIMITS } from '../protocol/contract.js';
import type { EventOf } from '../event.js';
import type { QueuedMessage } from '../state/queue-state.js';
import type { ConversationState } from '../state.js';
import { NO_USAGE } from '../../records/usage.js';

/** Its turn ends before it began, so that whoever waits for it is told; what was recorded of it stays in the traces. */
export function withdraw(state: ConversationState, { messageId }: EventOf<'withdraw-requested'>): ConversationState {
  const item = withdrawable(state, messageId);
  if (!item) return state;
  const number = item.turn === 0 ? state.counters.turn + 1 : item.turn;
  const ended = { number, stopReason: 'withdrawn', usage: NO_USAGE, toolCalls: 0, answerSlot: null } as const;
  return {
    ...state,
    counters: { ...state.counters, turn: Math.max(state.counters.turn, number) },
    queue: state.queue.filter((other) => other !== item),
    seen: remember(state.seen, messageId, number),
    ended: [...state.ended, ended].slice(-LIMITS.rememberedTurns),
  };
}

/** Why it cannot be taken back; undefined when it can. */
export function refuseWithdrawal(state: ConversationState, messageId: string): string | undefined {
  if (withdrawable(state, messageId)) return undefined;
  if (state.queue.some((item) => item.kind === 'spilled'))
    return `message "${messageId}" is not among those at hand: it was taken already, is far back in a long queue, or never came`;
  return state.seen.some(([id]) => id === messageId)
    ? `message "${messageId}" was taken already: interrupt the turn instead`
    : `no message "${messageId}" waits here`;
}

function withdrawable({ queue }: ConversationState, messageId: string): QueuedMessage | undefined {
  return queue.find((item): item is QueuedMessage => item.kind === 'message' && item.messageId === messageId);
}
