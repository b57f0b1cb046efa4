/**
 * Which long tool results a model call shows whole, and which it cites (seed 003, "First-Use Optimization"), as a function of the
 * context alone, so that every attempt at a call, and a worker of tomorrow, writes the same bytes.
 *
 * The prompt before the newest results seldom changes: each message is rewritten right after it was new, and once more when the citations
 * together are too large. Then many of the oldest become one line each (memory/channel/citations.ts).
 *
 * @rule context/new-result-whole: A result is new until an assistant message stands after it; a model call shows it whole, and cites an
 *   older one. (test: test/memory/channel/citing.test.ts)
 * @rule context/large-result-cited: A new result is cited at once, with its beginning and its end, if it takes more than WHOLE_SHARE of the
 *   prompt's budget, or more than TOGETHER_SHARE with the new ones before it. (test: test/memory/channel/citing.test.ts)
 */
import type { CallNumbers } from './call-gate.js';
import type { ToolFinished } from '../turn/model-step-effects.js';
import type { ConversationMessage, ToolResultMessage } from '../../records/message.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-usage.js';

export const WHOLE_SHARE = 0.25;
export const TOGETHER_SHARE = 0.5;
/** Characters of each end of a result that is cited at once. */
export const END_CHARACTERS = 2_000;
/** What stands around a result or its citation. */
const FRAME_CHARACTERS = 80;
/** Of a person's message that a compaction has cited: characters of each end, and what stands between them. */
export const MESSAGE_END_CHARACTERS = 500;
const MESSAGE_NOTE_CHARACTERS = 200;
/** Tokens of a message from which citing it is worth while. */
export const CITED_FROM = 1_000;

export function citedMessageTokens(): number {
  return estimateTokens(2 * MESSAGE_END_CHARACTERS + MESSAGE_NOTE_CHARACTERS);
}

/** A result that is kept in the memory channel. */
export type KeptResult = ToolResultMessage & { readonly item: NonNullable<ToolResultMessage['item']> };

export function isKept(message: ConversationMessage): message is KeptResult {
  return message.role === 'tool' && message.item !== undefined;
}

/** The place from which on results are new (context/new-result-whole). */
export function newFrom(messages: readonly ConversationMessage[]): number {
  return messages.findLastIndex(({ role }) => role === 'assistant') + 1;
}

/** For the new ones in their order: tokens of each, and of the prompt's budget (context/large-result-cited). */
export function shownWhole(tokens: readonly number[], budget: number): boolean[] {
  let together = 0;
  return tokens.map((each) => {
    const isShown = each <= budget * WHOLE_SHARE && together + each <= budget * TOGETHER_SHARE;
    if (isShown) together += each;
    return isShown;
  });
}

export function citationTokens({ item }: KeptResult): number {
  return estimateTokens(item.citation.length + FRAME_CHARACTERS);
}

/** What the next model call has more, and how much of that the one after it no longer has. */
export function countResult(state: ConversationState, result: Pick<ToolFinished, 'text' | 'item'>): ConversationState {
  const { contextTokens, compaction, settings } = state;
  const counted = withResultCounted({ contextTokens, shownOnce: compaction.shownOnce ?? 0 }, result, settings?.contextBudget ?? Infinity);
  return {
    ...state,
    contextTokens: counted.contextTokens,
    ...(result.item && { compaction: { ...compaction, shownOnce: counted.shownOnce } }),
  };
}

/** The same on numbers alone. `budget`: tokens that a prompt may have. */
export function withResultCounted<Numbers extends Pick<CallNumbers, 'contextTokens' | 'shownOnce'>>(
  numbers: Numbers,
  { text, item }: Pick<ToolFinished, 'text' | 'item'>,
  budget: number,
): Numbers {
  const { contextTokens, shownOnce } = numbers;
  const whole = estimateTokens(typeof text === 'string' ? text.length : text.bytes);
  if (!item) return { ...numbers, contextTokens: contextTokens + whole };
  // The others of its round are not known by size: an estimate, as all of these.
  const isShown = whole <= budget * WHOLE_SHARE && shownOnce + whole <= budget * TOGETHER_SHARE;
  const shown = isShown ? whole : Math.min(whole, estimateTokens(2 * END_CHARACTERS + FRAME_CHARACTERS));
  const later = Math.min(shown, estimateTokens(item.citation.length + FRAME_CHARACTERS));
  return { ...numbers, contextTokens: contextTokens + shown, shownOnce: shownOnce + shown - later };
}

/** What the context keeps: without what is shown once and leaves by itself. */
export function stayingTokens({ contextTokens, compaction }: Pick<ConversationState, 'contextTokens' | 'compaction'>): number {
  return contextTokens - (compaction.shownOnce ?? 0);
}

/** The model has spoken after them: they are new no longer. */
export function withoutShown(state: ConversationState): ConversationState {
  const { shownOnce, ...compaction } = state.compaction;
  if (shownOnce === undefined) return state;
  return { ...state, contextTokens: Math.max(0, state.contextTokens - shownOnce), compaction };
}
