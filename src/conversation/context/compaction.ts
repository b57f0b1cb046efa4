/**
 * When older turns become memory, and what that does to the context (seed 000, section 10; design section 4). The provider's
 * count of the last prompt drives; the estimate of what came since only guards.
 *
 * The growth between two compactions counts in tokens, so that long turns have several compactions and short ones few. If the context is
 * still over the threshold, the next turn tries again.
 *
 * @rule context/compaction-keeps-later: Between two model calls the context only grows; a compaction replaces its beginning and keeps
 *   everything that was added while it ran. (test: test/conversation/context/compaction.test.ts)
 * @rule context/compaction-rests: A compaction that fails or finds nothing leaves the conversation as it was; after any compaction the next
 *   automatic one waits until the context has grown by a part of the threshold. (test: test/conversation/context/compaction.test.ts)
 * @rule context/late-result-only-costs: A result of an earlier session or epoch changes nothing but the cost. (test:
 *   test/conversation/context/compaction.test.ts)
 * @rule context/compaction-worth-it: An automatic compaction frees at least FREES of the threshold, or all that it may take. If that is
 *   less, it waits until the prompt is full: a summary of little is not worth its price, and would push better ones out. (test:
 *   test/conversation/context/thrash.test.ts)
 * @rule context/overflow-sets-size: A model that refuses a prompt as too long has shown its size; the size holds for the conversation from
 *   then on. (test: test/conversation/context/thrash.test.ts)
 */
import { scaledTo, type AgentSettings } from '../state/settings.js';
import type { CompactInput, Compacted } from './compaction-effects.js';
import { contextPressure, needsTruncation, usageOf, type CallNumbers } from './call-gate.js';
import type { EventOf } from '../event.js';
import { isChangingContext, type Completed, type Failed } from '../effect.js';
import { countSlots, listSlots, toRanges, withSlot, type SlotRange } from '../../records/slots.js';
import { NO_COMPACTION, type CompactionState } from '../state/compaction-state.js';
import { answer, pendingRequests, request } from '../requests.js';
import type { ConversationState } from '../state.js';
import type { Turn } from '../state/turn-state.js';
import { citedMessageTokens, stayingTokens } from './citing.js';
import { answerGone, nextChosen, unspecificRequests } from './chosen-chunks.js';
import { undoRequests } from './undo.js';
import { truncatesFrom } from './truncation.js';
import { turnId } from '../../records/identity.js';
import { addUsage } from '../../records/message.js';

/** A model's ways of saying that it was given too much. */
export const TOO_FULL: readonly string[] = ['context-full', 'too-large'];
/** How often in one turn a model that says its context is full may be helped. */
export const MAX_RECOVERIES = 2;
/** Of the line at which a compaction is due (context/compaction-worth-it). */
const FREES = 0.25;
/** The same, where it goes deeper, so that it need not soon again; and where the model has reported that it is full. */
const FREES_DEEP = 0.5;
/**
 * By how much of the line the context grows before another is tried, after one that was done and after one that did nothing
 * (context/compaction-rests).
 */
const RESTS = 0.25;
const RESTS_IN_VAIN = 0.05;
/** The share of a refused request that the model counts as able to read from then on (context/overflow-sets-size). */
const LEARNED_SHARE = 0.75;
/** Tokens for messages beside the system prompt and the tools, however small the model has shown itself to be. */
const LEAST_ROOM = 1_000;

/** What decides about the next model call, as numbers (call-gate.ts). */
export function numbersOf(state: ConversationState): CallNumbers {
  const { contextTokens, compaction, usage, budget } = state;
  return {
    contextTokens,
    shownOnce: compaction.shownOnce ?? 0,
    reported: compaction.reported,
    truncatesFrom: truncatesFrom(state),
    compactsFrom: compactsFrom(state),
    usage,
    budget: budget ?? null,
  };
}

/** Tokens that the context keeps from which a compaction is worth a try; null between turns (context/compaction-rests). */
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

/** Seed 004: only a hint. */
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
  return contextPressure(numbers, settings) ?? (isLosing(state, numbers.compactsFrom, settings) ? 'hard' : undefined);
}

