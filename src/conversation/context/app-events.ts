/**
 * Application events (seed 004): queued like messages, and reduced in order, between turns or between the effects of a running turn.
 *
 * @rule context/event-once: An application's event is reduced once. An event without a reducer, or whose reducer fails, is kept, counted
 *   and named, and the conversation goes on. (test: test/conversation/stepping/control.test.ts)
 * @rule context/events-bounded: Payloads of application events are in the state, so only a bounded number waits; a refused event is
 *   reported, never dropped silently. (test: test/conversation/stepping/control.test.ts)
 * @rule context/events-between-effects: An application's event adds nothing to a context that a model call reads or that is being changed.
 *   Within a turn an event passes messages that wait for their turn, but no reset, since events belong to one session. (test:
 *   test/conversation/context/app-events.test.ts)
 */
import { NO_EVENTS, performOperation } from './chunks.js';
import { rejectInput } from '../inbox/arrivals.js';
import { isChangingContext, isRunning } from '../effect.js';
import { LIMITS } from '../protocol/contract.js';
import { chunkId, type AppChunk, type AppEvent, type BuiltInChunk, type Reduced, type ReducerView } from './reducers.js';
import { isHeld, type ConversationState } from '../state.js';
import { queuedId, nextAppEvent, type QueuedAppEvent } from '../state/queue-state.js';
import type { EventOf } from '../event.js';
import type { JsonValue } from '../../records/message.js';
import type { AppEventOutcome } from '../protocol/stepping.js';
import { listSlots } from '../../records/slots.js';
import { utf8Length } from '../../records/text.js';
import { answer, isKnown, isPending, outcomeFor, request } from '../requests.js';
import { estimateTokens } from '../../records/token-estimate.js';

const REMEMBERED = 20;
/** Chunk ids in a result. */
const MAX_NAMED = 200;

/**
 * The same id twice is one event (context/event-once). A signal cannot be refused: excess events are listed among the rejected inputs
 * (context/events-bounded).
 */
export function receiveAppEvent(
  state: ConversationState,
  { id, type, payload, isAwaited, at }: EventOf<'app-event-received'>,
): ConversationState {
  if (isKnownEvent(state, id)) return isAwaited && isQueued(state, id) ? request(state, { kind: 'dispatch', id }) : state;
  const reason = appEventRefusal(state, payload);
  if (reason !== undefined) return rejectInput(state, { kind: 'input-rejected', name: `event ${type}`, reason, at });
  const number = state.counters.queued + 1;
  const queued: ConversationState = {
    ...state,
    counters: { ...state.counters, queued: number },
    queue: [...state.queue, { kind: 'app', number, id, type, payload, bytes: payloadBytes(payload), at }],
  };
  const accepted = answer(queued, 'event', [id], null);
  return isAwaited ? request(accepted, { kind: 'dispatch', id }) : accepted;
}

/** The outcome of an event that a client waits for; undefined while it is queued, `not-known` if it was reduced long ago. */
export function outcomeOfEvent(state: ConversationState, id: string): AppEventOutcome | undefined {
  return isQueued(state, id) ? undefined : (outcomeFor(state, 'dispatch', id) ?? { kind: 'not-known' });
}

/** Why a further event is refused now; undefined if it is accepted. */
export function appEventRefusal(state: ConversationState, payload: JsonValue): string | undefined {
  let [waiting, bytes] = [0, payloadBytes(payload)];
  for (const item of state.queue) {
    if (item.kind !== 'app') continue;
    waiting += 1;
    bytes += item.bytes;
  }
  if (waiting >= LIMITS.queuedEvents)
    return `${waiting} events wait to be reduced, the limit is ${LIMITS.queuedEvents}: dispatch it when some of them are done`;
  if (bytes > LIMITS.queuedEventBytes)
    return `the payloads that wait would be ${bytes} bytes, the limit is ${LIMITS.queuedEventBytes}: dispatch it when some are done, or smaller`;
  return undefined;
}

/** Searches the queue too: more events may wait than ids are remembered (conversation/answers-bounded). */
export function isKnownEvent(state: ConversationState, id: string): boolean {
  return isKnown(state, 'event', id) || isQueued(state, id);
}

function isQueued({ queue }: ConversationState, id: string): boolean {
  return queue.some((item) => item.kind === 'app' && item.id === id);
}

