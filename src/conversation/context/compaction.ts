/**
 * When older turns become memory, and what that does to the context (seed 000, section 10; design section 4). The provider's
 * own count of the last prompt drives; the estimate of what came since only guards.
 *
 * K1  Between two borders of a model call the context only grows; a compaction replaces its beginning, and nothing that was
 *     added while it ran is lost.
 * K2  A compaction that fails, or finds nothing, leaves the conversation as it was and is not tried again in the same turn.
 * K3  A late result of a session or an epoch that has passed changes nothing but the cost.
 * K4  Undone, the context is what it was before, with all that came since.
 */
import type { AgentSettings } from '../activity-io/settings.js';
import type { CompactInput, UncompactInput } from '../activity-io/compaction-effects.js';
import { contextPressure, needsTruncation, usageOf, type CallNumbers } from '../activity-io/call-gate.js';
import type { EventOf } from '../event.js';
import { isRunning, type Completed, type Failed } from '../lifecycle.js';
import { countSlots, slotsOf, toRanges, withSlot, type SlotRange } from '../../records/slots.js';
import { NO_COMPACTION, type CompactionState } from '../state/compaction-state.js';
import type { ConversationState } from '../state.js';
import { truncatesFrom } from './truncation.js';
import { turnId } from '../../records/identity.js';
import { addUsage } from '../../records/usage.js';

/** How often in one turn a model that says its context is full may be helped. */
export const MAX_RECOVERIES = 2;
const REMEMBERED_OUTCOMES = 16;

/** What decides about the next model call, as numbers (call-gate.ts). */
export function numbersOf(state: ConversationState): CallNumbers {
  const { contextTokens, compaction, turn, usage, budget } = state;
  return {
    contextTokens,
    shownOnce: compaction.shownOnce ?? 0,
    reported: compaction.reported,
    truncatesFrom: truncatesFrom(state),
    mayCompact: turn !== null && compaction.restingIn !== turn.number,
    usage,
    budget: budget ?? null,
  };
}

/** The context is being changed: what else would change it waits. */
export function isChangingContext(state: ConversationState): boolean {
  return isRunning(state, 'compact', 'truncate', 'uncompact');
}

export function truncationDue(state: ConversationState): boolean {
  const { compaction, settings } = state;
  if (!settings || isChangingContext(state)) return false;
  const numbers = numbersOf(state);
  if (compaction.truncationAsked) return usageOf(numbers, settings).forceCompaction;
  return needsTruncation(numbers, settings);
}

/** Seed 004: only a hint. */
export function suggestsCompaction(state: ConversationState): boolean {
  const { settings } = state;
  return settings?.thresholds.suggests === true && usageOf(numbersOf(state), settings).suggestCompaction;
}

export type CompactionCause = CompactInput['cause'];

/** Why the context should be compacted before the next model call; undefined when it need not be. */
export function compactionCause(state: ConversationState): CompactionCause | undefined {
  const { compaction, settings } = state;
  if (!settings || isChangingContext(state)) return undefined;
  if (compaction.forced) return 'context-full';
  if (compaction.asked.length > 0) return 'asked';
  return contextPressure(numbersOf(state), settings);
}

/** Tokens from which a compaction is due, whichever of its causes comes first. */
export function compactsAt(settings: AgentSettings): number {
  return Math.min(settings.thresholds.hard, Math.floor(settings.compactionRatio * settings.contextBudget));
}

export function compactInput(state: ConversationState, cause: CompactionCause): CompactInput | undefined {
  const { settings, identity, session, context, compaction, turn } = state;
  if (!settings) return undefined;
  return {
    identity,
    session,
    epoch: state.epoch + 1,
    number: compaction.compactions + 1,
    attempt: compaction.attempts + 1,
    move: state.counters.move + 1,
    cause,
    leftOut: compaction.leftOut ?? [],
    context,
    contextTokens: state.contextTokens,
    currentTurn: turn ? turnId(turn.number) : null,
    task: compaction.task,
    model: settings.model,
    agentHash: settings.agentHash,
  };
}

