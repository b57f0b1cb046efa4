/**
 * When older turns become memory, and how that changes the context (seed 000, section 10; design section 4). The provider's count of the
 * last prompt decides; the estimate of what came since is only a safeguard.
 *
 * The pause between two compactions is measured in tokens, so that long turns have several compactions and short ones few. If the context
 * is still over the threshold, the next turn tries again.
 *
 * @rule context/compaction-keeps-later: Between two model calls the context only grows; a compaction replaces its beginning and keeps
 *   everything that was added while it ran. (test: test/conversation/context/compaction.test.ts)
 * @rule context/compaction-rests: A compaction that fails or finds nothing leaves the conversation as it was; after any compaction the next
 *   automatic one waits until the context has grown by a part of the threshold. (test: test/conversation/context/compaction.test.ts)
 * @rule context/late-result-only-costs: A result of an earlier session or epoch changes nothing but the cost. (test:
 *   test/conversation/context/compaction.test.ts)
 * @rule context/compaction-worth-it: An automatic compaction frees at least MIN_FREED of the threshold, or all that it may take. If that is
 *   less, it waits until the prompt is full: a summary of little is not worth its price, and would displace better ones. (test:
 *   test/conversation/context/thrash.test.ts)
 * @rule context/cited-whole-again: Messages that were cited for a small model are whole again with settings of a larger budget, where they
 *   leave half of what it may take before a compaction. (test: test/conversation/context/compaction.test.ts)
 * @rule context/undo-restores: An undo restores the context from before the compaction, with everything that came since. (test:
 *   test/conversation/context/compaction.test.ts)
 */
import { estimateTokens } from '../../records/token-estimate.js';
import { keptLessons, withoutLeft } from './learning.js';
import type { AgentSettings } from '../state/settings.js';
import type { CompactInput, Compacted, UncompactInput } from './compaction-effects.js';
import type { ModelAnswer } from '../turn/model-step-effects.js';
import { contextPressure, needsTruncation, usageOf, type CallNumbers } from './call-gate.js';
import type { EventOf } from '../event.js';
import { isChangingContext, type Completed, type Failed } from '../effect.js';
import { countSlots, listSlots, toRanges, withSlot, type SlotRange } from '../../records/slots.js';
import { inTokens, withCitedTokens, withTokenRatio, NO_COMPACTION, type CompactionState } from '../state/compaction-state.js';
import { answer, pendingRequests, request } from '../requests.js';
import type { ConversationState } from '../state.js';
import type { Turn } from '../state/turn-state.js';
import { citedMessageTokens, stayingTokens } from './citing.js';
import { answerGone, nextChosen, unspecificRequests } from './chosen-chunks.js';
import { withChunksBefore } from './chunks.js';
import { truncatesFrom } from './truncation.js';
import { turnId } from '../../records/identity.js';
import { addUsage } from '../../records/message.js';

/** Failures of a prompt that is too long. */
export const TOO_FULL: readonly string[] = ['context-full', 'too-large'];
/** Compactions in one turn after the model reported a full context. */
export const MAX_RECOVERIES = 2;
/** Share of the compaction threshold (context/compaction-worth-it). */
const MIN_FREED = 0.25;
/** The same for a deeper compaction, which delays the next one, and after the model reported a full context. */
const MIN_FREED_DEEP = 0.5;
/**
 * Share of the threshold by which the context grows before the next compaction: after one that freed tokens, and after one that freed none
 * (context/compaction-rests).
 */
const REST_SHARE = 0.25;
const REST_SHARE_IN_VAIN = 0.05;

/** The numbers that decide about the next model call (call-gate.ts). */
export function numbersOf(state: ConversationState): CallNumbers {
  const { contextTokens, compaction, usage, budget } = state;
  return {
    contextTokens,
    shownOnce: compaction.shownOnce ?? 0,
    ...withTokenRatio(state),
    reported: compaction.reported,
    truncatesFrom: truncatesFrom(state),
    compactsFrom: compactsFrom(state),
    usage,
    budget: budget ?? null,
  };
}

/** Lasting tokens from which a compaction is worth a try; null between turns (context/compaction-rests). */
function compactsFrom({ turn, compaction: { rest } }: ConversationState): number | null {
  if (!turn || !rest) return turn && 0;
  return rest.turn === undefined || rest.turn === turn.number ? rest.tokens : 0;
}

