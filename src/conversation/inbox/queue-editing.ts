/**
 * The queue after arrival: edits by hand (seed 004: drop, move, clear; each is one event in history), and the tail of the queue that is in
 * the store.
 */
import { type QueueEdit, LIMITS } from '../protocol/contract.js';
import { queuedId, type QueueItem, type QueuedMessage, type SpilledMessages } from '../state/queue-state.js';
import type { EventOf } from '../event.js';
import { answer, isKnown, isPending, assignTurn } from '../requests.js';
import type { ConversationState } from '../state.js';
import { resetIds } from './arrivals.js';
import { NO_USAGE } from '../../records/message.js';
import type { QueuedAgain } from '../outbox/writes.js';
import { countSlots, listSlots, withSlot } from '../../records/slots.js';
import { turnNumber } from '../../records/identity.js';

export function editQueue(state: ConversationState, { edit, at }: EventOf<'queue-edited'>): ConversationState {
  if (editRefusal(state, edit) !== undefined) return state;
  switch (edit.op) {
    case 'drop':
      return drop(state, findItem(state, edit.id), at);
    case 'clear':
      // From the end, so that no reset has messages behind it. What is in the store alone stays in the traces, as each recorded message does.
      return [...state.queue].reverse().reduce((now, item) => (item.kind === 'spilled' ? without(now, item) : drop(now, item, at)), state);
    case 'move': {
      const item = findItem(state, edit.id);
      if (!item) return state;
      const others = state.queue.filter((other) => other !== item);
      const to = edit.before === null ? others.length : others.findIndex((other) => queuedId(other) === edit.before);
      return { ...state, queue: [...others.slice(0, to), item, ...others.slice(to)] };
    }
  }
}

/** Why the edit is refused; undefined if it is allowed. */
export function editRefusal(state: ConversationState, edit: QueueEdit): string | undefined {
  if (edit.op === 'clear') return undefined;
  const item = findItem(state, edit.id);
  if (!item) return `no event ${edit.id} is in the queue; the query "queue" lists what is`;
  if (item.kind === 'spilled') return `${edit.id} stands for stored messages far back in the queue: edit them when they are nearer`;
  if (item.kind === 'reset' && state.consolidation.ending && state.queue[0] === item) return `${edit.id} is being carried out already`;
  if (
    edit.op === 'move' &&
    edit.before !== null &&
    (edit.before === edit.id || !state.queue.some((other) => queuedId(other) === edit.before))
  ) {
    return `no other event ${edit.before} is in the queue`;
  }
  if (edit.op === 'move' && crossesReset(state, item, edit.before))
    return `${edit.id} would change sides at a reset, and with it the session`;
  const behind = state.queue.slice(state.queue.indexOf(item) + 1);
  if (
    edit.op === 'drop' &&
    item.kind === 'reset' &&
    behind.some((other) => other.kind === 'spilled' || (other.kind === 'message' && other.recorded))
  ) {
    return `${edit.id} separates two sessions, and messages of the later one are recorded: drop these first`;
  }
  return undefined;
}

function drop(state: ConversationState, item: QueueItem | undefined, at: number): ConversationState {
  if (!item || editRefusal(state, { op: 'drop', id: queuedId(item) }) !== undefined) return state;
  if (item.kind === 'message') return withdraw(state, { kind: 'withdraw-requested', messageId: item.messageId, at });
  const left = without(state, item);
  if (item.kind === 'app' && isPending(left, 'dispatch', item.id)) return answer(left, 'dispatch', [item.id], { kind: 'not-known' });
  if (item.kind !== 'reset') return left;
  return answer({ ...left, queue: inSession(state, left.queue) }, 'reset', resetIds(state, item.number), 'withdrawn');
}

function without(state: ConversationState, item: QueueItem): ConversationState {
  return { ...state, queue: state.queue.filter((other) => other !== item) };
}

