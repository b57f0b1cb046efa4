/**
 * Messages that long-term memory does not have yet (seed 001): when their consolidation is requested, and who waits for it. A message here
 * is a user message or a final answer (design section 4, Window).
 *
 * @rule context/consolidated-once: Each message of a session is in one request, and a request is pending until the memory workflow has it.
 *   (test: test/conversation/context/consolidation.test.ts)
 * @rule context/bounded-wait: No caller waits longer than the timeout; a later answer changes nothing here but the cost. (test:
 *   test/conversation/context/consolidation.test.ts)
 * @rule context/covered-turns: A turn is covered once it is consolidated or its consolidation has timed out; the next request begins after
 *   the covered turns, whether they have left the context or not. (test: test/conversation/context/trimming.test.ts)
 * @rule context/only-covered-leaves: Only covered turns leave (context/covered-turns): whole turns, at a turn boundary, without the
 *   application's chunks that stay. (test: test/conversation/context/trimming.test.ts)
 * @rule context/trimmed-as-episode: Trimmed turns become an episode of this session. Its summary is their entry in HISTORY, or shortened
 *   lines if no model summarized; the base also has the goal and the open tasks, as after a compaction. (test:
 *   test/activities/trim.test.ts)
 * @rule context/useless-trim-rests: A trim that would not make the prompt smaller changes nothing, and waits until more is covered. (test:
 *   test/conversation/context/trimming.test.ts)
 */
import { withoutLeft } from './learning.js';
import type { Consolidation } from '../protocol/contract.js';
import { isHeld, type ConversationState } from '../state.js';
import { queuedId, isStoreUpToDate } from '../state/queue-state.js';
import { nextMove, compactsAt, numbersOf } from './compaction.js';
import { isRunning, type Completed, type Failed, type Started } from '../effect.js';
import type { AskMemoryInput, EvictInput, Evicted, TrimInput } from './compaction-effects.js';
import type { EventOf } from '../event.js';
import { retryAfter, storeRetryAfter, isResting, withRetry } from '../state/turn-access.js';
import { listSlots, toRanges, type SlotRange } from '../../records/slots.js';
import type { Turn } from '../state/turn-state.js';
import { addUsage } from '../../records/message.js';
import {
  inTokens,
  withTokenRatio,
  openConsolidation,
  type AwaitedConsolidation,
  type ConsolidationState,
  type WindowTurn,
} from '../state/compaction-state.js';
import { usageOf } from './call-gate.js';
import { estimateTokens } from '../../records/token-estimate.js';

/** Milliseconds (seed 001, Configuration). */
const CONSOLIDATION_TIMEOUT_MS = 30_000;
const REMEMBERED_REQUESTS = 50;
const MAX_ASKED_AT_CLOSE = 5;

/** Adds an ended turn to those that wait for consolidation. */
export function noteTurn(state: ConversationState, turn: Turn): ConversationState {
  const inContext = listSlots(state.context);
  const from = inContext.indexOf(turn.firstSlot);
  if (from === -1) return state;
  // Chunks of other types stay until a reducer removes them (context/chunk-is-entry).
  const pinned = new Set(state.appEvents?.chunks.flatMap(({ type, slot }) => (type === 'WORKING_FLOW' ? [] : [slot])));
  const slots = inContext.slice(from).filter((slot) => !pinned.has(slot));
  const messages = turn.messageIds.length + (turn.answerSlot === null ? 0 : 1);
  return withConsolidation(state, ({ turns }) => ({
    turns: [...turns, { turn: turn.number, messages, slots: toRanges(slots) }],
  }));
}

/** After every event, begins the consolidation that is due. */
export function advanceConsolidation(state: ConversationState): ConversationState {
  const { consolidation } = state;
  if (state.turn || consolidation.ending || isRunning(state, 'evict')) return state;
  // The parent remembers what a sub-agent did.
  if (isEnding(state)) return state.parent || isClosingWithoutMemory(state) ? endUnremembered(state) : beginEnding(state);
  return consolidation.pending === null && !state.parent ? askForOverflow(state) : state;
}