function payloadBytes(payload: JsonValue): number {
  return utf8Length(JSON.stringify(payload) ?? '');
}

/** Undefined while an effect reads or changes the context (context/events-between-effects). */
export function eventToReduce(state: ConversationState): { readonly event: AppEvent; readonly view: ReducerView } | undefined {
  const next = nextAppEvent(state);
  if (!next || isRunning(state, 'model-step') || isChangingContext(state) || isHeld(state, 'event', queuedId(next))) return undefined;
  const { id, type, payload, at } = next;
  const { session, latestTurn: turn, contextTokens } = state;
  const chunks = inOrder(state);
  return { event: { id, type, payload, at }, view: { chunks, builtIn: builtInChunks(state), session, turn, contextTokens } };
}

/** As they stand in the context. */
function inOrder({ appEvents, context }: ConversationState): readonly AppChunk[] {
  const places = new Map(listSlots(context).map((slot, place) => [slot, place]));
  return [...(appEvents?.chunks ?? [])].sort((a, b) => (places.get(a.slot) ?? 0) - (places.get(b.slot) ?? 0));
}

function builtInChunks({ compaction, settings, contextTokens, context, appEvents }: ConversationState): BuiltInChunk[] {
  const { base, baseTokens, task } = compaction;
  const appChunks = appEvents?.chunks ?? [];
  const fixed = settings?.fixedTokens ?? 0;
  const slots = new Set(appChunks.map(({ slot }) => slot));
  const ids = listSlots(context).flatMap((slot) => (slots.has(slot) ? [] : [chunkId(slot)]));
  const flow = contextTokens - fixed - baseTokens - appChunks.reduce((sum, { tokens }) => sum + tokens, 0);
  const goal = task && [task.goal, ...task.openTasks.map((open) => `- ${open}`)].join('\n');
  return [
    { type: 'SYSTEM', tokens: fixed },
    ...(base === null ? [] : [{ type: 'SUMMARY', tokens: baseTokens } as const]),
    ...(goal ? [{ type: 'TASK', tokens: estimateTokens(goal), text: goal } as const] : []),
    { type: 'WORKING_FLOW', tokens: Math.max(0, flow), ids },
  ];
}

export function acceptReduced(state: ConversationState, { id, reduced, at }: EventOf<'app-event-reduced'>): ConversationState {
  const item = state.queue.find((other): other is QueuedAppEvent => other.kind === 'app' && other.id === id);
  if (!item) return state;
  const taken: ConversationState = { ...state, queue: state.queue.filter((other) => other !== item) };
  const after = applyReduced(taken, item, reduced, at);
  return isPending(after, 'dispatch', id) ? answer(after, 'dispatch', [id], toOutcome(taken, after, reduced)) : after;
}

function toOutcome(before: ConversationState, after: ConversationState, reduced: Reduced): AppEventOutcome {
  if (reduced.kind !== 'reduced') return reduced;
  const idsIn = ({ appEvents }: ConversationState): string[] => (appEvents?.chunks ?? []).map(({ id }) => id);
  const [had, has] = [idsIn(before), idsIn(after)];
  return {
    kind: 'reduced',
    addedChunks: has.filter((id) => !had.includes(id)).slice(-MAX_NAMED),
    removedChunkIds: had.filter((id) => !has.includes(id)).slice(-MAX_NAMED),
    contextTokens: { before: before.contextTokens, after: after.contextTokens },
  };
}

function applyReduced(taken: ConversationState, item: QueuedAppEvent, reduced: Reduced, at: number): ConversationState {
  const { id } = item;
  const events = taken.appEvents ?? NO_EVENTS;
  switch (reduced.kind) {
    case 'reduced':
      return reduced.operations.reduce((now, operation) => performOperation(now, operation, at), taken);
    case 'unreduced': {
      const { count, types } = events.unreduced;
      const named = [...types.filter((type) => type !== item.type), item.type].slice(-REMEMBERED);
      return { ...taken, appEvents: { ...events, unreduced: { count: count + 1, types: named } } };
    }
    case 'parked': {
      const parked = [...events.parked, { id, type: item.type, error: reduced.error, at }].slice(-REMEMBERED);
      return { ...taken, appEvents: { ...events, parked, parkedCount: events.parkedCount + 1 } };
    }
  }
}
