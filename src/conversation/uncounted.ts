/**
 * Messages that the store has under numbers that went to something else.
 *
 * A message is written before it is certain that it counts: a workflow task that Temporal did not take comes again, perhaps with its
 * updates in another order, or without one of them. What the first one wrote stays in the store until it is in somebody's way.
 */
import { LIMITS } from './contract.js';
import type { QueuedMessage } from './queue-state.js';
import type { ConversationState } from './state.js';

/**
 * Whether no message of that id has been counted in that turn. It would be remembered: of as many turns as are remembered without
 * a gap, the earliest may have been that of another message that joined it.
 */
export function isUncounted({ seen, counters }: ConversationState, turn: number): boolean {
  if (seen.length < LIMITS.rememberedIds) return true;
  const remembered = new Set(seen.map(([, number]) => number));
  let earliest = counters.turn + 1;
  while (remembered.has(earliest - 1)) earliest -= 1;
  return turn > earliest;
}

/** To be recorded again, and moved from there. */
export function movedFrom(state: ConversationState, item: QueuedMessage, slot: number): ConversationState {
  return withItem(state, item, { ...item, movedFrom: slot });
}

/** To be recorded again, where nothing lies yet. */
export function inFreshSlot(state: ConversationState, item: QueuedMessage): ConversationState {
  const slot = state.counters.slot + 1;
  return { ...withItem(state, item, { ...item, slot }), counters: { ...state.counters, slot } };
}

function withItem(state: ConversationState, item: QueuedMessage, instead: QueuedMessage): ConversationState {
  return { ...state, queue: state.queue.map((other) => (other === item ? instead : other)) };
}