/** What was left out of the prompt becomes memory at once: until then the model has neither it nor a summary. */
function isLosing(state: ConversationState, compactsFrom: number | null, { thresholds }: AgentSettings): boolean {
  const { leftOut = [] } = state.compaction;
  return leftOut.length > 0 && compactsFrom !== null && stayingTokens(state) >= compactsFrom && thresholds.autoCompact;
}

function isCompactionRequested(state: ConversationState): boolean {
  return unspecificRequests(state, 'compact').length > 0 || nextChosen(state, 'compact') !== undefined;
}

/** Who waits for it: the one request that has named what it takes, or all requests for one. */
function requestIds(state: ConversationState, { chosen }: CompactInput): readonly string[] {
  return chosen ? [chosen.requestId] : unspecificRequests(state, 'compact');
}

/** How deep a compaction goes, in tokens (context/compaction-worth-it). A person's request below the line takes the older turns alone. */
function depthOf({ contextTokens, compaction }: ConversationState, settings: AgentSettings, cause: CompactionCause) {
  const line = compactsAt(settings);
  if (cause === 'asked' && contextTokens <= line) return { line, enough: 0, free: 0, atLeast: 0 };
  const { fixedTokens: fixed } = settings;
  // Of what messages may have: system prompt and tools leave with no compaction.
  const freeing = (share: number): number => Math.ceil(Math.max(line * FREES, contextTokens - fixed - (line - fixed) * (1 - share)));
  const [enough, free] = [freeing(cause === 'context-full' ? FREES_DEEP : FREES), freeing(FREES_DEEP)];
  const mayWait = cause !== 'asked' && cause !== 'context-full' && contextTokens <= settings.contextBudget && !compaction.leftOut?.length;
  return { line, enough, free, atLeast: mayWait ? Math.ceil(line * FREES) : 0 };
}

/** Tokens from which a compaction is due, whichever of its causes comes first. */
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
      : depthOf(state, settings, cause)),
    currentTurn: turn ? turnId(turn.number) : null,
    task: compaction.task,
    model: settings.model,
    ...(settings.fallback?.next.length && { fallback: settings.fallback.next }),
    agentHash: settings.agentHash,
  };
}

export function requestCompaction(state: ConversationState, { requestId: id }: EventOf<'compaction-requested'>): ConversationState {
  if (!state.settings || state.context.length === 0) return answer(state, 'compact', [id], { kind: 'nothing-to-compact' });
  return request(state, { kind: 'compact', id });
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
  if (input.session !== paid.session || paid.epoch >= result.epoch) return paid; // (context/late-result-only-costs)
  if (result.kind === 'nothing-to-compact')
    return restedAfter(input, answer(paid, 'compact', requestIds(paid, input), { kind: 'nothing-to-compact' }), RESTS_IN_VAIN);
  if (result.kind === 'cited') return acceptCited(paid, input, result);
  const { base, episode, archived, method, turns, tokensBefore, tokensAfter } = result;
  const { context, contextTokens, compaction } = paid;
  const leftOut = listSlots(compaction.leftOut ?? []);
  const out = new Set(leftOut);
  // What was left out of the prompt does not come back into it.
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
      baseTokens: Math.ceil(base.text.length / 4),
      reported: null,
      compactions: compaction.compactions + 1,
      ...((compaction.cited ?? result.cited) && { cited: toRanges(cited) }),
      ...(compaction.leftOut && { leftOut: toRanges(leftOut.filter((slot) => !taken.has(slot))) }),
      before: {
        epoch: result.epoch,
        base: compaction.base,
        baseTokens: compaction.baseTokens,
        context: input.context,
        ...(compaction.cited && { cited: compaction.cited }),
        ...(input.leftOut.length > 0 && { leftOut: input.leftOut }),
        contextTokens: input.contextTokens,
        episode: episode.id,
        archived,
      },
    }),
  );
  return restedAfter(input, compacted, RESTS);
}

/** The epoch goes on, with less in it: there is nothing to take back. */
function acceptCited(state: ConversationState, input: CompactInput, { cited, tokensBefore, tokensAfter }: Cited): ConversationState {
  const { compaction, contextTokens } = state;
  const messages = countSlots(cited);
  const answered = answer(state, 'compact', requestIds(state, input), { kind: 'cited', messages, tokensBefore, tokensAfter });
  const shorter = { ...answered, contextTokens: Math.max(0, contextTokens - (tokensBefore - tokensAfter)) };
  const noted = withCompaction(shorter, () => ({ cited: [...(compaction.cited ?? []), ...cited], reported: null }));
  return restedAfter(input, noted, RESTS);
}

