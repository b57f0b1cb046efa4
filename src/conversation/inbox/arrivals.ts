/**
 * What comes from outside and where it stands in the queue.
 *
 * A message gets its turn, slot and session on arrival. A steering message gets its turn when it joins a running one or becomes the next.
 * Adjacent resets are one, and a reset of an empty session is answered at once.
 *
 * @rule inbox/id-once: A message id is one message and a reset id one reset: the second arrival changes nothing. (test:
 *   test/conversation/lives/own.test.ts)
 */
import type { EventOf } from '../event.js';
import { LIMITS, type Consolidation } from '../protocol/contract.js';
import type { ParsedMessage } from '../protocol/input.js';
import type { QueuedMessage, QueueItem } from '../state/queue-state.js';
import type { ConversationState } from '../state.js';
import { turnId } from '../../records/identity.js';
import { mediaBytes, pickMedia } from '../../records/message.js';
import { utf8Length } from '../../records/text.js';
import { stopTurn } from '../turn/turn.js';

const REMEMBERED_RESETS = 50;
const REMEMBERED_REJECTIONS = 5;

/** Of a message that was checked. */
export function messageReceived(
  { text, media, output, context, tools, delivery }: Extract<ParsedMessage, { kind: 'message' }>,
  messageId: string,
  at: number,
): EventOf<'message-received'> {
  return {
    kind: 'message-received',
    messageId,
    text,
    ...media,
    ...(output && { output }),
    ...(context && { context }),
    ...(tools && { tools }),
    delivery,
    at,
  };
}

export function receiveMessage(state: ConversationState, event: EventOf<'message-received'>): ConversationState {
  if (state.seen.some(([id]) => id === event.messageId)) return state;
  if (state.closing !== 'no') {
    return rejectInput(state, { kind: 'input-rejected', name: 'message', reason: 'the conversation is closing', at: event.at });
  }
  const steering = event.delivery === 'steer' && state.turn !== null;
  const turn = steering ? 0 : state.counters.turn + 1;
  // A session that is being ended is not gone back to: what interrupts comes first in the next one.
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
    delivery: event.delivery,
    text: event.text,
    ...pickMedia(event),
    ...(event.output && { output: event.output }),
    ...(event.context && { context: event.context }),
    ...(event.tools && { tools: event.tools }),
    recorded: false,
  };
  const queued: ConversationState = {
    ...state,
    counters: { ...state.counters, turn: steering ? state.counters.turn : turn, slot: item.slot, queued: item.number },
    queue: [...state.queue.slice(0, index), item, ...state.queue.slice(index)],
    seen: remember(state.seen, event.messageId, turn),
  };
  return event.delivery === 'interrupt' && state.turn ? stopTurn(queued, 'a newer message', event.at) : queued;
}

export function requestReset(state: ConversationState, event: EventOf<'reset-requested'>): ConversationState {
  if (isKnownReset(state, event.resetId)) return state;
  const last = state.queue[state.queue.length - 1];
  if (last?.kind === 'reset') {
    const joined: QueueItem = { ...last, resetIds: [...last.resetIds, event.resetId] };
    return { ...state, queue: [...state.queue.slice(0, -1), joined] };
  }
  if (!last && !state.turn && state.context.length === 0) {
    return answerResets(state, [event.resetId], 'nothing-to-do');
  }
  const number = state.counters.queued + 1;
  return {
    ...state,
    counters: { ...state.counters, queued: number },
    queue: [...state.queue, { kind: 'reset', number, resetIds: [event.resetId], at: event.at }],
  };
}

export function answerResets(state: ConversationState, resetIds: readonly string[], consolidation: Consolidation): ConversationState {
  const result = { reply: 'Session cleared.', session: state.session, consolidation } as const;
  const answered = resetIds.map((resetId) => ({ resetId, result }));
  return { ...state, resets: [...state.resets, ...answered].slice(-Math.max(REMEMBERED_RESETS, answered.length)) };
}

/** A person's stop. When the turn has not begun yet, it ends as it begins. */
export function requestInterrupt(state: ConversationState, event: EventOf<'interrupt-requested'>): ConversationState {
  if (state.turn) return stopTurn(state, event.reason, event.at);
  const [head, ...rest] = state.queue;
  return head?.kind === 'message' ? { ...state, queue: [{ ...head, stopped: true }, ...rest] } : state;
}

export function rejectInput(state: ConversationState, event: EventOf<'input-rejected'>): ConversationState {
  const rejection = { name: event.name.slice(0, 64), reason: event.reason.slice(0, 200), at: event.at };
  return {
    ...state,
    rejected: { count: state.rejected.count + 1, last: [...state.rejected.last, rejection].slice(-REMEMBERED_REJECTIONS) },
  };
}

/** The turn that a message became or joined; undefined while that is open, or when the message is not remembered. */
export function turnOfMessage(state: ConversationState, messageId: string): string | undefined {
  const turn = state.seen.find(([id]) => id === messageId)?.[1] ?? openTurnOf(state, messageId);
  return turn ? turnId(turn) : undefined;
}

/** More than `seen` remembers may arrive while a message waits. */
function openTurnOf({ turn, queue }: ConversationState, messageId: string): number | undefined {
  if (turn?.messageIds.includes(messageId)) return turn.number;
  return queue.find((item): item is QueuedMessage => item.kind === 'message' && item.messageId === messageId)?.turn;
}

export function remember(seen: ConversationState['seen'], messageId: string, turn: number): ConversationState['seen'] {
  return [...seen.filter(([id]) => id !== messageId), [messageId, turn] as const].slice(-LIMITS.rememberedIds);
}

function isKnownReset({ resets, queue }: ConversationState, id: string): boolean {
  return resets.some(({ resetId }) => resetId === id) || queue.some((item) => item.kind === 'reset' && item.resetIds.includes(id));
}

function isInterrupting(item: QueueItem): boolean {
  return item.kind === 'message' && item.delivery === 'interrupt';
}