/** True if the session can end without waiting for a consolidation. */
export function endsWithNothing({ consolidation }: ConversationState): boolean {
  return consolidation.ending !== null && consolidation.ending.awaited.length === 0;
}

function isEnding(state: ConversationState): boolean {
  const { queue, closing } = state;
  const [head] = queue;
  if (head?.kind === 'reset') return !isHeld(state, 'event', queuedId(head));
  return closing === 'running-out' && queue.length === 0;
}

/** A reset in the queue still consolidates its session: a client requested that. */
function isClosingWithoutMemory({ queue, closesWithoutMemory }: ConversationState): boolean {
  return closesWithoutMemory === true && queue.length === 0;
}

/** If the session is ending already, it stops waiting for the consolidation. */
export function closeWithoutMemory(state: ConversationState): ConversationState {
  const requested: ConversationState = { ...state, closesWithoutMemory: true };
  return requested.consolidation.ending !== null && isClosingWithoutMemory(requested) ? endUnremembered(requested) : requested;
}

/** Drops this session's unsent requests, and waits for none of the sent ones. */
function endUnremembered(state: ConversationState): ConversationState {
  return withConsolidation(state, ({ pendingRequests }) => ({
    ending: { until: state.now, awaited: [] },
    pendingRequests: pendingRequests.filter(({ session }) => session !== state.session),
  }));
}

/** `/new` and `close`: requests the remaining turns, and waits for them and for the pending consolidation. */
function beginEnding(state: ConversationState): ConversationState {
  const { pending, turns } = state.consolidation;
  const until = state.now + consolidationTimeout(state);
  const left = turns.slice(pending?.turns ?? 0);
  const requested = left.length === 0 ? state : enqueueRequest(state, left, state.queue[0]?.kind === 'reset' ? 'reset' : 'close');
  const request =
    left.length === 0 ? undefined : requested.consolidation.pendingRequests[requested.consolidation.pendingRequests.length - 1];
  const awaited: AwaitedConsolidation[] = [
    ...(pending ? [{ requestId: pending.requestId, slots: pending.slots, until, outcome: null }] : []),
    ...(request ? [{ requestId: request.requestId, slots: request.slots, until, outcome: null }] : []),
  ];
  return withConsolidation(requested, () => ({ ending: { until, awaited } }));
}

/** If there are more messages than the window has, requests all but the last `keep`, in whole turns. */
function askForOverflow(state: ConversationState): ConversationState {
  const memory = state.settings?.memory;
  const { turns } = state.consolidation;
  if (!memory || countMessages(turns) <= memory.window) return state;
  let remaining = 0;
  let cutoff = turns.length;
  while (cutoff > 0 && remaining < memory.keep) remaining += turns[--cutoff]?.messages ?? 0;
  if (cutoff === 0) return state;
  const requested = enqueueRequest(state, turns.slice(0, cutoff), 'window');
  const request = requested.consolidation.pendingRequests[requested.consolidation.pendingRequests.length - 1];
  if (!request) return state;
  const pending = { requestId: request.requestId, slots: request.slots, until: state.now + consolidationTimeout(state), turns: cutoff };
  return withConsolidation(requested, () => ({ pending }));
}

function enqueueRequest(state: ConversationState, turns: readonly WindowTurn[], why: AskMemoryInput['request']['why']): ConversationState {
  const slots = toRanges(turns.flatMap((turn) => listSlots(turn.slots)));
  const first = slots[0]?.[0] ?? 0;
  const last = slots[slots.length - 1]?.[1] ?? 0;
  const request = {
    requestId: `s${state.session}/${first}-${last}`,
    session: state.session,
    slots,
    messages: countMessages(turns),
    agent: state.identity.agent,
    model: state.settings?.model ?? state.modelOverride ?? '',
    ...(state.settings?.fallback?.next.length && { fallback: state.settings.fallback.next }),
    why,
    ...(state.compaction.task && { task: state.compaction.task }),
  };
  return withConsolidation(state, ({ pendingRequests, unbilled }) => ({
    pendingRequests: [...pendingRequests, request],
    unbilled: [...unbilled, request.requestId].slice(-REMEMBERED_REQUESTS),
  }));
}

