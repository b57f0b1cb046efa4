/**
 * Messages and resets that arrive, and their place in the queue.
 *
 * A message gets its turn, slot and session on arrival. A steering message gets its turn when it joins a running one or becomes the next.
 * Adjacent resets are merged, and a reset of an empty session is answered at once.
 */
import { inTokens } from '../state/compaction-state.js';
import type { EventOf } from '../event.js';
import type { Consolidation } from '../protocol/contract.js';
import type { ReadMessage } from '../protocol/message.js';
import { messageTokens, type QueuedMessage, type QueueItem } from '../state/queue-state.js';
import { answer, isKnown, outcomeFor, pendingRequests, request, assignTurn } from '../requests.js';
import type { ConversationState } from '../state.js';
import { turnId } from '../../records/identity.js';
import { mediaBytes, pickContent } from '../../records/message.js';
import { utf8Length } from '../../records/text.js';
import { withSlot } from '../../records/slots.js';
import { estimateMediaTokens, estimateTokens } from '../../records/token-estimate.js';

const REMEMBERED_REJECTIONS = 5;

/** Makes the event of a validated message. */
export function messageReceived({ id: _id, ...content }: ReadMessage, messageId: string, at: number): EventOf<'message-received'> {
  return { ...content, kind: 'message-received', messageId, at };
}

export function receiveMessage(state: ConversationState, event: EventOf<'message-received'>): ConversationState {
  if (isKnown(state, 'message', event.messageId)) return state; // (conversation/answered-once)
  if (state.closing !== 'no') {
    return rejectInput(state, { kind: 'input-rejected', name: 'message', reason: 'the conversation is closing', at: event.at });
  }
  const steering = event.delivery === 'steer' && state.turn !== null;
  const turn = steering ? 0 : state.counters.turn + 1;
  // Nothing enters a session that is ending: an interrupting message comes first in the next one.
  const first = state.consolidation.ending && state.queue[0]?.kind === 'reset' ? 1 : 0;
  const index = event.delivery === 'interrupt' ? first + state.queue.slice(first).filter(isInterrupting).length : state.queue.length;
  const item: QueuedMessage = {
    kind: 'message',
    number: state.counters.queued + 1,
    messageId: event.messageId,
    turn,
    slot: state.counters.slot + 1,
    session: state.session + state.queue.slice(0, index).filter((other) => other.kind === 'reset').length,
    at: event.at,
    bytes: utf8Length(event.text) + mediaBytes(event),
    tokens: estimateTokens(event.text) + estimateMediaTokens(event),
    delivery: event.delivery,
    ...pickContent(event),
    ...(event.traceparent !== undefined && { traceparent: event.traceparent }),
    recorded: false,
  };
  const queued: ConversationState = {
    ...state,
    counters: { ...state.counters, turn: steering ? state.counters.turn : turn, slot: item.slot, queued: item.number },
    queue: [...state.queue.slice(0, index), item, ...state.queue.slice(index)],
  };
  return steering ? request(queued, { kind: 'message', id: event.messageId }) : answer(queued, 'message', [event.messageId], turn);
}

export function requestReset(state: ConversationState, { resetId: id, at }: EventOf<'reset-requested'>): ConversationState {
  if (isKnown(state, 'reset', id)) return state;
  const last = state.queue[state.queue.length - 1];
  if (last?.kind === 'reset') return request(state, { kind: 'reset', id, input: last.number });
  if (!last && !state.turn && state.context.length === 0) return answerResets(state, [id], 'nothing-to-do');
  const number = state.counters.queued + 1;
  const queued: ConversationState = {
    ...state,
    counters: { ...state.counters, queued: number },
    queue: [...state.queue, { kind: 'reset', number, at }],
  };
  return request(queued, { kind: 'reset', id, input: number });
}

/** Ids of the requests that wait for the reset with this queue number. */
export function resetIds(state: ConversationState, number: number): readonly string[] {
  return pendingRequests(state, 'reset').flatMap(({ id, input }) => (input === number ? [id] : []));
}

export function answerResets(state: ConversationState, ids: readonly string[], consolidation: Consolidation): ConversationState {
  return answer(state, 'reset', ids, { reply: 'Session cleared.', session: state.session, consolidation });
}

export function rejectInput(state: ConversationState, event: EventOf<'input-rejected'>): ConversationState {
  const rejection = { name: event.name.slice(0, 64), reason: event.reason.slice(0, 200), at: event.at };
  return {
    ...state,
    rejected: { count: state.rejected.count + 1, last: [...state.rejected.last, rejection].slice(-REMEMBERED_REJECTIONS) },
  };
}

/** The turn that a message became or joined; undefined if that is not decided yet, or the message is forgotten. */
export function turnOfMessage(state: ConversationState, messageId: string): string | undefined {
  const turn = outcomeFor(state, 'message', messageId) ?? findOpenTurn(state, messageId);
  return turn ? turnId(turn) : undefined;
}

/** Searches the state: the id of a waiting message may be forgotten as others arrive (conversation/answers-bounded). */
function findOpenTurn({ turn, queue }: ConversationState, messageId: string): number | undefined {
  if (turn?.messageIds.includes(messageId)) return turn.number;
  return queue.find((item): item is QueuedMessage => item.kind === 'message' && item.messageId === messageId)?.turn;
}

function isInterrupting(item: QueueItem): boolean {
  return item.kind === 'message' && item.delivery === 'interrupt';
}

/** Adds the waiting steering messages to the turn, after the tool results; the next model step writes them. */
export function joinSteering(state: ConversationState): ConversationState {
  return state.queue.reduce((now, item) => {
    if (item.kind !== 'message' || item.turn !== 0 || !now.turn) return now;
    const { number, seq, messageIds } = now.turn;
    const tokens = inTokens(now, messageTokens(item));
    const joined: ConversationState = {
      ...now,
      turn: { ...now.turn, seq: seq + 1, messageIds: [...messageIds, item.messageId], messageTokens: now.turn.messageTokens + tokens },
      queue: now.queue.filter((other) => other !== item),
      outbox: { ...now.outbox, messages: [...now.outbox.messages, { ...item, turn: number, session: now.session, seq: seq + 1 }] },
      context: withSlot(now.context, item.slot),
      contextTokens: now.contextTokens + tokens,
    };
    return assignTurn(joined, item.messageId, number);
  }, state);
}

/** Gives a new turn to each steering message that no model call has taken. */
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
