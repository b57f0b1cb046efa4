/**
 * What of a conversation long-term memory does not have yet (seed 001): when it is asked for, who waits for it, and when messages
 * leave the context. A message here is a user message or a final answer (design section 4, Window).
 *
 * L1  Each message of a session is asked for once: its turn is in one request, and a request is owed until the memory workflow has it.
 * L2  Nobody waits longer than the timeout. What comes later changes nothing here but the cost.
 * L3  Messages leave the context at a turn border only, whole turns, and only once they are consolidated or that has timed out.
 */
import type { Consolidation } from './contract.js';
import { isHeld, queuedId } from './control.js';
import type { AskMemoryInput, PutAwayInput } from './memory-effects.js';
import type { ConversationEvent } from './event.js';
import { retryAfter, storeRetryAfter } from './retry.js';
import { slotsOf, toRanges, withSlot } from './slots.js';
import type { ConversationState } from './state.js';
import { estimateTokens } from './token-usage.js';
import type { Turn } from './turn-state.js';
import { addUsage } from './usage.js';
import { openWindow, type AwaitedConsolidation, type WindowState, type WindowTurn } from './window-state.js';

type Of<Kind extends ConversationEvent['kind']> = Extract<ConversationEvent, { kind: Kind }>;

/** Milliseconds (seed 001, Configuration). */
const CONSOLIDATION_TIMEOUT_MS = 30_000;
const REMEMBERED_REQUESTS = 50;
const MOST_ASKED_AT_CLOSE = 5;

/** A turn has ended: its messages are to be remembered. */
export function noteTurn(state: ConversationState, turn: Turn): ConversationState {
  const inContext = slotsOf(state.context);
  const from = turn.firstSlot === undefined ? 0 : inContext.indexOf(turn.firstSlot);
  if (from === -1) return state;
  const messages = turn.messageIds.length + (turn.answerSlot === null ? 0 : 1);
  return withWindow(state, ({ turns }) => ({ turns: [...turns, { turn: turn.number, messages, slots: toRanges(inContext.slice(from)) }] }));
}

/** A steering message that was recorded after its turn had ended. */
export function noteLateMessage(state: ConversationState, slot: number): ConversationState {
  return withWindow(state, ({ turns }) => {
    const last = turns[turns.length - 1];
    if (!last || state.turn) return {};
    // Its turn may have been asked for already, without it (L1). It was counted when it joined.
    if (state.window.pending?.turns === turns.length) return { turns: [...turns, { turn: last.turn, messages: 0, slots: [[slot, slot]] }] };
    return { turns: [...turns.slice(0, -1), { ...last, slots: withSlot(last.slots, slot) }] };
  });
}

/** After every event: what has become due. */
export function advanceWindow(state: ConversationState): ConversationState {
  const { window } = state;
  if (state.turn || window.ending || window.puttingAway) return state;
  // What a sub-agent did, its parent remembers.
  if (isEnding(state)) return state.parent ? withWindow(state, () => ({ ending: { until: state.now, awaited: [] } })) : beginEnding(state);
  return window.pending === null && !state.parent ? askForOverflow(state) : state;
}

/** Nothing of the session is left to wait for: it can end. */
export function endsWithNothing({ window }: ConversationState): boolean {
  return window.ending !== null && window.ending.awaited.length === 0;
}

function isEnding(state: ConversationState): boolean {
  const { queue, closing } = state;
  const [head] = queue;
  if (head?.kind === 'reset') return !isHeld(state, 'event', queuedId(head));
  return closing === 'running-out' && queue.length === 0;
}

/** `/new` and `close`: all that is left is asked for, and joins what is being consolidated already. */
function beginEnding(state: ConversationState): ConversationState {
  const { pending, turns } = state.window;
  const until = state.now + timeoutOf(state);
  const left = turns.slice(pending?.turns ?? 0);
  const asked = left.length === 0 ? state : owe(state, left, state.queue[0]?.kind === 'reset' ? 'reset' : 'close');
  const request = left.length === 0 ? undefined : asked.window.owed[asked.window.owed.length - 1]?.request;
  const awaited: AwaitedConsolidation[] = [
    ...(pending ? [{ requestId: pending.requestId, slots: pending.slots, until, outcome: pending.outcome }] : []),
    ...(request ? [{ requestId: request.requestId, slots: request.slots, until, outcome: null }] : []),
  ];
  return withWindow(asked, () => ({ ending: { until, awaited } }));
}