/** A close waits for pending requests, but not for a memory workflow that cannot be reached at all: the fallback is written. */
export function areRequestsDelivered({ consolidation, retries }: ConversationState): boolean {
  return consolidation.pendingRequests.every(({ requestId }) => (retries[requestId]?.attempts ?? 0) >= MAX_ASKED_AT_CLOSE);
}

/** The next request to the memory workflow. */
export function askMemoryInput(state: ConversationState): AskMemoryInput | undefined {
  const [next] = state.consolidation.pendingRequests;
  // One at a time, so that they arrive in order. The store must have the entries of the request.
  if (!next || isRunning(state, 'ask-memory') || !isStoreUpToDate(state) || isResting(state, next.requestId)) return undefined;
  return { identity: state.identity, request: next };
}

export function acceptAsked(state: ConversationState, { id }: Completed<'ask-memory'>): ConversationState {
  return withConsolidation(state, ({ pendingRequests }) => ({
    pendingRequests: pendingRequests.filter(({ requestId }) => requestId !== id),
  }));
}

export function failAsking(state: ConversationState, { id, failure, at }: Failed<'ask-memory'>): ConversationState {
  return withRetry(state, id, retryAfter(failure, (state.retries[id]?.attempts ?? 0) + 1, at));
}

/** Accepts the memory workflow's answer. A late one only costs (context/bounded-wait). */
export function acceptConsolidation(
  state: ConversationState,
  { requestId, consolidation, usage, handover }: EventOf<'consolidation-ended'>,
): ConversationState {
  const { ending, unbilled } = state.consolidation;
  // The requesting conversation pays, once, however late the result comes.
  const billed: ConversationState =
    usage && unbilled.includes(requestId)
      ? withConsolidation({ ...state, usage: addUsage(state.usage, usage) }, () => ({
          unbilled: unbilled.filter((id) => id !== requestId),
        }))
      : state;
  const withOutcome = (one: AwaitedConsolidation): AwaitedConsolidation =>
    one.requestId === requestId && one.outcome === null ? { ...one, outcome: consolidation } : one;
  const answered = withConsolidation(billed, () => ({ ending: ending && { ...ending, awaited: ending.awaited.map(withOutcome) } }));
  return withHandover(coverPending(answered, requestId), requestId, handover);
}

/** A late one counts too, as long as its turns have not left. */
function withHandover(state: ConversationState, requestId: string, handover: string | undefined): ConversationState {
  if (handover === undefined) return state;
  return withConsolidation(state, ({ covered }) => ({
    covered: covered.map((one) => (one.requestId === requestId ? { ...one, handover } : one)),
  }));
}

/** Marks the pending request's turns as covered; any other id changes nothing (context/covered-turns). */
export function coverPending(state: ConversationState, requestId: string | undefined): ConversationState {
  const { pending, turns } = state.consolidation;
  if (pending?.requestId !== requestId || !pending) return state;
  const present = slotsAtHand(state);
  const newest = { requestId: pending.requestId, turns: turns.slice(0, pending.turns) };
  return withConsolidation(state, ({ covered }) => ({
    turns: turns.slice(pending.turns),
    pending: null,
    // A compaction may have taken some out of the context.
    covered: [...covered, newest].filter((one) => one.turns.some(({ slots }) => listSlots(slots).some((slot) => present.has(slot)))),
  }));
}

