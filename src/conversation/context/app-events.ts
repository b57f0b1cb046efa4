/**
 * Application events (seed 004): queued like messages, and reduced in order, between turns or between the effects of a running turn.
 *
 * A removed chunk gives back exactly the tokens that it took.
 *
 * @rule context/event-once: An application's event is reduced once. An event without a reducer, or whose reducer fails, is kept, counted
 *   and named, and the conversation goes on. (test: test/conversation/stepping/control.test.ts)
 * @rule context/events-bounded: Payloads of application events are in the state, so only a bounded number waits; a refused event is
 *   reported, never dropped silently. (test: test/conversation/stepping/control.test.ts)
 * @rule context/chunk-is-entry: An application's chunk is an entry of the conversation: it is recorded and healed like any other. A
 *   WORKING_FLOW chunk is compacted and truncated too; a chunk of another type stays until a reducer removes it or the session ends. (test:
 *   test/conversation/context/app-events.test.ts)
 * @rule context/events-between-effects: An application's event adds nothing to a context that a model call reads or that is being changed.
 *   Within a turn an event passes messages that wait for their turn, but no reset, since events belong to one session. (test:
 *   test/conversation/context/app-events.test.ts)
 */
import { inTokens } from '../state/compaction-state.js';
import { rejectInput } from '../inbox/arrivals.js';
import { isChangingContext, isRunning } from '../effect.js';
import { LIMITS } from '../protocol/contract.js';
import {
  chunkId,
  type AppChunk,
  type AppEvent,
  type AppEvents,
  type BuiltInChunk,
  type ChunkOperation,
  type NewChunk,
  type Reduced,
  type ReducerView,
} from './reducers.js';
import { isHeld, type ConversationState } from '../state.js';
import { queuedId, nextAppEvent, type QueuedAppEvent } from '../state/queue-state.js';
import type { EventOf } from '../event.js';
import type { Entry, JsonValue } from '../../records/message.js';
import type { AppEventOutcome } from '../protocol/stepping.js';
import { settle } from '../outbox/settlement.js';
import { listSlots, toRanges } from '../../records/slots.js';
import { utf8Length } from '../../records/text.js';
import { answer, isKnown, isPending, outcomeFor, request } from '../requests.js';
import { estimateTokens } from '../../records/token-estimate.js';
import { turnId } from '../../records/identity.js';

const NONE: AppEvents = { chunks: [], unreduced: { count: 0, types: [] }, parked: [], parkedCount: 0 };
const REMEMBERED = 20;
/** Chunk ids in a result. */
const MAX_NAMED = 200;
/** Characters of chunk text that the state holds for reducers: per chunk, and of all chunks. */
const [MAX_TEXT, MAX_TEXTS] = [4 * 1024, 64 * 1024];
/** Sorts chunks after all entries of a turn. */
const FIRST_SEQ = 2_000_000;

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
  const events = taken.appEvents ?? NONE;
  switch (reduced.kind) {
    case 'reduced':
      return reduced.operations.reduce((now, operation) => perform(now, operation, at), taken);
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

function perform(state: ConversationState, operation: ChunkOperation, at: number): ConversationState {
  switch (operation.kind) {
    case 'ADD':
      return add(state, operation.chunk, at);
    case 'DELETE':
      return remove(state, operation.id);
    case 'UPDATE': {
      const old = findChunk(state, operation.id);
      if (!old) return state;
      const added = add(state, { type: old.type, text: operation.text }, at, old.createdAt);
      const slot = added.counters.slot;
      // In the old one's place.
      const slots = listSlots(state.context).map((other) => (other === old.slot ? slot : other));
      return remove({ ...added, context: slots.includes(slot) ? toRanges(slots) : added.context }, old.id);
    }
    case 'BATCH_REPLACE': {
      const without = operation.ids.reduce(remove, state);
      const replaced = operation.chunks.reduce((now, chunk) => add(now, chunk, at), without);
      return { ...replaced, epoch: replaced.epoch + 1, compaction: { ...replaced.compaction, reported: null, before: null } };
    }
  }
}

function add(state: ConversationState, { type, text }: NewChunk, at: number, createdAt = at): ConversationState {
  const slot = state.counters.slot + 1;
  const turn = turnId(state.latestTurn);
  const isCompressible = type === 'WORKING_FLOW';
  const shown = isCompressible ? text : `[${type}] ${text}`;
  const tokens = inTokens(state, estimateTokens(shown));
  const entry: Entry = {
    v: 1,
    slot,
    session: state.session,
    turn,
    seq: FIRST_SEQ + slot,
    ts: at / 1000,
    message: { role: 'user', text: shown, from: 'app', ...(!isCompressible && { chunk: type }) },
  };
  const events = state.appEvents ?? NONE;
  const textSize = events.chunks.reduce((sum, chunk) => sum + (chunk.text?.length ?? 0), 0);
  const keepsText = text.length <= MAX_TEXT && textSize + text.length <= MAX_TEXTS;
  const recorded = settle({ ...state, counters: { ...state.counters, slot } }, [{ effect: `app/${slot}`, entry }]);
  return {
    ...recorded,
    context: toRanges([...listSlots(state.context), slot]),
    contextTokens: state.contextTokens + tokens,
    appEvents: { ...events, chunks: [...events.chunks, { id: chunkId(slot), type, slot, tokens, createdAt, ...(keepsText && { text }) }] },
  };
}

function remove(state: ConversationState, id: string): ConversationState {
  const chunk = findChunk(state, id);
  const events = state.appEvents ?? NONE;
  if (!chunk) return state;
  return {
    ...state,
    context: toRanges(listSlots(state.context).filter((slot) => slot !== chunk.slot)),
    contextTokens: Math.max(0, state.contextTokens - chunk.tokens),
    appEvents: { ...events, chunks: events.chunks.filter((other) => other !== chunk) },
  };
}

/** Forgets chunks that a compaction, a reset or a rewind took out of the context. */
export function withChunksInContext(state: ConversationState): ConversationState {
  const { appEvents } = state;
  if (!appEvents || appEvents.chunks.length === 0) return state;
  const present = new Set(listSlots(state.context));
  const chunks = appEvents.chunks.filter(({ slot }) => present.has(slot));
  return chunks.length === appEvents.chunks.length ? state : { ...state, appEvents: { ...appEvents, chunks } };
}

function findChunk({ appEvents }: ConversationState, id: string): AppChunk | undefined {
  return appEvents?.chunks.find((chunk) => chunk.id === id);
}