export function truncationDue(state: ConversationState): boolean {
  const { settings } = state;
  if (!settings || isChangingContext(state)) return false;
  if (nextChosen(state, 'truncate')) return true;
  const numbers = numbersOf(state);
  if (unspecificRequests(state, 'truncate').length > 0) return usageOf(numbers, settings).forceCompaction;
  return needsTruncation(numbers, settings);
}

/** Seed 004, soft threshold: the model only gets a hint. */
export function suggestsCompaction(state: ConversationState): boolean {
  const { settings } = state;
  return settings?.thresholds.suggests === true && usageOf(numbersOf(state), settings).suggestCompaction;
}

type Cited = Extract<Compacted, { readonly kind: 'cited' }>;
export type CompactionCause = CompactInput['cause'];

/** Why the context should be compacted before the next model call; undefined when it need not be. */
export function compactionCause(state: ConversationState): CompactionCause | undefined {
  const { compaction, settings } = state;
  if (!settings || isChangingContext(state)) return undefined;
  if (compaction.forced) return 'context-full';
  if (isCompactionRequested(state)) return 'asked';
  const numbers = numbersOf(state);
  return contextPressure(numbers, settings) ?? (needsSummary(state, numbers.compactsFrom, settings) ? 'hard' : undefined);
}

/** True if truncated messages wait for a summary: until a compaction the model has neither them nor a summary. */
function needsSummary(state: ConversationState, compactsFrom: number | null, { thresholds }: AgentSettings): boolean {
  const { leftOut = [], chosenOut = [] } = state.compaction;
  const chosen = new Set(listSlots(chosenOut));
  return (
    listSlots(leftOut).some((slot) => !chosen.has(slot)) &&
    compactsFrom !== null &&
    stayingTokens(state) >= compactsFrom &&
    thresholds.autoCompact
  );
}

function isCompactionRequested(state: ConversationState): boolean {
  return unspecificRequests(state, 'compact').length > 0 || nextChosen(state, 'compact') !== undefined;
}

/** Ids of the requests that it answers: the one that chose its chunks, or all that chose none. */
function requestIds(state: ConversationState, { chosen }: CompactInput): readonly string[] {
  return chosen ? [chosen.requestId] : unspecificRequests(state, 'compact');
}

/** How deep a compaction goes, in tokens (context/compaction-worth-it). A request below the threshold takes only the older turns. */
function planDepth({ contextTokens, compaction }: ConversationState, settings: AgentSettings, cause: CompactionCause) {
  const line = compactsAt(settings);
  if (cause === 'asked' && contextTokens <= line) return { line, enough: 0, free: 0, atLeast: 0 };
  const { fixedTokens: fixed } = settings;
  // Counts messages only: no compaction shortens the system prompt and the tools.
  const freeing = (share: number): number => Math.ceil(Math.max(line * MIN_FREED, contextTokens - fixed - (line - fixed) * (1 - share)));
  const [enough, free] = [freeing(cause === 'context-full' ? MIN_FREED_DEEP : MIN_FREED), freeing(MIN_FREED_DEEP)];
  const mayWait = cause !== 'asked' && cause !== 'context-full' && contextTokens <= settings.contextBudget && !compaction.leftOut?.length;
  return { line, enough, free, atLeast: mayWait ? Math.ceil(line * MIN_FREED) : 0 };
}

/** Tokens at which a compaction is due, for the first of its causes. */
export function compactsAt(settings: Pick<AgentSettings, 'thresholds' | 'compactionRatio' | 'contextBudget'>): number {
  return Math.min(settings.thresholds.hard, Math.floor(settings.compactionRatio * settings.contextBudget));
}

export function compactInput(state: ConversationState, cause: CompactionCause): CompactInput | undefined {
  const { settings, identity, session, context, compaction, turn } = state;
  if (!settings) return undefined;
  const chosen = cause === 'asked' ? nextChosen(state, 'compact') : undefined;
  const line = compactsAt(settings);
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
    cited: compaction.cited ?? [],
    contextTokens: state.contextTokens,
    ...(chosen
      ? { line, enough: 0, free: 0, atLeast: 0, chosen: { requestId: chosen.id, slots: chosen.input } }
      : planDepth(state, settings, cause)),
    currentTurn: turn ? turnId(turn.number) : null,
    task: compaction.task,
    model: settings.model,
    ...(settings.fallback?.next.length && { fallback: settings.fallback.next }),
    agentHash: settings.agentHash,
    ...withTokenRatio(state),
  };
}