/** Strictly more than the window: all but the last `keep` messages, whole turns. */
function askForOverflow(state: ConversationState): ConversationState {
  const memory = state.settings?.memory;
  const { turns } = state.window;
  if (!memory || countMessages(turns) <= memory.window) return state;
  let kept = 0;
  let cutoff = turns.length;
  while (cutoff > 0 && kept < memory.keep) kept += turns[--cutoff]?.messages ?? 0;
  if (cutoff === 0) return state;
  const asked = owe(state, turns.slice(0, cutoff), 'window');
  const request = asked.window.owed[asked.window.owed.length - 1]?.request;
  if (!request) return state;
  const pending = { requestId: request.requestId, slots: request.slots, until: state.now + timeoutOf(state), outcome: null, turns: cutoff };
  return withWindow(asked, () => ({ pending }));
}

function owe(state: ConversationState, turns: readonly WindowTurn[], why: AskMemoryInput['request']['why']): ConversationState {
  const slots = toRanges(turns.flatMap((turn) => slotsOf(turn.slots)));
  const first = slots[0]?.[0] ?? 0;
  const last = slots[slots.length - 1]?.[1] ?? 0;
  const request = {
    requestId: `s${state.session}/${first}-${last}`,
    session: state.session,
    slots,
    messages: countMessages(turns),
    agent: state.identity.agent,
    model: state.settings?.model ?? state.modelOverride ?? '',
    why,
  };
  return withWindow(state, ({ owed, unpaid }) => ({
    owed: [...owed, { request, asking: false, retry: null }],
    unpaid: [...unpaid, request.requestId].slice(-REMEMBERED_REQUESTS),
  }));
}

/** A close waits for what is owed, but not for a memory workflow that cannot be told at all: the fallback is written. */
export function owesNothing({ window }: ConversationState): boolean {
  return window.owed.every(({ asking, retry }) => !asking && (retry?.attempts ?? 0) >= MOST_ASKED_AT_CLOSE);
}

/** The next request that the memory workflow is to be told. */
export function askMemoryInput(state: ConversationState): AskMemoryInput | undefined {
  const { owed } = state.window;
  // One at a time, so that they arrive in order. The store must have what is asked about.
  if (owed.some(({ asking }) => asking) || state.unpersisted.length > 0 || state.outbox.settle.length > 0) return undefined;
  const next = owed[0];
  if (!next || (next.retry && state.now < next.retry.until)) return undefined;
  return { identity: state.identity, request: next.request };
}

export function startAsking(state: ConversationState, { requestId }: Of<'memory-ask-started'>): ConversationState {
  return withWindow(state, ({ owed }) => ({
    owed: owed.map((one) => (one.request.requestId === requestId ? { ...one, asking: true } : one)),
  }));
}

export function acceptAsked(state: ConversationState, { requestId }: Of<'memory-asked'>): ConversationState {
  return withWindow(state, ({ owed }) => ({ owed: owed.filter(({ request }) => request.requestId !== requestId) }));
}

export function failAsking(state: ConversationState, { requestId, failure, at }: Of<'memory-ask-failed'>): ConversationState {
  const attempts = (state.window.owed.find(({ request }) => request.requestId === requestId)?.retry?.attempts ?? 0) + 1;
  const retry = retryAfter(failure, attempts, at);
  return withWindow(state, ({ owed }) => ({
    owed: owed.map((one) => (one.request.requestId === requestId ? { ...one, asking: false, retry } : one)),
  }));
}

/** The memory workflow has an answer. What nobody waits for any more only costs (L2). */
export function acceptConsolidation(
  state: ConversationState,
  { requestId, consolidation, usage }: Of<'consolidation-ended'>,
): ConversationState {
  const { pending, ending, unpaid } = state.window;
  // Whoever asked pays, once, however late it comes.
  const paid: ConversationState =
    usage && unpaid.includes(requestId)
      ? withWindow({ ...state, usage: addUsage(state.usage, usage) }, () => ({ unpaid: unpaid.filter((id) => id !== requestId) }))
      : state;
  const told = <One extends AwaitedConsolidation>(one: One): One =>
    one.requestId === requestId && one.outcome === null ? { ...one, outcome: consolidation } : one;
  return withWindow(paid, () => ({
    pending: pending && told(pending),
    ending: ending && { ...ending, awaited: ending.awaited.map(told) },
  }));
}

