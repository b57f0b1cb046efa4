/**
 * What is asked of the context from outside, and waits for its answer. Chunks that a program names by id leave the prompt, or become
 * memory, whatever the thresholds say (seed 004: executeTruncation, triggerCompaction).
 *
 * Only the working flow is chosen from, calls go with their results, and what the running turn needs stays, as in every truncation and
 * compaction.
 *
 * @rule context/requests-in-order: The conversation does one request at a time, in order; a request whose chunks have all left the context
 *   is answered at once. (test: test/conversation/context/requests.test.ts)
 */
import type { CompactionOutcome } from '../protocol/contract.js';
import { LIMITS } from '../protocol/limits.js';
import type { EventOf } from '../event.js';
import { listSlots, toRanges } from '../../records/slots.js';
import type { ChosenChunks } from '../state/compaction-state.js';
import type { ConversationState } from '../state.js';
import { checkThresholds, DEFAULT_THRESHOLDS, type TokenUsageTotals } from '../../records/token-usage.js';
import { stayingTokens } from './citing.js';

const REMEMBERED_OUTCOMES = 16;

/** All who wait for it get the same answer; they are no longer waited for. */
export function answer(state: ConversationState, requestIds: readonly string[], outcome: CompactionOutcome): ConversationState {
  const { truncationAsked = [], chosen = [], ...others } = state.compaction;
  const isLeft = (id: string): boolean => !requestIds.includes(id);
  const toTruncate = truncationAsked.filter(isLeft);
  const waiting = chosen.filter(({ requestId }) => isLeft(requestId));
  return {
    ...state,
    compaction: {
      ...others,
      asked: others.asked.filter(isLeft),
      undoAsked: others.undoAsked.filter(isLeft),
      ...(toTruncate.length > 0 && { truncationAsked: toTruncate }),
      ...(waiting.length > 0 && { chosen: waiting }),
      outcomes: [...others.outcomes, ...requestIds.map((requestId) => ({ requestId, outcome }))].slice(-REMEMBERED_OUTCOMES),
    },
  };
}

export function chooseChunks(state: ConversationState, { requestId, what, slots }: EventOf<'chunks-chosen'>): ConversationState {
  const { chosen = [] } = state.compaction;
  if (chosen.some((one) => one.requestId === requestId)) return state;
  const asked = { ...state, compaction: { ...state.compaction, chosen: [...chosen, { requestId, what, slots }] } };
  return state.settings ? asked : answer(asked, [requestId], nothingTo(what));
}

/** Why these cannot be chosen now; undefined when they can. */
export function choiceRefusal({ context, appEvents, compaction }: ConversationState, slots: readonly number[]): string | undefined {
  const there = listSlots(context);
  const missing = slots.find((slot) => !there.includes(slot));
  if (missing !== undefined) {
    const which = there.length === 0 ? 'which is empty' : `which has chunk_${there[0]} to chunk_${there[there.length - 1]}`;
    return `chunk_${missing} is not in the context, ${which}; the query checkTokenUsage names what may be chosen`;
  }
  const own = appEvents?.chunks.find(({ slot, type }) => type !== 'WORKING_FLOW' && slots.includes(slot));
  if (own) return `${own.id} is of type ${own.type}: only chunks of type WORKING_FLOW are truncated or compacted; a reducer removes it`;
  if ((compaction.chosen?.length ?? 0) >= LIMITS.choices) return `${LIMITS.choices} such requests wait already: ask when they are answered`;
  return undefined;
}

/** The request that is next, where it is one of this kind (context/requests-in-order). */
export function nextChosen({ compaction }: ConversationState, what: ChosenChunks['what']): ChosenChunks | undefined {
  const [first] = compaction.chosen ?? [];
  return first?.what === what ? first : undefined;
}

/** (context/requests-in-order) */
export function answerGone(state: ConversationState): ConversationState {
  const { chosen = [], leftOut = [] } = state.compaction;
  if (chosen.length === 0) return state;
  const there = new Set(listSlots([...state.context, ...leftOut]));
  return chosen
    .filter(({ slots }) => !listSlots(slots).some((slot) => there.has(slot)))
    .reduce((now, { requestId, what }) => answer(now, [requestId], nothingTo(what)), state);
}

export function compactionOutcome({ compaction }: ConversationState, id: string): CompactionOutcome | undefined {
  return compaction.outcomes.find(({ requestId }) => requestId === id)?.outcome;
}

export function isChoiceKnown({ compaction }: ConversationState, id: string): boolean {
  return compaction.chosen?.some(({ requestId }) => requestId === id) ?? false;
}

/** The query `checkTokenUsage`, by the same rule as the conversation itself goes. */
export function tokenUsageOf(state: ConversationState): TokenUsageTotals {
  const { context, contextTokens, compaction, settings } = state;
  const pinned = state.appEvents?.chunks.filter(({ type }) => type !== 'WORKING_FLOW') ?? [];
  const own = new Set(pinned.map(({ slot }) => slot));
  const pinnedTokens = pinned.reduce((sum, { tokens }) => sum + tokens, 0);
  const lines = settings?.thresholds;
  const thresholds = lines
    ? { softThreshold: lines.soft, hardThreshold: lines.hard, truncationThreshold: lines.truncation }
    : DEFAULT_THRESHOLDS;
  const totalTokens = stayingTokens(state);
  const fixed = (settings?.fixedTokens ?? 0) + compaction.baseTokens;
  return {
    totalTokens,
    compressibleTokens: context.length === 0 ? 0 : Math.max(0, Math.min(totalTokens, contextTokens - fixed - pinnedTokens)),
    ...checkThresholds(totalTokens, thresholds),
    thresholds,
    chunksToCompact: own.size === 0 ? context : toRanges(listSlots(context).filter((slot) => !own.has(slot))),
  };
}

function nothingTo(what: ChosenChunks['what']): CompactionOutcome {
  return { kind: what === 'truncate' ? 'nothing-to-truncate' : 'nothing-to-compact' };
}
