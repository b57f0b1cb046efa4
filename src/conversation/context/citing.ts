/**
 * Decides which long tool results a model call shows whole, and which it cites (seed 003, "First-Use Optimization"). It depends on the
 * context alone, so that every attempt, on every worker, writes the same bytes.
 *
 * The prompt before the newest results seldom changes: a result is rewritten when it stops being new, and again when all citations together
 * are too large; then many of the oldest become one line each (memory/channel/citations.ts).
 *
 * @rule context/new-result-whole: A result is new until an assistant message follows it; a model call shows new results whole and cites
 *   older ones. (test: test/memory/channel/citing.test.ts)
 * @rule context/large-result-cited: A new result is cited at once, with its beginning and its end, if it takes more than WHOLE_SHARE of the
 *   prompt's budget, or more than TOGETHER_SHARE with the new ones before it. (test: test/memory/channel/citing.test.ts)
 */
import { tokenRatio } from '../state/compaction-state.js';
import type { CallNumbers } from './call-gate.js';
import type { ToolFinished } from '../turn/model-step-effects.js';
import type { ConversationMessage, Media, ToolResultMessage } from '../../records/message.js';
import type { ConversationState } from '../state.js';
import { estimateMediaTokens, estimateTokens, measureBodyTokens, measureTokens } from '../../records/token-estimate.js';

export const WHOLE_SHARE = 0.25;
export const TOGETHER_SHARE = 0.5;
/** Characters of each end of a result that is cited at once. */
export const END_CHARACTERS = 2_000;
/** Around a result or its citation: 80 characters. */
const FRAME_TOKENS = 20;
/** Characters of each end of a person's cited message, and of the note between them. */
export const MESSAGE_END_CHARACTERS = 500;
const MESSAGE_NOTE_CHARACTERS = 200;
const CITED_CHARACTERS = 2 * MESSAGE_END_CHARACTERS + MESSAGE_NOTE_CHARACTERS;
/** Tokens of a message from which citing it pays. */
export const CITED_FROM = 1_000;

/** Of a message in Latin letters. */
export function citedMessageTokens(): number {
  return Math.ceil(CITED_CHARACTERS / 4);
}

/** Of any: the share of its tokens that its ends have. `whole`: tokens of all of it. */
export function citedTokens(message: ConversationMessage, whole: number): number {
  if (message.role === 'assistant') return whole;
  const { text } = message;
  const size = typeof text === 'string' ? text.length : text.bytes;
  return size < CITED_CHARACTERS ? citedMessageTokens() : Math.ceil((whole * CITED_CHARACTERS) / size);
}

/** A result that is kept in the memory channel. */
export type KeptResult = ToolResultMessage & { readonly item: NonNullable<ToolResultMessage['item']> };

export function isKept(message: ConversationMessage): message is KeptResult {
  return message.role === 'tool' && message.item !== undefined;
}

/** Index from which results are new (context/new-result-whole). */
export function newFrom(messages: readonly ConversationMessage[]): number {
  return messages.findLastIndex(({ role }) => role === 'assistant') + 1;
}

/** Which new results are shown whole (context/large-result-cited). `tokens`: of each, in order; `budget`: of the prompt. */
export function shownWhole(tokens: readonly number[], budget: number): boolean[] {
  let together = 0;
  return tokens.map((each) => {
    const isShown = each <= budget * WHOLE_SHARE && together + each <= budget * TOGETHER_SHARE;
    if (isShown) together += each;
    return isShown;
  });
}

export function citationTokens({ item }: KeptResult, count: (text: string) => number = measureTokens): number {
  return Math.ceil(count(item.citation) + FRAME_TOKENS);
}

/** Adds a result to the tokens of the next model call, and to `shownOnce` the part that the call after it no longer has. */
export function countResult(state: ConversationState, result: Pick<ToolFinished, 'text' | 'item'> & Media): ConversationState {
  const { contextTokens, compaction, settings } = state;
  const numbers = { contextTokens, shownOnce: compaction.shownOnce ?? 0, tokenRatio: tokenRatio(state) };
  const counted = withResultCounted(numbers, result, settings?.contextBudget ?? Infinity);
  return {
    ...state,
    contextTokens: counted.contextTokens,
    ...(result.item && { compaction: { ...compaction, shownOnce: counted.shownOnce } }),
  };
}

/** The same on numbers alone. `budget`: tokens that a prompt may have. */
export function withResultCounted<Numbers extends Pick<CallNumbers, 'contextTokens' | 'shownOnce' | 'tokenRatio'>>(
  numbers: Numbers,
  result: Pick<ToolFinished, 'text' | 'item'> & Media,
  budget: number,
): Numbers {
  const { text, item } = result;
  const { shownOnce, tokenRatio: ratio = 1 } = numbers;
  const contextTokens = numbers.contextTokens + estimateMediaTokens(result);
  const [size, each] = [measureBodyTokens(text), typeof text === 'string' ? text.length : text.bytes];
  const whole = Math.ceil(size * ratio);
  if (!item) return { ...numbers, contextTokens: contextTokens + whole };
  // An estimate: the sizes of the round's other results are not known.
  const isShown = whole <= budget * WHOLE_SHARE && shownOnce + whole <= budget * TOGETHER_SHARE;
  const shown = isShown ? whole : Math.min(whole, Math.ceil((size / Math.max(1, each)) * 2 * END_CHARACTERS * ratio) + FRAME_TOKENS);
  const later = Math.min(shown, Math.ceil(estimateTokens(item.citation) * ratio) + FRAME_TOKENS);
  return { ...numbers, contextTokens: contextTokens + shown, shownOnce: shownOnce + shown - later };
}

/** The lasting tokens: without results that are shown whole only once. */
export function stayingTokens({ contextTokens, compaction }: Pick<ConversationState, 'contextTokens' | 'compaction'>): number {
  return contextTokens - (compaction.shownOnce ?? 0);
}

/** After an answer no result is new: the whole ones leave the count. */
export function withoutShown(state: ConversationState): ConversationState {
  const { shownOnce, ...compaction } = state.compaction;
  if (shownOnce === undefined) return state;
  return { ...state, contextTokens: Math.max(0, state.contextTokens - shownOnce), compaction };
}