/** What is to leave the context now; undefined while somebody still waits, or nothing is to. */
export function putAwayInput(state: ConversationState): PutAwayInput | undefined {
  const { window, identity, session } = state;
  if (window.puttingAway || state.turn || state.recording) return undefined;
  if (window.putAwayRetry && state.now < window.putAwayRetry.until) return undefined;
  // What was said last belongs to it too.
  if (state.unpersisted.length > 0 || state.outbox.settle.length > 0) return undefined;
  const { ending, pending, turns } = window;
  if (ending) {
    if (state.now < ending.until && ending.awaited.some(({ outcome }) => outcome === null)) return undefined;
    return { identity, session, archive: state.context, leaving: state.context, unfinished: unfinished(ending.awaited), recapSince: null };
  }
  // A compaction decides about the same context; the end of a session does not wait for one.
  if (!pending || state.memory.doing || (pending.outcome === null && state.now < pending.until)) return undefined;
  const archive = toRanges(turns.slice(0, pending.turns).flatMap(({ slots }) => slotsOf(slots)));
  const inContext = new Set(slotsOf(state.context));
  const leaving = toRanges(slotsOf(archive).filter((slot) => inContext.has(slot)));
  return { identity, session, archive, leaving, unfinished: unfinished([pending]), recapSince: window.since };
}

function unfinished(awaited: readonly AwaitedConsolidation[]): PutAwayInput['unfinished'] {
  return awaited.flatMap(({ requestId, slots, outcome }) => (outcome === null ? [{ requestId, slots }] : []));
}

export function startPuttingAway(state: ConversationState): ConversationState {
  return withWindow(state, () => ({ puttingAway: true }));
}

/** What the session leaves behind, as the one who asked for its end is told. */
export function consolidationOf({ window }: ConversationState, finished: boolean): Consolidation {
  const outcomes = (window.ending?.awaited ?? []).map(({ outcome }) => outcome ?? (finished ? 'model' : 'raw-fallback'));
  if (outcomes.includes('raw-fallback')) return 'raw-fallback';
  return outcomes.includes('model') ? 'model' : 'nothing-to-do';
}

/** The window is trimmed: whole turns have left, a recap stands for them, and a new epoch begins (L3). */
export function acceptTrim(state: ConversationState, { result }: Of<'put-away'>): ConversationState {
  const { pending, turns } = state.window;
  if (!pending) return withWindow(state, () => ({ puttingAway: false }));
  const gone = new Set(turns.slice(0, pending.turns).flatMap(({ slots }) => slotsOf(slots)));
  const recapTokens = estimateTokens(result.recap?.text.length ?? 0);
  const fixed = state.settings?.fixedTokens ?? 0;
  const left = state.contextTokens - result.tokens - state.window.recapTokens + recapTokens;
  const trimmed: ConversationState = {
    ...state,
    epoch: state.epoch + 1,
    context: toRanges(slotsOf(state.context).filter((slot) => !gone.has(slot))),
    contextTokens: Math.max(fixed + state.memory.baseTokens + recapTokens, left),
    // What was before this cannot be brought back by undoing a compaction.
    memory: { ...state.memory, reported: null, before: null },
  };
  return withWindow(trimmed, () => ({
    turns: turns.slice(pending.turns),
    pending: null,
    puttingAway: false,
    putAwayRetry: null,
    recap: result.recap?.ref ?? null,
    recapTokens,
  }));
}

export function failPuttingAway(state: ConversationState, { failure, at }: Of<'put-away-failed'>): ConversationState {
  const attempts = (state.window.putAwayRetry?.attempts ?? 0) + 1;
  return withWindow(state, () => ({ puttingAway: false, putAwayRetry: storeRetryAfter(failure, attempts, at) }));
}

/** A new session: nothing of the old one is in the window, but what is owed stays owed (L1). */
export function freshWindow(state: ConversationState): ConversationState {
  const { owed, unpaid } = state.window;
  return { ...state, window: { ...openWindow(state.now), owed, unpaid } };
}

/** Carried over from a version without one: all that is in the context waits to be remembered. */
export function adoptWindow(state: ConversationState): ConversationState {
  if ((state as Partial<ConversationState>).window) return state;
  const messages = Math.min(2 * state.turnsEnded, slotsOf(state.context).length);
  const turns = messages === 0 ? [] : [{ turn: state.latestTurn, messages, slots: state.context }];
  return { ...state, window: { ...openWindow(state.now), turns: state.turn ? [] : turns } };
}

export function countMessages(turns: readonly WindowTurn[]): number {
  return turns.reduce((sum, { messages }) => sum + messages, 0);
}

function timeoutOf({ settings }: ConversationState): number {
  return settings?.memory?.timeoutMs ?? CONSOLIDATION_TIMEOUT_MS;
}

function withWindow(state: ConversationState, change: (window: WindowState) => Partial<WindowState>): ConversationState {
  return { ...state, window: { ...state.window, ...change(state.window) } };
}