export function uncompactInput(state: ConversationState): UncompactInput | undefined {
  const { before, undoAsked } = state.compaction;
  if (!before || isChangingContext(state) || undoAsked.length === 0) return undefined;
  const { epoch, episode, archived } = before;
  return { identity: state.identity, move: state.counters.move + 1, epoch, episode, archived };
}

export function requestCompaction(state: ConversationState, { requestId }: EventOf<'compaction-requested'>): ConversationState {
  if (!state.settings || state.context.length === 0) return answer(state, [requestId], { kind: 'nothing-to-compact' });
  return withCompaction(state, ({ asked }) => (asked.includes(requestId) ? {} : { asked: [...asked, requestId] }));
}

export function startCompaction(state: ConversationState): ConversationState {
  return withCompaction(nextMove(state), ({ attempts }) => ({ attempts: attempts + 1 }));
}

/** Of what archives or restores in this life. */
export function nextMove(state: ConversationState): ConversationState {
  return { ...state, counters: { ...state.counters, move: state.counters.move + 1 } };
}

export function acceptCompacted(state: ConversationState, { input, output: result }: Completed<'compact'>): ConversationState {
  const paid = result.kind === 'compacted' ? { ...state, usage: addUsage(state.usage, result.usage) } : state;
  if (input.session !== paid.session || paid.epoch >= result.epoch) return paid; // K3
  if (result.kind === 'nothing-to-compact') return rest(answer(paid, paid.compaction.asked, { kind: 'nothing-to-compact' }));
  const { base, episode, archived, method, turns, tokensBefore, tokensAfter } = result;
  const { context, contextTokens, compaction } = paid;
  const leftOut = slotsOf(compaction.leftOut ?? []);
  const out = new Set(leftOut);
  // What was left out of the prompt does not come back into it.
  const kept = out.size === 0 ? result.kept : toRanges(slotsOf(result.kept).filter((slot) => !out.has(slot)));
  const taken = new Set(slotsOf(archived));
  const answered = answer(paid, compaction.asked, {
    kind: 'compacted',
    epoch: result.epoch,
    turns: turns.length,
    method,
    tokensBefore,
    tokensAfter,
  });
  return withCompaction(
    {
      ...answered,
      epoch: result.epoch,
      context: withAdded(kept, addedSince(context, input.context)), // K1
      contextTokens: fixedTokens(paid) + tokensAfter + Math.max(0, contextTokens - input.contextTokens),
    },
    () => ({
      base: base.ref,
      task: result.task,
      baseTokens: Math.ceil(base.text.length / 4),
      reported: null,
      compactions: compaction.compactions + 1,
      ...(compaction.leftOut && { leftOut: toRanges(leftOut.filter((slot) => !taken.has(slot))) }),
      forced: null,
      restingIn: paid.turn?.number ?? null,
      before: {
        epoch: result.epoch,
        base: compaction.base,
        baseTokens: compaction.baseTokens,
        context: input.context,
        contextTokens: input.contextTokens,
        kept: countSlots(kept),
        episode: episode.id,
        archived,
      },
    }),
  );
}

export function failCompaction(state: ConversationState, { input, failure }: Failed<'compact'>): ConversationState {
  if (input.session !== state.session || state.epoch >= input.epoch) return state; // K3
  return rest(answer(state, state.compaction.asked, { kind: 'failed', message: `${failure.type}: ${failure.message}` })); // K2
}

export function requestUndo(state: ConversationState, { requestId }: EventOf<'undo-requested'>): ConversationState {
  if (!state.compaction.before) return answer(state, [requestId], { kind: 'nothing-to-undo' });
  return withCompaction(state, ({ undoAsked }) => (undoAsked.includes(requestId) ? {} : { undoAsked: [...undoAsked, requestId] }));
}

export function acceptUndone(state: ConversationState, { input }: Completed<'uncompact'>): ConversationState {
  const { before, undoAsked } = state.compaction;
  if (before?.epoch !== input.epoch) return state; // K3
  const since = slotsOf(state.context).slice(before.kept);
  return withCompaction(
    {
      ...answer(state, undoAsked, { kind: 'undone', epoch: state.epoch + 1 }),
      // The counter goes on (C1): it is a new epoch, with the context of the one before. K4
      epoch: state.epoch + 1,
      context: withAdded(before.context, since),
      contextTokens: before.contextTokens,
    },
    () => ({ base: before.base, baseTokens: before.baseTokens, reported: null, undoAsked: [], before: null }),
  );
}

