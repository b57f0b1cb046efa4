/**
 * Truncation: the oldest messages leave a prompt that is too long (seed 004, Truncation Strategy; design section 4).
 *
 * A truncated message leaves only the prompt: its traces stay, the next compaction summarizes it, and a notice reports it, with what was
 * pinned in it. A truncation takes whole calls with their results, and never the message that began the current turn. It first cites long
 * messages of earlier turns: such a chunk stays, only its rendering changes (design section 4).
 *
 * @rule context/truncation-rests: Within a turn a truncation waits until the context has grown by a part of the threshold: earlier there
 *   would again be nothing to leave out. The next turn tries anew. (test: test/conversation/context/compaction.test.ts)
 */
import { withCitedTokens, withTokenRatio, type PassingNotice } from '../state/compaction-state.js';
import { stayingTokens } from './citing.js';
import { nextChosen, unspecificRequests } from './chosen-chunks.js';
import type { TruncateInput } from './compaction-effects.js';
import type { EventOf } from '../event.js';
import type { Completed, Failed } from '../effect.js';
import { listSlots, toRanges, type SlotRange } from '../../records/slots.js';
import { answer, request } from '../requests.js';
import type { ConversationState } from '../state.js';
import { turnId } from '../../records/identity.js';

/** Share of the truncation threshold (context/truncation-rests). */
const WORTH_ANOTHER = 0.05;
/** Sorts the notice after all entries of an ended turn. */
const MAX_SEQ = 1_000_000;

export function truncateInput(state: ConversationState): TruncateInput | undefined {
  const { settings, turn, identity, epoch, context, counters, session } = state;
  if (!settings) return undefined;
  const chosen = nextChosen(state, 'truncate');
  const inTurn = turn ? turnId(turn.number) : turnId(state.latestTurn);
  return {
    identity,
    epoch,
    number: (state.compaction.truncations ?? 0) + 1,
    agentHash: settings.agentHash,
    context,
    cited: state.compaction.cited ?? [],
    ...(state.compaction.base !== null && { base: state.compaction.base }),
    excess: chosen ? 0 : stayingTokens(state) - settings.thresholds.hard,
    ...(chosen && { chosen: { requestId: chosen.id, slots: chosen.input } }),
    ...(settings.tokenizer !== undefined && { tokenizer: settings.tokenizer }),
    ...withTokenRatio(state),
    currentTurn: turn ? inTurn : null,
    notice: { slot: counters.slot + 1, turn: inTurn, seq: (turn?.seq ?? MAX_SEQ) + 1, session },
  };
}

/** Lasting tokens from which a truncation is worth a try; null between turns (context/truncation-rests). */
export function truncatesFrom({ turn, settings, compaction }: ConversationState): number | null {
  if (!turn || !settings) return null;
  const rest = compaction.truncationRest;
  return rest?.turn === turn.number ? rest.tokens + Math.ceil(settings.thresholds.truncation * WORTH_ANOTHER) : 0;
}

/**
 * A request (seed 004, executeTruncation) truncates to the hard threshold before the next model call, also below the truncation threshold.
 */
export function requestTruncation(state: ConversationState, { requestId: id }: EventOf<'truncation-requested'>): ConversationState {
  const { settings } = state;
  if (!settings || stayingTokens(state) <= settings.thresholds.hard)
    return answer(state, 'truncate', [id], { kind: 'nothing-to-truncate' });
  return request(state, { kind: 'truncate', id });
}

/** Reserves the notice's slot, so that no message that arrives meanwhile gets it. */
export function startTruncation(state: ConversationState): ConversationState {
  const { turn, counters } = state;
  return {
    ...state,
    counters: { ...counters, slot: counters.slot + 1 },
    turn: turn && {
      ...turn,
      seq: turn.seq + 1,
      ...(turn.phase.kind === 'model' && { phase: { ...turn.phase, call: { ...turn.phase.call, seq: turn.phase.call.seq + 1 } } }),
    },
  };
}