export function requestCompaction(state: ConversationState, { requestId: id }: EventOf<'compaction-requested'>): ConversationState {
  if (!state.settings || state.context.length === 0) return answer(state, 'compact', [id], { kind: 'nothing-to-compact' });
  return request(state, { kind: 'compact', id });
}

export function startCompaction(state: ConversationState): ConversationState {
  return withCompaction(nextMove(state), ({ attempts }) => ({ attempts: attempts + 1 }));
}

/** Numbers the next effect that archives or restores. */
export function nextMove(state: ConversationState): ConversationState {
  return { ...state, counters: { ...state.counters, move: state.counters.move + 1 } };
}

export function acceptCompacted(state: ConversationState, { input, output: result }: Completed<'compact'>): ConversationState {
  const paid = result.kind === 'compacted' ? { ...state, usage: addUsage(state.usage, result.usage) } : state;
  if (input.session !== paid.session || paid.epoch >= result.epoch) return paid; // (context/late-result-only-costs)
  if (result.kind === 'nothing-to-compact')
    return delayNext(input, answer(paid, 'compact', requestIds(paid, input), { kind: 'nothing-to-compact' }), REST_SHARE_IN_VAIN);
  if (result.kind === 'cited') return acceptCited(paid, input, result);
  const { base, episode, archived, method, turns, tokensBefore, tokensAfter } = result;
  const { context, contextTokens, compaction } = paid;
  const leftOut = listSlots(compaction.leftOut ?? []);
  const out = new Set(leftOut);
  // Truncated messages do not return to the prompt.
  const kept = out.size === 0 ? result.kept : toRanges(listSlots(result.kept).filter((slot) => !out.has(slot)));
  const taken = new Set(listSlots(archived));
  const cited = [...listSlots(compaction.cited ?? []), ...listSlots(result.cited ?? [])].filter((slot) => !taken.has(slot));
  const answered = answer(paid, 'compact', requestIds(paid, input), {
    kind: 'compacted',
    epoch: result.epoch,
    turns: turns.length,
    method,
    tokensBefore,
    tokensAfter,
  });
  const compacted = withCompaction(
    {
      ...answered,
      epoch: result.epoch,
      context: withAdded(kept, addedSince(context, input.context)), // (context/compaction-keeps-later)
      contextTokens: fixedTokens(paid) + tokensAfter + Math.max(0, contextTokens - input.contextTokens),
    },
    () => ({
      base: base.ref,
      task: result.task,
      baseTokens: inTokens(state, estimateTokens(base.text)),
      reported: null,
      compactions: compaction.compactions + 1,
      ...((compaction.cited ?? result.cited) && { cited: toRanges(cited) }),
      ...(result.cited && withCitedTokens(compaction, tokensBefore - tokensAfter)),
      ...(compaction.leftOut && { leftOut: toRanges(leftOut.filter((slot) => !taken.has(slot))) }),
      ...withoutLeft(compaction, taken),
      before: {
        epoch: result.epoch,
        base: compaction.base,
        baseTokens: compaction.baseTokens,
        context: input.context,
        ...(compaction.cited && { cited: compaction.cited }),
        ...(input.leftOut.length > 0 && { leftOut: input.leftOut }),
        contextTokens: input.contextTokens,
        ...(state.appEvents && state.appEvents.chunks.length > 0 && { chunks: state.appEvents.chunks }),
        episode: episode.id,
        archived,
      },
    }),
  );
  return delayNext(input, compacted, REST_SHARE);
}