/** The next eviction; undefined while a consolidation is awaited, or if nothing is due. */
export function evictInput(state: ConversationState): EvictInput | undefined {
  if (state.turn || isResting(state, 'evict')) return undefined;
  const what = evictionDue(state);
  return what && { identity: state.identity, session: state.session, move: state.counters.move + 1, what };
}

function evictionDue(state: ConversationState): EvictInput['what'] | undefined {
  const { ending, pending } = state.consolidation;
  if (ending) {
    const left = ending.awaited.flatMap(({ requestId, slots, outcome }) => (outcome === null ? [{ requestId, slots }] : []));
    if (state.now < ending.until && left.length > 0) return undefined;
    return { kind: 'session-end', archive: leavingAtEnd(state), unfinished: left, task: state.compaction.task };
  }
  if (pending && state.now >= pending.until)
    return { kind: 'overdue', unfinished: [{ requestId: pending.requestId, slots: pending.slots }] };
  const trim = trimInput(state);
  return trim && { kind: 'trim', ...trim };
}

export function startEviction(state: ConversationState, { input }: Started<'evict'>): ConversationState {
  return input.what.kind === 'trim' ? startTrim(nextMove(state)) : nextMove(state);
}

/** How the session was consolidated, as the answer to a reset. */
export function consolidationOf({ consolidation }: ConversationState, finished: boolean): Consolidation {
  const outcomes = (consolidation.ending?.awaited ?? []).map(({ outcome }) => outcome ?? (finished ? 'model' : 'raw-fallback'));
  if (outcomes.includes('raw-fallback')) return 'raw-fallback';
  return outcomes.includes('model') ? 'model' : 'nothing-to-do';
}

export function failEviction(state: ConversationState, { failure, at }: Failed<'evict'>): ConversationState {
  return withRetry(state, 'evict', storeRetryAfter(failure, (state.retries['evict']?.attempts ?? 0) + 1, at));
}

/** A new session: nothing of the old one is in the window, but pending requests stay pending (context/consolidated-once). */
export function freshConsolidation(state: ConversationState): ConversationState {
  const { pendingRequests, unbilled, trims } = state.consolidation;
  return { ...state, consolidation: { ...openConsolidation(state.now), pendingRequests, unbilled, trims } };
}

export function countMessages(turns: readonly WindowTurn[]): number {
  return turns.reduce((sum, { messages }) => sum + messages, 0);
}

function consolidationTimeout({ settings }: ConversationState): number {
  return settings?.memory.timeoutMs ?? CONSOLIDATION_TIMEOUT_MS;
}

function withConsolidation(
  state: ConversationState,
  change: (consolidation: ConsolidationState) => Partial<ConsolidationState>,
): ConversationState {
  return { ...state, consolidation: { ...state.consolidation, ...change(state.consolidation) } };
}

// Trimming: when consolidated turns leave the prompt, and what replaces them (seed 001, `trimBefore`; design section 4, Window).

/** Entries that are searched for a session's first message. */
const OPENING = 16;

/** Undefined while nothing is to leave. */
function trimInput(state: ConversationState): TrimInput | undefined {
  const { consolidation, compaction, settings } = state;
  const { covered, trimRest, since } = consolidation;
  if (covered.length === 0 || !isTrimDue(state)) return undefined;
  const present = slotsAtHand(state);
  // (context/only-covered-leaves)
  for (const { type, slot } of state.appEvents?.chunks ?? []) if (type !== 'WORKING_FLOW') present.delete(slot);
  const atHand = covered.flatMap(({ requestId, turns, handover }) => {
    const slots = turns.flatMap((turn) => listSlots(turn.slots)).filter((slot) => present.has(slot));
    return slots.length === 0 ? [] : [{ requestId, slots: toRanges(slots), ...(handover !== undefined && { handover }) }];
  });
  const newest = newestRequest(atHand);
  if (newest === undefined || newest === trimRest) return undefined; // (context/useless-trim-rests)
  const leaving = new Set(atHand.flatMap(({ slots }) => listSlots(slots)));
  return {
    covered: atHand,
    before: toRanges(beginningWithout(state, leaving)),
    leftOut: toRanges(listSlots(compaction.leftOut ?? []).filter((slot) => leaving.has(slot))),
    epoch: state.epoch + 1,
    number: compaction.compactions + 1,
    since,
    task: compaction.task,
    baseTokens: compaction.baseTokens,
    ...withTokenRatio(state),
    ...(settings && { line: compactsAt(settings) }),
  };
}