export function failUndo(state: ConversationState, { failure }: Failed<'uncompact'>): ConversationState {
  const failed = answer(state, state.compaction.undoAsked, { kind: 'failed', message: `${failure.type}: ${failure.message}` });
  return withCompaction(failed, () => ({ undoAsked: [] }));
}

/** After every event: what somebody has asked for, and what has come since has made idle, is answered all the same. */
export function answerInVain(state: ConversationState): ConversationState {
  const { compaction, settings } = state;
  const { undoAsked, truncationAsked = [] } = compaction;
  if (undoAsked.length + truncationAsked.length === 0 || isChangingContext(state)) return state;
  const undone = compaction.before ? state : answer(state, undoAsked, { kind: 'nothing-to-undo' });
  const isFull = settings !== null && usageOf(numbersOf(state), settings).forceCompaction;
  return isFull ? undone : answer(undone, truncationAsked, { kind: 'nothing-to-truncate' });
}

/** A new session begins with an empty context; nothing of the old one is undone into it. */
export function forgetContext(state: ConversationState): ConversationState {
  const { asked, undoAsked, truncationAsked = [] } = state.compaction;
  const ended = answer(state, [...asked, ...undoAsked, ...truncationAsked], { kind: 'failed', message: 'the session ended first' });
  return withCompaction({ ...ended, context: [], contextTokens: 0 }, ({ compactions, attempts, outcomes, prefix }) => ({
    ...NO_COMPACTION,
    compactions,
    attempts,
    outcomes,
    prefix,
  }));
}

/** What the provider says of the prompt it was given, and whether its beginning is still the same. */
export function notePrompt(state: ConversationState, promptTokens: number, prefix: string | undefined): ConversationState {
  const { prefix: known } = state.compaction;
  const changed = prefix !== undefined && prefix !== known.hash;
  const memory = state.settings?.memory.version;
  return withCompaction(state, () => ({
    ...(promptTokens > 0 ? { reported: promptTokens } : {}),
    ...(changed && {
      prefix: {
        hash: prefix,
        epoch: state.epoch,
        changes: known.changes + (known.hash === null ? 0 : 1),
        cause:
          known.hash === null ? null : known.epoch !== state.epoch ? 'new epoch' : known.memory !== memory ? 'memory' : 'agent or tools',
        ...(memory === undefined ? {} : { memory }),
      },
    }),
  }));
}

function rest(state: ConversationState): ConversationState {
  return withCompaction(state, () => ({ forced: null, restingIn: state.turn?.number ?? null }));
}

/** All who wait for it get the same answer; they are no longer waited for. */
function answer(
  state: ConversationState,
  requestIds: readonly string[],
  outcome: CompactionState['outcomes'][number]['outcome'],
): ConversationState {
  const { truncationAsked = [], ...others } = state.compaction;
  const isLeft = (id: string): boolean => !requestIds.includes(id);
  const toTruncate = truncationAsked.filter(isLeft);
  return {
    ...state,
    compaction: {
      ...others,
      asked: others.asked.filter(isLeft),
      undoAsked: others.undoAsked.filter(isLeft),
      ...(toTruncate.length > 0 && { truncationAsked: toTruncate }),
      outcomes: [...others.outcomes, ...requestIds.map((requestId) => ({ requestId, outcome }))].slice(-REMEMBERED_OUTCOMES),
    },
  };
}

function addedSince(now: readonly SlotRange[], then: readonly SlotRange[]): number[] {
  return slotsOf(now).slice(countSlots(then));
}

function withAdded(ranges: readonly SlotRange[], slots: readonly number[]): readonly SlotRange[] {
  return slots.reduce(withSlot, ranges);
}

function fixedTokens(state: ConversationState): number {
  return state.settings?.fixedTokens ?? 0;
}

function withCompaction(state: ConversationState, change: (compaction: CompactionState) => Partial<CompactionState>): ConversationState {
  return { ...state, compaction: { ...state.compaction, ...change(state.compaction) } };
}
