/** The queue changed by hand (seed 004): one event dropped, moved, or all of them cleared. Each is a separate event in history. */
import { type QueueEdit, LIMITS } from '../protocol/contract.js';
import { queuedId, type QueueItem, type QueuedMessage } from '../state/queue-state.js';
import type { EventOf } from '../event.js';
import { answer, isKnown, isPending, assignTurn } from '../requests.js';
import type { ConversationState } from '../state.js';
import { resetIds } from './arrivals.js';
import { NO_USAGE } from '../../records/message.js';

export function editQueue(state: ConversationState, { edit, at }: EventOf<'queue-edited'>): ConversationState {
  if (editRefusal(state, edit) !== undefined) return state;
  switch (edit.op) {
    case 'drop':
      return drop(state, itemOf(state, edit.id), at);
    case 'clear':
      // From the end, so that no reset has messages behind it.
      return [...state.queue].reverse().reduce((now, item) => drop(now, item, at), state);
    case 'move': {
      const item = itemOf(state, edit.id);
      if (!item) return state;
      const others = state.queue.filter((other) => other !== item);
      const to = edit.before === null ? others.length : others.findIndex((other) => queuedId(other) === edit.before);
      return { ...state, queue: [...others.slice(0, to), item, ...others.slice(to)] };
    }
  }
}

/** Why the queue cannot be changed so; undefined when it can. */
export function editRefusal(state: ConversationState, edit: QueueEdit): string | undefined {
  if (edit.op === 'clear') return undefined;
  const item = itemOf(state, edit.id);
  if (!item) return `no event ${edit.id} is in the queue; the query "queue" lists what is`;
  if (item.kind === 'spilled')
    return `${edit.id} stands for messages further back, which lie in the store: they can be changed when they are nearer`;
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
    return `${edit.id} parts sessions, and messages of the later one are recorded already: drop these first`;
  }
  return undefined;
}

function drop(state: ConversationState, item: QueueItem | undefined, at: number): ConversationState {
  if (!item || editRefusal(state, { op: 'drop', id: queuedId(item) }) !== undefined) return state;
  if (item.kind === 'message') return withdraw(state, { kind: 'withdraw-requested', messageId: item.messageId, at });
  const without = { ...state, queue: state.queue.filter((other) => other !== item) };
  if (item.kind === 'app' && isPending(without, 'dispatch', item.id)) return answer(without, 'dispatch', [item.id], { kind: 'not-known' });
  if (item.kind !== 'reset') return without;
  return answer({ ...without, queue: inSession(state, without.queue) }, 'reset', resetIds(state, item.number), 'withdrawn');
}

/** A message belongs to the session that it stands in; a recorded message keeps its recorded session. */
function inSession(state: ConversationState, queue: readonly QueueItem[]): readonly QueueItem[] {
  let session = state.session;
  return queue.map((item) => {
    if (item.kind === 'reset') session += 1;
    return item.kind === 'message' ? { ...item, session } : item;
  });
}

/** Places of resets: between two of them lies a session, whose messages stay in it. */
function crossesReset({ queue }: ConversationState, item: QueueItem, before: string | null): boolean {
  const from = queue.indexOf(item);
  const to = before === null ? queue.length : queue.findIndex((other) => queuedId(other) === before);
  const between = queue.slice(Math.min(from, to), Math.max(from, to));
  return item.kind === 'reset' ? between.some(({ kind }) => kind !== 'app') : between.some(({ kind }) => kind === 'reset');
}

function itemOf({ queue }: ConversationState, id: string): QueueItem | undefined {
  return queue.find((item) => queuedId(item) === id);
}

/** A message taken back: it was queued, and no turn has taken it yet. */

/** Its turn ends before it began, so that a caller who waits for it gets an answer; what was recorded of it stays in the traces. */
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

/** Why it cannot be taken back; undefined when it can. */
export function withdrawalRefusal(state: ConversationState, messageId: string): string | undefined {
  if (withdrawable(state, messageId)) return undefined;
  if (state.queue.some((item) => item.kind === 'spilled'))
    return `message "${messageId}" is not among those at hand: it was taken already, is far back in a long queue, or never came`;
  return isKnown(state, 'message', messageId)
    ? `message "${messageId}" was taken already: interrupt the turn instead`
    : `no message "${messageId}" waits here`;
}

function withdrawable({ queue }: ConversationState, messageId: string): QueuedMessage | undefined {
  return queue.find((item): item is QueuedMessage => item.kind === 'message' && item.messageId === messageId);
}