/** A turn that was too much: its messages are kept, and later prompts show their ends. */
export function citeTurn(state: ConversationState, { firstSlot, messageIds, messageTokens }: Turn): ConversationState {
  const inContext = listSlots(state.context);
  const slots = inContext.slice(Math.max(0, inContext.indexOf(firstSlot)));
  const less = Math.max(0, messageTokens - messageIds.length * citedMessageTokens());
  return withCompaction({ ...state, contextTokens: Math.max(0, state.contextTokens - less) }, ({ cited = [] }) => ({
    cited: [...cited, ...toRanges(slots)],
  }));
}

export function failCompaction(state: ConversationState, { input, failure }: Failed<'compact'>): ConversationState {
  if (input.session !== state.session || state.epoch >= input.epoch) return state; // (context/late-result-only-costs)
  const failed = answer(state, 'compact', requestIds(state, input), { kind: 'failed', message: `${failure.type}: ${failure.message}` });
  return restedAfter(input, failed, RESTS_IN_VAIN);
}

/** After every event: requests that what has come since has made idle are answered all the same. */
export function answerInVain(state: ConversationState): ConversationState {
  if (state.requests.pending.length === 0 || isChangingContext(state)) return state;
  const { compaction, settings } = state;
  const there = answerGone(state);
  const undone = compaction.before ? there : answer(there, 'undo', undoRequests(there), { kind: 'nothing-to-undo' });
  const isFull = settings !== null && usageOf(numbersOf(state), settings).forceCompaction;
  return isFull ? undone : answer(undone, 'truncate', unspecificRequests(undone, 'truncate'), { kind: 'nothing-to-truncate' });
}

/** A new session begins with an empty context; nothing of the old one is undone into it, or becomes its memory. */
export function forgetContext(state: ConversationState): ConversationState {
  const ended = pendingRequests(state, 'compact', 'undo', 'truncate').reduce(
    (now, { kind, id }) => answer(now, kind, [id], { kind: 'failed', message: 'the session ended first' }),
    state,
  );
  const { compactions, attempts, prefix, learned, truncations } = ended.compaction;
  const compaction: CompactionState = {
    ...NO_COMPACTION,
    ...{ compactions, attempts, prefix },
    ...(learned && { learned }),
    ...(truncations !== undefined && { truncations }),
  };
  return { ...ended, context: [], contextTokens: 0, compaction };
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

/** The request that was too much is of about the size that the context has now (context/overflow-sets-size). */
export function learnSize(state: ConversationState): ConversationState {
  const { settings, compaction, contextTokens } = state;
  if (!settings) return state;
  const { model, contextBudget, fixedTokens: fixed } = settings;
  // Before the first report of a session the messages alone are counted.
  const isCounted = compaction.reported !== null || compaction.base !== null;
  const size = Math.min(contextBudget, contextTokens + (isCounted ? 0 : fixed));
  const tokens = Math.max(fixed + LEAST_ROOM, Math.floor(size * LEARNED_SHARE));
  // Nothing that a conversation could leave out would make it fit.
  if (tokens >= size) return state;
  const { learned: known } = compaction;
  const assumed = known?.model === model && known.tokens === contextBudget ? known.assumed : contextBudget;
  return {
    ...withCompaction(state, () => ({ learned: { model, assumed, tokens } })),
    settings: scaledTo(settings, tokens),
  };
}

/** What a program has chosen says nothing of whether the next by itself is worth a try. */
function restedAfter({ chosen }: CompactInput, state: ConversationState, share: number): ConversationState {
  return chosen ? state : rested(state, share);
}

/** A message beyond the prompt's budget would be left out without a summary: there it rests for less (context/compaction-rests). */
function rested(state: ConversationState, share: number): ConversationState {
  const { settings, turn } = state;
  if (!settings) return withCompaction(state, () => ({ forced: null }));
  const [line, tokens] = [compactsAt(settings), stayingTokens(state)];
  const until = Math.min(tokens + line * share, Math.max(settings.contextBudget, tokens + line * RESTS_IN_VAIN));
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
