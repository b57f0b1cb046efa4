/**
 * Events of the application's own (seed 004): queued like every other, and reduced when it is their turn, between turns.
 *
 * V1  An event is reduced once. One without a reducer, and one on which a reducer failed, is kept, counted and named; the conversation goes on.
 * V3  Their payloads lie in the state: a bounded number waits at once, and what is refused is reported, never dropped silently.
 * V2  A chunk is an entry of the conversation: it is recorded and healed like any other. Of type WORKING_FLOW it is compacted and truncated
 *     like any other, too; one of another type stays until a reducer removes it, or the session ends.
 * V4  What a chunk takes of the context is what it gives back.
 */
import { rejectInput } from './arrivals.js';
import { isChangingContext } from '../context/compaction.js';
import { LIMITS } from '../protocol/contract.js';
import { isHeld, queuedId } from '../stepping/control.js';
import type { EventOf } from '../event.js';
import type { Entry, JsonValue } from '../../records/message.js';
import type { AppChunk, AppEvent, ChunkOperation, NewChunk, ReducerView, AppEvents } from './reducers.js';
import { settle } from '../outbox/settlement.js';
import { slotsOf, toRanges } from '../../records/slots.js';
import { utf8Length } from '../../records/text.js';
import type { QueueItem } from '../state/queue-state.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-usage.js';
import { turnId } from '../../records/identity.js';

const NONE: AppEvents = { chunks: [], unreduced: { count: 0, types: [] }, parked: [], parkedCount: 0 };
const REMEMBERED = 20;
/** After all that a turn can have of its own. */
const FIRST_SEQ = 2_000_000;

/** The same id twice is one event (V1). A signal cannot be refused: what is too much is listed among the rejected inputs (V3). */
export function receiveAppEvent(state: ConversationState, { id, type, payload, at }: EventOf<'app-event-received'>): ConversationState {
  if (isKnownEvent(state, id)) return state;
  const reason = appEventRefusal(state, payload);
  if (reason !== undefined) return rejectInput(state, { kind: 'input-rejected', name: `event ${type}`, reason, at });
  const number = state.counters.queued + 1;
  return {
    ...state,
    counters: { ...state.counters, queued: number },
    queue: [...state.queue, { kind: 'app', number, id, type, payload, bytes: payloadBytes(payload), at }],
    seenEvents: [...(state.seenEvents ?? []), id].slice(-LIMITS.rememberedEvents),
  };
}

/** Why no further event is taken now; undefined when it is. */
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

export function isKnownEvent({ queue, seenEvents = [] }: ConversationState, id: string): boolean {
  return seenEvents.includes(id) || queue.some((item) => item.kind === 'app' && item.id === id);
}

function payloadBytes(payload: JsonValue): number {
  return utf8Length(JSON.stringify(payload) ?? '');
}

/** The event at the head of the queue, when it is its turn. */
export function eventToReduce(state: ConversationState): { readonly event: AppEvent; readonly view: ReducerView } | undefined {
  const [head] = state.queue;
  if (state.turn || isChangingContext(state) || head?.kind !== 'app' || isHeld(state, 'event', queuedId(head))) return undefined;
  const { id, type, payload, at } = head;
  const { session, latestTurn: turn, contextTokens } = state;
  return { event: { id, type, payload, at }, view: { chunks: state.appEvents?.chunks ?? [], session, turn, contextTokens } };
}

export function acceptReduced(state: ConversationState, { id, reduced, at }: EventOf<'app-event-reduced'>): ConversationState {
  const item = state.queue.find((other): other is Extract<QueueItem, { kind: 'app' }> => other.kind === 'app' && other.id === id);
  if (!item) return state;
  const taken: ConversationState = { ...state, queue: state.queue.filter((other) => other !== item) };
  const events = state.appEvents ?? NONE;
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
      const old = chunkOf(state, operation.id);
      if (!old) return state;
      const added = add(state, { type: old.type, text: operation.text }, at, old.createdAt);
      const slot = added.counters.slot;
      // In the old one's place.
      const slots = slotsOf(state.context).map((other) => (other === old.slot ? slot : other));
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
  const tokens = estimateTokens(shown.length);
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
  const recorded = settle({ ...state, counters: { ...state.counters, slot } }, [{ effect: `app/${slot}`, entry }]);
  return {
    ...recorded,
    context: toRanges([...slotsOf(state.context), slot]),
    contextTokens: state.contextTokens + tokens,
    appEvents: { ...events, chunks: [...events.chunks, { id: `chunk_${slot}`, type, slot, tokens, createdAt }] },
  };
}

function remove(state: ConversationState, id: string): ConversationState {
  const chunk = chunkOf(state, id);
  const events = state.appEvents ?? NONE;
  if (!chunk) return state;
  return {
    ...state,
    context: toRanges(slotsOf(state.context).filter((slot) => slot !== chunk.slot)),
    contextTokens: Math.max(0, state.contextTokens - chunk.tokens),
    appEvents: { ...events, chunks: events.chunks.filter((other) => other !== chunk) },
  };
}

/** What has left the context (a compaction, a reset, a rewind) is no chunk any more. */
export function withChunksInContext(state: ConversationState): ConversationState {
  const { appEvents } = state;
  if (!appEvents || appEvents.chunks.length === 0) return state;
  const there = new Set(slotsOf(state.context));
  const chunks = appEvents.chunks.filter(({ slot }) => there.has(slot));
  return chunks.length === appEvents.chunks.length ? state : { ...state, appEvents: { ...appEvents, chunks } };
}

function chunkOf({ appEvents }: ConversationState, id: string): AppChunk | undefined {
  return appEvents?.chunks.find((chunk) => chunk.id === id);
}