/** Assigns sessions anew after a reset was dropped; `editRefusal` ensures that no message behind it is recorded. */
function inSession(state: ConversationState, queue: readonly QueueItem[]): readonly QueueItem[] {
  let session = state.session;
  return queue.map((item) => {
    if (item.kind === 'reset') session += 1;
    return item.kind === 'message' ? { ...item, session } : item;
  });
}

/** True if the move would put a message into another session: resets separate sessions. */
function crossesReset({ queue }: ConversationState, item: QueueItem, before: string | null): boolean {
  const from = queue.indexOf(item);
  const to = before === null ? queue.length : queue.findIndex((other) => queuedId(other) === before);
  const between = queue.slice(Math.min(from, to), Math.max(from, to));
  return item.kind === 'reset' ? between.some(({ kind }) => kind !== 'app') : between.some(({ kind }) => kind === 'reset');
}

function findItem({ queue }: ConversationState, id: string): QueueItem | undefined {
  return queue.find((item) => queuedId(item) === id);
}

/** Removes a queued message. Its turn ends before it begins, so that a waiting caller gets an answer; recorded text stays in the traces. */
export function withdraw(state: ConversationState, { messageId }: EventOf<'withdraw-requested'>): ConversationState {
  const item = withdrawable(state, messageId);
  if (!item) return state;
  const number = item.turn === 0 ? state.counters.turn + 1 : item.turn;
  const ended = { number, stopReason: 'withdrawn', usage: NO_USAGE, toolCalls: 0, answerSlot: null } as const;
  const withdrawn: ConversationState = {
    ...state,
    counters: { ...state.counters, turn: Math.max(state.counters.turn, number) },
    queue: state.queue.filter((other) => other !== item),
    ended: [...state.ended, ended].slice(-LIMITS.rememberedTurns),
  };
  return assignTurn(withdrawn, messageId, number);
}

/** Why a message cannot be withdrawn; undefined if it can. */
export function withdrawalRefusal(state: ConversationState, messageId: string): string | undefined {
  if (withdrawable(state, messageId)) return undefined;
  if (state.queue.some((item) => item.kind === 'spilled'))
    return `message "${messageId}" cannot be withdrawn: a turn has taken it, it is far back in a long queue, or it never arrived`;
  return isKnown(state, 'message', messageId)
    ? `message "${messageId}" was taken already: interrupt the turn instead`
    : `no message "${messageId}" waits here`;
}

function withdrawable({ queue }: ConversationState, messageId: string): QueuedMessage | undefined {
  return queue.find((item): item is QueuedMessage => item.kind === 'message' && item.messageId === messageId);
}

// The tail of a long queue is in the store: beyond `MAX_AT_HAND` messages the state has only their slots, in order, so it stays small.
// Before the head runs out, the next messages are read back.
//
// Spilling and reading back keep the order, and neither lose nor duplicate messages. Only recorded messages spill; steering ones stay in
// the state, since a running turn may take them.

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

/** Slots to read back now; empty while the state has enough messages. */
export function slotsToRehydrate(queue: readonly QueueItem[]): number[] {
  const at = queue.findIndex((item) => item.kind === 'spilled');
  const item = queue[at];
  return item?.kind === 'spilled' && at < MIN_AT_HAND ? listSlots(item.slots).slice(0, REHYDRATED) : [];
}

/** Replaces slots by the messages that were read back. Lost messages are left out; the caller reports them. */
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
  const hasMore = item.outputRef !== undefined || item.contextRef !== undefined || item.toolsRef !== undefined || item.stop !== undefined;
  return item.recorded && !hasMore && item.turn !== 0 && item.stopped !== true;
}

function fromStore({ messageId, slot, turn, session, at, bytes }: QueuedAgain, number: number): QueuedMessage {
  return { kind: 'message', number, messageId, turn: turnNumber(turn), slot, session, at, bytes, delivery: 'queue', recorded: true };
}
