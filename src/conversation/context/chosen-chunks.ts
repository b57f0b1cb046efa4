/**
 * Chunks that a program names by id leave the prompt, or become memory, whatever the thresholds say (seed 004: executeTruncation,
 * triggerCompaction).
 *
 * As in every truncation and compaction, only the working flow can leave, calls leave with their results, and what the running turn needs
 * stays.
 *
 * @rule context/requests-in-order: The conversation does one request at a time, in order; a request whose chunks have all left the context
 *   is answered at once. (test: test/conversation/context/chosen-chunks.test.ts)
 */
import type { CompactionOutcome } from '../protocol/contract.js';
import { LIMITS } from '../protocol/limits.js';
import type { EventOf } from '../event.js';
import { listSlots, toRanges, type SlotRange } from '../../records/slots.js';
import { answer, pendingRequests, request, type PendingRequest } from '../requests.js';
import type { ConversationState } from '../state.js';
import { checkThresholds, DEFAULT_THRESHOLDS, type TokenUsageTotals } from '../../records/token-usage.js';
import { stayingTokens } from './citing.js';

type ChosenChunks = PendingRequest<'compact' | 'truncate'> & { readonly input: readonly SlotRange[] };

export function chooseChunks(state: ConversationState, { requestId: id, what, slots }: EventOf<'chunks-chosen'>): ConversationState {
  return state.settings ? request(state, { kind: what, id, input: slots }) : answer(state, what, [id], emptyOutcome(what));
}

/** Why these chunks cannot be chosen now; undefined if they can. */
export function choiceRefusal(state: ConversationState, slots: readonly number[]): string | undefined {
  const { context, appEvents } = state;
  const inContext = listSlots(context);
  const missing = slots.find((slot) => !inContext.includes(slot));
  if (missing !== undefined) {
    const which = inContext.length === 0 ? 'which is empty' : `which has chunk_${inContext[0]} to chunk_${inContext[inContext.length - 1]}`;
    return `chunk_${missing} is not in the context, ${which}; the query checkTokenUsage names what may be chosen`;
  }
  const pinned = appEvents?.chunks.find(({ slot, type }) => type !== 'WORKING_FLOW' && slots.includes(slot));
  if (pinned)
    return `${pinned.id} is of type ${pinned.type}: only chunks of type WORKING_FLOW are truncated or compacted; a reducer removes it`;
  if (choices(state).length >= LIMITS.choices) return `${LIMITS.choices} such requests wait already: ask when they are answered`;
  return undefined;
}

/** The next request, if it is of this kind (context/requests-in-order). */
export function nextChosen(state: ConversationState, what: ChosenChunks['kind']): ChosenChunks | undefined {
  const [first] = choices(state);
  return first?.kind === what ? first : undefined;
}

function choices(state: ConversationState): ChosenChunks[] {
  return pendingRequests(state, 'compact', 'truncate').filter((one): one is ChosenChunks => one.input !== undefined);
}

/** (context/requests-in-order) */
export function answerGone(state: ConversationState): ConversationState {
  const there = new Set(listSlots([...state.context, ...(state.compaction.leftOut ?? [])]));
  return choices(state)
    .filter(({ input }) => !listSlots(input).some((slot) => there.has(slot)))
    .reduce((now, { kind, id }) => answer(now, kind, [id], emptyOutcome(kind)), state);
}

/** Ids of requests that name no chunks: one truncation or compaction answers them all. */
export function unspecificRequests(state: ConversationState, kind: ChosenChunks['kind']): readonly string[] {
  return pendingRequests(state, kind).flatMap(({ id, input }) => (input === undefined ? [id] : []));
}

/** Answers the query `checkTokenUsage`, by the rules that the conversation follows. */
export function tokenUsageOf(state: ConversationState): TokenUsageTotals {
  const { context, contextTokens, compaction, settings } = state;
  const pinned = state.appEvents?.chunks.filter(({ type }) => type !== 'WORKING_FLOW') ?? [];
  const pinnedSlots = new Set(pinned.map(({ slot }) => slot));
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
    chunksToCompact: pinnedSlots.size === 0 ? context : toRanges(listSlots(context).filter((slot) => !pinnedSlots.has(slot))),
  };
}

function emptyOutcome(what: ChosenChunks['kind']): CompactionOutcome {
  return { kind: what === 'truncate' ? 'nothing-to-truncate' : 'nothing-to-compact' };
}
