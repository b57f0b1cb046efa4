/**
 * A long queue is kept in the store: past `MAX_AT_HAND` messages the tail is only the slots of what is recorded there, in order,
 * so that state stays small whatever is queued. Before the head runs out, the next ones are read back.
 *
 * Spilling and reading back keep the order, and lose and double nothing. Only recorded messages spill; steering ones stay in the state,
 * since a running turn may want them.
 */
import type { QueuedAgain } from '../outbox/writes.js';
import { countSlots, listSlots, withSlot } from '../../records/slots.js';
import type { QueuedMessage, QueueItem, SpilledMessages } from '../state/queue-state.js';
import { turnNumber } from '../../records/identity.js';

export const MAX_AT_HAND = 500;
const MIN_AT_HAND = 50;
const REHYDRATED = 200;

export function spill(queue: readonly QueueItem[]): readonly QueueItem[] {
  if (queue.length <= MAX_AT_HAND) return queue;
  const spilled: QueueItem[] = [...queue.slice(0, MAX_AT_HAND)];
  for (const item of queue.slice(MAX_AT_HAND)) {
    const last = spilled[spilled.length - 1];
    if (item.kind === 'message' && isSpillable(item)) {
      const open: SpilledMessages =
        last?.kind === 'spilled' ? last : { kind: 'spilled', number: item.number, at: item.at, slots: [], turns: [item.turn, item.turn] };
      const longer: SpilledMessages = {
        ...open,
        slots: withSlot(open.slots, item.slot),
        turns: [Math.min(open.turns[0], item.turn), Math.max(open.turns[1], item.turn)],
      };
      if (open === last) spilled[spilled.length - 1] = longer;
      else spilled.push(longer);
    } else spilled.push(item);
  }
  return spilled;
}

/** Slots to read again now; empty while enough is at hand. */
export function slotsToRehydrate(queue: readonly QueueItem[]): number[] {
  const at = queue.findIndex((item) => item.kind === 'spilled');
  const item = queue[at];
  return item?.kind === 'spilled' && at < MIN_AT_HAND ? listSlots(item.slots).slice(0, REHYDRATED) : [];
}

/** Puts what was read back in its place. A message that the store has lost is left out: the caller says so. */
export function rehydrate(queue: readonly QueueItem[], messages: readonly QueuedAgain[]): readonly QueueItem[] {
  const at = queue.findIndex((item) => item.kind === 'spilled');
  const item = queue[at];
  if (item?.kind !== 'spilled' || messages.length === 0) return queue;
  const slots = listSlots(item.slots);
  const back = messages.filter((message) => slots.includes(message.slot));
  const left = slots.slice(back.length);
  const full = back.flatMap((message, i): QueuedMessage[] => (message.lost ? [] : [fromStore(message, item.number + i)]));
  const rest: QueueItem[] =
    left.length === 0 ? [] : [{ ...item, number: item.number + back.length, slots: left.reduce(withSlot, [] as SpilledMessages['slots']) }];
  return [...queue.slice(0, at), ...full, ...rest, ...queue.slice(at + 1)];
}

export function queuedCount(queue: readonly QueueItem[]): number {
  return queue.reduce((sum, item) => sum + (item.kind === 'spilled' ? countSlots(item.slots) : 1), 0);
}

function isSpillable(item: QueuedMessage): boolean {
  const hasMore = item.outputRef !== undefined || item.contextRef !== undefined || item.toolsRef !== undefined;
  return item.recorded && !hasMore && item.turn !== 0 && item.stopped !== true;
}

function fromStore({ messageId, slot, turn, session, at, bytes }: QueuedAgain, number: number): QueuedMessage {
  return { kind: 'message', number, messageId, turn: turnNumber(turn), slot, session, at, bytes, delivery: 'queue', recorded: true };
}
