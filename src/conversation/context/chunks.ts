/**
 * Chunks of the application (seed 004) in a conversation's state: what operations do to them, and what a compaction, an undo, a rewind and
 * another life leave of them.
 *
 * A removed chunk gives back exactly the tokens that it took.
 *
 * @rule context/chunk-is-entry: An application's chunk is an entry of the conversation: it is recorded and healed like any other. A
 *   WORKING_FLOW chunk is compacted and truncated too; a chunk of another type stays until a reducer removes it or the session ends. (test:
 *   test/conversation/context/app-events.test.ts)
 * @rule context/chunks-in-every-life: What an event did to chunks is recorded with its turn: a fork, a resumed, rewound or undone
 *   conversation has the chunks of its turns, in their latest versions, and its reducers are shown them. (test:
 *   test/activities/chunks-of-lives.test.ts)
 */
import type { Entry, UserMessage } from '../../records/message.js';
import { turnId } from '../../records/identity.js';
import { listSlots, toRanges } from '../../records/slots.js';
import { estimateTokens } from '../../records/token-estimate.js';
import { settle } from '../outbox/settlement.js';
import { inTokens } from '../state/compaction-state.js';
import type { ConversationState } from '../state.js';
import { chunkId, type AppChunk, type AppEvents, type ChunkOperation, type NewChunk } from './reducers.js';

export const NO_EVENTS: AppEvents = { chunks: [], unreduced: { count: 0, types: [] }, parked: [], parkedCount: 0 };
/** Characters of chunk text that the state holds for reducers: per chunk, and of all chunks. */
const [MAX_TEXT, MAX_TEXTS] = [4 * 1024, 64 * 1024];
/** Sorts chunks after all entries of a turn. */
const FIRST_SEQ = 2_000_000;

export function performOperation(state: ConversationState, operation: ChunkOperation, at: number): ConversationState {
  switch (operation.kind) {
    case 'ADD':
      return add(state, operation.chunk, at);
    case 'DELETE':
      return remove(state, [operation.id], at);
    case 'UPDATE': {
      const old = findChunk(state, operation.id);
      if (!old) return state;
      const added = add(state, { type: old.type, text: operation.text }, at, old);
      const slot = added.counters.slot;
      // In the old one's place.
      const slots = listSlots(state.context).map((other) => (other === old.slot ? slot : other));
      const placed = { ...added, context: slots.includes(slot) ? toRanges(slots) : added.context };
      return takeOut(withoutInUndo(placed, old, findChunk(placed, chunkId(slot))), old);
    }
    case 'BATCH_REPLACE': {
      const without = remove(state, operation.ids, at);
      const replaced = operation.chunks.reduce((now, chunk) => add(now, chunk, at), without);
      return { ...replaced, epoch: replaced.epoch + 1, compaction: { ...replaced.compaction, reported: null, before: null } };
    }
  }
}

function add(state: ConversationState, { type, text }: NewChunk, at: number, updated?: AppChunk): ConversationState {
  const slot = state.counters.slot + 1;
  const isCompressible = type === 'WORKING_FLOW';
  const shown = isCompressible ? text : `[${type}] ${text}`;
  const tokens = inTokens(state, estimateTokens(shown));
  const events = state.appEvents ?? NO_EVENTS;
  const chunk: AppChunk = { id: chunkId(slot), type, slot, tokens, createdAt: updated?.createdAt ?? at, text };
  const recorded = record(state, at, {
    role: 'user',
    text: shown,
    from: 'app',
    ...(!isCompressible && { chunk: type }),
    ...(updated && { updates: updated.slot }),
  });
  return {
    ...recorded,
    context: toRanges([...listSlots(state.context), slot]),
    contextTokens: state.contextTokens + tokens,
    appEvents: { ...events, chunks: boundTexts([...events.chunks, chunk]) },
  };
}

function record(state: ConversationState, at: number, message: UserMessage): ConversationState {
  const slot = state.counters.slot + 1;
  const turn = turnId(state.latestTurn);
  const entry: Entry = { v: 1, slot, session: state.session, turn, seq: FIRST_SEQ + slot, ts: at / 1000, message };
  return settle({ ...state, counters: { ...state.counters, slot } }, [{ effect: `app/${slot}`, entry }]);
}

/** The oldest that fit keep their texts. */
export function boundTexts(chunks: readonly AppChunk[]): AppChunk[] {
  let left = MAX_TEXTS;
  return chunks.map(({ text, ...chunk }) => {
    if (text === undefined || text.length > MAX_TEXT || text.length > left) return chunk;
    left -= text.length;
    return { ...chunk, text };
  });
}

/** (context/chunks-in-every-life) */
function remove(state: ConversationState, ids: readonly string[], at: number): ConversationState {
  const chunks = ids.flatMap((id) => findChunk(state, id) ?? []);
  if (chunks.length === 0) return state;
  const removes = chunks.map(({ slot }) => slot);
  const text = `[removed by the application: ${removes.map(chunkId).join(', ')}]`;
  const recorded = record(state, at, { role: 'user', text, from: 'notice', removes });
  return chunks.reduce((now, chunk) => takeOut(withoutInUndo(now, chunk), chunk), recorded);
}

function takeOut(state: ConversationState, chunk: AppChunk): ConversationState {
  const events = state.appEvents ?? NO_EVENTS;
  return {
    ...state,
    context: toRanges(listSlots(state.context).filter((slot) => slot !== chunk.slot)),
    contextTokens: Math.max(0, state.contextTokens - chunk.tokens),
    appEvents: { ...events, chunks: events.chunks.filter((other) => other !== chunk) },
  };
}

/** An undo brings back neither a removed chunk nor an earlier version of one. */
function withoutInUndo(state: ConversationState, chunk: AppChunk, updated?: AppChunk): ConversationState {
  const { before } = state.compaction;
  const context = listSlots(before?.context ?? []);
  if (!before || !context.includes(chunk.slot)) return state;
  const changed = {
    ...before,
    context: toRanges(context.flatMap((slot) => (slot !== chunk.slot ? [slot] : updated ? [updated.slot] : []))),
    contextTokens: Math.max(0, before.contextTokens - chunk.tokens + (updated?.tokens ?? 0)),
    chunks: (before.chunks ?? []).flatMap((one) => (one.slot !== chunk.slot ? [one] : updated ? [updated] : [])),
  };
  return { ...state, compaction: { ...state.compaction, before: changed } };
}

/** After an undo: what was compacted is there again, beside what was added since. */
export function withChunksBefore(state: ConversationState, had: readonly AppChunk[]): ConversationState {
  const events = state.appEvents ?? NO_EVENTS;
  const known = new Set(had.map(({ slot }) => slot));
  const since = events.chunks.filter(({ slot }) => !known.has(slot));
  const tokens = since.reduce((sum, chunk) => sum + chunk.tokens, 0);
  if (had.length + since.length === 0) return state;
  return { ...state, contextTokens: state.contextTokens + tokens, appEvents: { ...events, chunks: boundTexts([...had, ...since]) } };
}

/** What a life goes on with. Undefined: of a history that did not say it, where those that are still in the context are known. */
export function withResumedChunks(state: ConversationState, chunks: readonly AppChunk[] | undefined): ConversationState {
  if (chunks === undefined || (chunks.length === 0 && !state.appEvents)) return state;
  const counted = chunks.map((chunk) => ({ ...chunk, tokens: inTokens(state, chunk.tokens) }));
  return { ...state, appEvents: { ...(state.appEvents ?? NO_EVENTS), chunks: boundTexts(counted) } };
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