/** The epoch goes on: there is nothing to undo. */
function acceptCited(state: ConversationState, input: CompactInput, { cited, tokensBefore, tokensAfter }: Cited): ConversationState {
  const { compaction, contextTokens } = state;
  const messages = countSlots(cited);
  const answered = answer(state, 'compact', requestIds(state, input), { kind: 'cited', messages, tokensBefore, tokensAfter });
  const shorter = { ...answered, contextTokens: Math.max(0, contextTokens - (tokensBefore - tokensAfter)) };
  const noted = withCompaction(shorter, () => ({
    cited: [...(compaction.cited ?? []), ...cited],
    ...withCitedTokens(compaction, tokensBefore - tokensAfter),
    reported: null,
  }));
  return delayNext(input, noted, REST_SHARE);
}

/** Cites the messages of a turn that was too long: later prompts show only their beginning and end. */
export function citeTurn(state: ConversationState, { firstSlot, messageIds, messageTokens }: Turn): ConversationState {
  const inContext = listSlots(state.context);
  const slots = inContext.slice(Math.max(0, inContext.indexOf(firstSlot)));
  const less = Math.max(0, messageTokens - messageIds.length * citedMessageTokens());
  return withCompaction({ ...state, contextTokens: Math.max(0, state.contextTokens - less) }, (compaction) => ({
    cited: [...(compaction.cited ?? []), ...toRanges(slots)],
    ...withCitedTokens(compaction, less),
  }));
}

/** Of the line at which a compaction is due. */
const WHOLE_AGAIN_SHARE = 0.5;

/** `before`: the settings until now. (context/cited-whole-again) */
export function showWholeAgain(state: ConversationState, before: AgentSettings | null): ConversationState {
  const { settings, contextTokens } = state;
  const { cited = [], citedTokens, ...compaction } = state.compaction;
  if (!settings || !before || cited.length === 0 || citedTokens === undefined || settings.contextBudget <= before.contextBudget)
    return state;
  const whole = contextTokens + citedTokens;
  if (whole > compactsAt(settings) * WHOLE_AGAIN_SHARE) return state;
  return { ...state, contextTokens: whole, compaction: { ...compaction, reported: null } };
}

export function failCompaction(state: ConversationState, { input, failure }: Failed<'compact'>): ConversationState {
  if (input.session !== state.session || state.epoch >= input.epoch) return state; // (context/late-result-only-costs)
  const failed = answer(state, 'compact', requestIds(state, input), { kind: 'failed', message: `${failure.type}: ${failure.message}` });
  return delayNext(input, failed, REST_SHARE_IN_VAIN);
}

/** After every event, answers requests that have become pointless. */
export function answerInVain(state: ConversationState): ConversationState {
  if (state.requests.pending.length === 0 || isChangingContext(state)) return state;
  const { compaction, settings } = state;
  const answered = answerGone(state);
  const undone = compaction.before ? answered : answer(answered, 'undo', undoRequests(answered), { kind: 'nothing-to-undo' });
  const isFull = settings !== null && usageOf(numbersOf(state), settings).forceCompaction;
  return isFull ? undone : answer(undone, 'truncate', unspecificRequests(undone, 'truncate'), { kind: 'nothing-to-truncate' });
}

/** Empties the context for a new session; pending requests of the old one fail. */
export function forgetContext(state: ConversationState): ConversationState {
  const ended = pendingRequests(state, 'compact', 'undo', 'truncate').reduce(
    (now, { kind, id }) => answer(now, kind, [id], { kind: 'failed', message: 'the session ended first' }),
    state,
  );
  const { compactions, attempts, prefix, truncations } = ended.compaction;
  const compaction: CompactionState = {
    ...NO_COMPACTION,
    ...{ compactions, attempts, prefix },
    ...keptLessons(ended.compaction),
    ...(truncations !== undefined && { truncations }),
  };
  return { ...ended, context: [], contextTokens: 0, compaction };
}

/** Notes the provider's count of the prompt, and whether its prefix has changed. */
export function notePrompt(
  state: ConversationState,
  promptTokens: number,
  { prefix, head }: Pick<ModelAnswer, 'prefix' | 'head'>,
): ConversationState {
  const { prefix: known } = state.compaction;
  const changed = prefix !== undefined && prefix !== known.hash;
  const model = state.settings?.model;
  return withCompaction(state, () => ({
    ...(promptTokens > 0 ? { reported: promptTokens } : {}),
    ...(changed && {
      prefix: {
        hash: prefix,
        epoch: state.epoch,
        changes: known.changes + (known.hash === null ? 0 : 1),
        cause: known.hash === null ? null : causeOfChange(state),
        ...(model !== undefined && { model }),
        ...(head && { head }),
      },
    }),
  }));
}

