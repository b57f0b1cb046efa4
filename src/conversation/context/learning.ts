/**
 * What answers and refusals teach a conversation about its model: how long a prompt may be, how it counts tokens, and which messages its
 * provider refuses.
 *
 * @rule context/overflow-sets-size: A model that refuses a prompt as too long has shown its size; the size holds for the conversation from
 *   then on. (test: test/conversation/context/thrash.test.ts)
 */
import { calibrate } from '../../records/token-estimate.js';
import { listSlots, toRanges, type SlotRange } from '../../records/slots.js';
import type { CompactionState } from '../state/compaction-state.js';
import { scaledTo } from '../state/settings.js';
import { withTurn } from '../state/turn-access.js';
import type { ConversationState } from '../state.js';
import type { CallInput, ModelAnswer } from '../turn/model-step-effects.js';

/** Share of a refused request that counts as the model's size from then on (context/overflow-sets-size). */
const LEARNED_SHARE = 0.75;
/** Tokens for messages beside the system prompt and the tools, however small the model is. */
const MIN_ROOM = 1_000;
/** In the place of a slot: what the epoch begins with. Slots of messages begin at 1. */
export const BASE = 0;

/** Learns the model's size: the refused request had `refused` tokens, about as many as the context has now where nothing else is known. */
export function learnSize(state: ConversationState, refused = state.contextTokens): ConversationState {
  const { settings, compaction } = state;
  if (!settings) return state;
  const { model, contextBudget, fixedTokens: fixed } = settings;
  // Before a session's first report, `contextTokens` counts only messages.
  const isCounted = compaction.reported !== null || compaction.base !== null;
  const size = Math.min(contextBudget, refused + (isCounted ? 0 : fixed));
  const tokens = Math.max(fixed + MIN_ROOM, Math.floor(size * LEARNED_SHARE));
  // Leaving out messages would not make the prompt fit.
  if (tokens >= size) return state;
  const { learned: known } = compaction;
  const assumed = known?.model === model && known.tokens === contextBudget ? known.assumed : contextBudget;
  return { ...withLearnt(state, { learned: { model, assumed, tokens } }), settings: scaledTo(settings, tokens) };
}

/** What a prompt that was answered says: how long one may be, how its tokens are counted, and why an earlier one was refused. */
export function learnFromAnswer(state: ConversationState, answer: ModelAnswer): ConversationState {
  const { model, estimated, refused, isGuess, usage, stop } = answer;
  const { turn } = state;
  if (!turn || stop === 'interrupted' || stop === 'context-full') return state;
  const { suspected, ...rest } = turn;
  const sized = suspected !== undefined && !refused ? learnSize(state, suspected) : state;
  const { unexplained: _, isGuessed = false, accepted, calibration, refused: before = [], ...compaction } = sized.compaction;
  const isOut = refused !== undefined && (!isGuess || isGuessed);
  const slots = isOut ? listSlots(refused) : [];
  const out = [...before, ...toRanges(slots.filter((slot) => slot !== BASE))];
  const known = estimated ? calibrate(calibration, { model, prompt: estimated, reported: usage.inputTokens }) : calibration;
  return {
    ...sized,
    turn: rest,
    compaction: {
      ...compaction,
      accepted: { model, tokens: Math.max(accepted?.model === model ? accepted.tokens : 0, usage.inputTokens) },
      ...(known && { calibration: known }),
      ...(out.length > 0 && { refused: out }),
      ...(slots.includes(BASE) && compaction.base !== null && { refusedBase: compaction.base }),
      ...(refused && !isOut && { isGuessed: true }),
    },
  };
}

/** Whether a refusal without a reason that is known may be about the size: no longer prompt was ever answered, and it can get shorter. */
export function mayBeTooLong({ turn, settings, compaction, context, contextTokens }: ConversationState): boolean {
  const { accepted, unexplained } = compaction;
  if (!turn || turn.suspected !== undefined || settings?.model === undefined || unexplained === settings.model) return false;
  const most = accepted?.model === settings.model ? accepted.tokens : 0;
  return contextTokens > most && (context[0]?.[0] ?? turn.firstSlot) < turn.firstSlot;
}

/** The prompt that was refused may have been too long: a shorter one is to be tried. */
export function suspectSize(state: ConversationState): ConversationState {
  return withTurn(state, (turn) => ({ ...turn, suspected: state.contextTokens }));
}

/** The shorter prompt was refused too: until one is answered, no other is made for this reason. */
export function noteUnexplained(state: ConversationState): ConversationState {
  const { turn, settings } = state;
  return turn?.suspected === undefined || !settings ? state : withLearnt(state, { unexplained: settings.model });
}

/** What of it the next call's step is told. */
export function knownRefusals({ compaction }: ConversationState): Pick<CallInput, 'refused'> {
  const { refused = [], refusedBase, base } = compaction;
  const out: readonly SlotRange[] = [...(refusedBase !== undefined && refusedBase === base ? [[BASE, BASE] as const] : []), ...refused];
  return out.length === 0 ? {} : { refused: out };
}

/** Of a compaction or a trim: what left the context needs no words in its place. */
export function withoutLeft({ refused }: CompactionState, gone: ReadonlySet<number>): Pick<CompactionState, 'refused'> {
  return refused ? { refused: toRanges(listSlots(refused).filter((slot) => !gone.has(slot))) } : {};
}

/** Of a new session, or of another life of the conversation: of its model nothing has changed. */
export function keptLessons({ learned, calibration, accepted }: CompactionState): Partial<CompactionState> {
  return { ...(learned && { learned }), ...(calibration && { calibration }), ...(accepted && { accepted }) };
}

function withLearnt(state: ConversationState, learnt: Partial<CompactionState>): ConversationState {
  return { ...state, compaction: { ...state.compaction, ...learnt } };
}