export function acceptTruncated(state: ConversationState, { input, output: result }: Completed<'truncate'>): ConversationState {
  const { compaction, context, contextTokens } = state;
  if (state.epoch !== result.epoch) return state;
  const gone = new Set(listSlots(result.dropped));
  const { cited = [] } = result;
  const tokensAfter = Math.max(0, contextTokens - result.tokens);
  const done = answer(
    { ...state, contextTokens: tokensAfter },
    'truncate',
    requestIds(state, input),
    gone.size + cited.length === 0
      ? { kind: 'nothing-to-truncate' }
      : { kind: 'truncated', tokensBefore: contextTokens, tokensAfter, entries: result.entries },
  );
  const answered = {
    ...done.compaction,
    truncations: (compaction.truncations ?? 0) + 1,
    ...(cited.length > 0 && {
      cited: [...(compaction.cited ?? []), ...cited],
      ...withCitedTokens(compaction, result.tokens),
      reported: null,
    }),
  };
  if (gone.size === 0 || !result.notice) return delayNext(input, { ...done, compaction: answered });
  const left = listSlots(context).filter((slot) => !gone.has(slot));
  const { leftOut = [] } = compaction;
  return delayNext(input, {
    ...done,
    // The notice comes first: the prompt's beginning has changed in any case.
    context: toRanges([result.notice.slot, ...left]),
    compaction: {
      ...answered,
      reported: null,
      leftOut: [...leftOut, ...result.dropped],
      ...(input.chosen && { chosenOut: [...(leftOut.length === 0 ? [] : (compaction.chosenOut ?? [])), ...result.dropped] }),
      passing: withPassing(state, { slot: result.notice.slot, epoch: state.epoch, leftOut: true }),
    },
  });
}

/** Those that are still in the context, and one more. */
export function withPassing({ context, compaction }: ConversationState, notice: PassingNotice): readonly PassingNotice[] {
  const { passing = [] } = compaction;
  if (passing.length === 0) return [notice];
  const there = new Set(listSlots(context));
  return [...passing.filter(({ slot }) => there.has(slot)), notice];
}

/** The context without notices that are no longer true. Within an epoch none leaves: the prompt's beginning stays as it is. */
export function shownContext({ context, epoch, compaction }: ConversationState): readonly SlotRange[] {
  const { passing = [], leftOut = [] } = compaction;
  const gone = passing.filter((notice) => notice.epoch !== epoch && (notice.leftOut !== true || leftOut.length === 0));
  if (gone.length === 0) return context;
  const slots = new Set(gone.map(({ slot }) => slot));
  return toRanges(listSlots(context).filter((slot) => !slots.has(slot)));
}

export function isTruncationRequested(state: ConversationState): boolean {
  return unspecificRequests(state, 'truncate').length > 0 || nextChosen(state, 'truncate') !== undefined;
}

/** Ids of the requests that it answers: the one that chose its chunks, or all that chose none. */
function requestIds(state: ConversationState, { chosen }: TruncateInput): readonly string[] {
  return chosen ? [chosen.requestId] : unspecificRequests(state, 'truncate');
}

/** Chosen chunks do not tell whether the next automatic truncation is worth a try. */
function delayNext({ chosen }: TruncateInput, state: ConversationState): ConversationState {
  if (chosen) return state;
  const { turn, compaction, latestTurn } = state;
  return { ...state, compaction: { ...compaction, truncationRest: { turn: turn?.number ?? latestTurn, tokens: stayingTokens(state) } } };
}

export function failTruncation(state: ConversationState, { input, failure }: Failed<'truncate'>): ConversationState {
  const failed = answer(state, 'truncate', requestIds(state, input), { kind: 'failed', message: `${failure.type}: ${failure.message}` });
  const { compaction } = failed;
  // The count also ends a step that waits for the truncation.
  return delayNext(input, { ...failed, compaction: { ...compaction, truncations: (compaction.truncations ?? 0) + 1 } });
}