function causeOfChange({ settings, epoch, compaction: { prefix, pinned } }: ConversationState): CompactionState['prefix']['cause'] {
  if (prefix.model !== undefined && prefix.model !== settings?.model) return 'model';
  if (prefix.epoch !== epoch) return pinned?.byMemory ? 'memory' : 'new epoch';
  return 'agent or tools';
}

// Taking the last compaction back.

export function uncompactInput(state: ConversationState): UncompactInput | undefined {
  const { before } = state.compaction;
  if (!before || isChangingContext(state) || pendingRequests(state, 'undo').length === 0) return undefined;
  const { epoch, episode, archived } = before;
  return { identity: state.identity, move: state.counters.move + 1, epoch, episode, archived };
}

export function requestUndo(state: ConversationState, { requestId: id }: EventOf<'undo-requested'>): ConversationState {
  return state.compaction.before ? request(state, { kind: 'undo', id }) : answer(state, 'undo', [id], { kind: 'nothing-to-undo' });
}

export function acceptUndone(state: ConversationState, { input }: Completed<'uncompact'>): ConversationState {
  const { before } = state.compaction;
  if (before?.epoch !== input.epoch) return state; // (context/late-result-only-costs)
  const there = new Set(listSlots([...before.context, ...(before.leftOut ?? [])]));
  const isSince = (slot: number): boolean => !there.has(slot);
  const now = listSlots(state.context);
  // Entries before the oldest that stayed are notices of later truncations.
  const notices = now.slice(
    0,
    Math.max(
      0,
      now.findIndex((slot) => !isSince(slot)),
    ),
  );
  const since = now.slice(notices.length).filter(isSince);
  const leftOut = [...listSlots(before.leftOut ?? []), ...listSlots(state.compaction.leftOut ?? []).filter(isSince)];
  const { cited } = state.compaction;
  const undone: ConversationState = {
    ...answer(state, 'undo', undoRequests(state), { kind: 'undone', epoch: state.epoch + 1 }),
    // Epochs only count up (conversation/counters-never-back): a new one gets the earlier context (context/undo-restores).
    epoch: state.epoch + 1,
    context: since.reduce<readonly SlotRange[]>(withSlot, toRanges([...notices, ...listSlots(before.context)])),
    contextTokens: before.contextTokens,
    compaction: {
      ...state.compaction,
      base: before.base,
      baseTokens: before.baseTokens,
      ...(cited && { cited: before.cited ?? [] }),
      ...(state.compaction.leftOut && { leftOut: toRanges(leftOut) }),
      reported: null,
      rest: null,
      before: null,
    },
  };
  return withChunksBefore(undone, before.chunks ?? []);
}

export function failUndo(state: ConversationState, { failure }: Failed<'uncompact'>): ConversationState {
  return answer(state, 'undo', undoRequests(state), { kind: 'failed', message: `${failure.type}: ${failure.message}` });
}

function undoRequests(state: ConversationState): readonly string[] {
  return pendingRequests(state, 'undo').map(({ id }) => id);
}

/** Chosen chunks do not tell whether the next automatic compaction is worth a try. */
function delayNext({ chosen }: CompactInput, state: ConversationState, share: number): ConversationState {
  return chosen ? state : delay(state, share);
}

/**
 * Delays the next compaction (context/compaction-rests); for less near the prompt's budget, beyond which messages leave without a summary.
 */
function delay(state: ConversationState, share: number): ConversationState {
  const { settings, turn } = state;
  if (!settings) return withCompaction(state, () => ({ forced: null }));
  const [line, tokens] = [compactsAt(settings), stayingTokens(state)];
  const until = Math.min(tokens + line * share, Math.max(settings.contextBudget, tokens + line * REST_SHARE_IN_VAIN));
  const rest = { tokens: Math.ceil(until), ...(turn && tokens > line && { turn: turn.number }) };
  return withCompaction(state, () => ({ forced: null, rest }));
}

function addedSince(now: readonly SlotRange[], then: readonly SlotRange[]): number[] {
  return listSlots(now).slice(countSlots(then));
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