/** After a rewind, older turns may stay: those that a summary covers together with removed turns. */
function beginningWithout({ context }: ConversationState, leaving: ReadonlySet<number>): number[] {
  const slots = listSlots(context);
  const first = slots.findIndex((slot) => leaving.has(slot));
  return slots.slice(0, Math.min(Math.max(first, 0), OPENING));
}

function isTrimDue(state: ConversationState): boolean {
  const { settings } = state;
  if (!settings) return false;
  return settings.memory.trim === 'at-window' || usageOf(numbersOf(state), settings).suggestCompaction;
}

/** Uses up the episode's number, even if the trim fails, so that none is used twice. */
function startTrim(state: ConversationState): ConversationState {
  const { compaction, consolidation } = state;
  return {
    ...state,
    compaction: { ...compaction, compactions: compaction.compactions + 1 },
    consolidation: { ...consolidation, trims: consolidation.trims + 1 },
  };
}

/** A new epoch begins. */
export function acceptTrim(state: ConversationState, input: TrimInput, { trimmed }: Evicted): ConversationState {
  const { compaction, consolidation, contextTokens } = state;
  const newest = newestRequest(input.covered);
  // (context/useless-trim-rests)
  if (!trimmed) return { ...state, consolidation: { ...consolidation, ...(newest !== undefined && { trimRest: newest }) } };
  const left = new Set(input.covered.map(({ requestId }) => requestId));
  const { archived, messages, unsummarized, tokens, base, task } = trimmed;
  const gone = new Set(listSlots(archived));
  const baseTokens = inTokens(state, estimateTokens(base.text));
  const fixed = state.settings?.fixedTokens ?? 0;
  const { trimRest: _, ...others } = consolidation;
  const before = consolidation.trimmed ?? { times: 0, messages: 0, unsummarized: 0 };
  return {
    ...state,
    epoch: state.epoch + 1,
    context: toRanges(listSlots(state.context).filter((slot) => !gone.has(slot))),
    contextTokens: Math.max(fixed + baseTokens, contextTokens - tokens - compaction.baseTokens + baseTokens),
    compaction: {
      ...compaction,
      ...{ base: base.ref, baseTokens, task },
      ...(compaction.leftOut && { leftOut: toRanges(listSlots(compaction.leftOut).filter((slot) => !gone.has(slot))) }),
      ...withoutLeft(compaction, gone),
      // An undo cannot restore the context from before a trim.
      ...{ reported: null, before: null },
    },
    consolidation: {
      ...others,
      covered: consolidation.covered.filter(({ requestId }) => !left.has(requestId)),
      trimmed: {
        times: before.times + 1,
        messages: before.messages + messages,
        unsummarized: before.unsummarized + unsummarized,
      },
    },
  };
}

/** Those that were truncated, too: an archived session leaves nothing among the active traces. */
function leavingAtEnd({ context, compaction: { leftOut = [] } }: ConversationState): readonly SlotRange[] {
  return leftOut.length === 0 ? context : toRanges([...new Set(listSlots([...leftOut, ...context]))].sort((a, b) => a - b));
}

/** Slots in the context, or truncated until the next summary. */
function slotsAtHand({ context, compaction }: ConversationState): Set<number> {
  return new Set(listSlots([...context, ...(compaction.leftOut ?? [])]));
}

function newestRequest(covered: TrimInput['covered']): string | undefined {
  return covered[covered.length - 1]?.requestId;
}
