/**
 * Which messages fit into a prompt (seed 002, "Context Window"). Pure: the estimator is given.
 *
 * - The selection fits, keeps its order, and has a person's newest message in it, and the newest answer with its results. Words of Perdura
 *   or an application in a person's place are no question.
 * - It begins with a user's message: never with an answer, never with a result.
 * - A call and its results are both in it or both not. A result belongs to the nearest call of its id before it; a result without a call is
 *   never selected.
 * - It takes as much as fits, from the newest back. If the messages after that one are too long by themselves, their oldest tool rounds go.
 */
import { isFromPerson, type ConversationMessage } from '../records/message.js';

/** What was left out of a prompt that would have been too long. */
export interface OverflowReport {
  readonly droppedCount: number;
  readonly estimatedDroppedTokens: number;
}

export interface Selection {
  readonly selected: readonly ConversationMessage[];
  /** null when nothing was left out. */
  readonly overflow: OverflowReport | null;
}

/** Not even the last user message, with the tool round after it, fits. Sizes are estimated tokens. */
export class MessageTooLarge extends Error {
  override readonly name = 'MessageTooLarge';
  constructor(
    readonly neededTokens: number,
    readonly budgetTokens: number,
  ) {
    super(
      `cannot fit the last message into the prompt: with the tool results that belong to it, it takes about ${neededTokens} tokens ` +
        `and ${budgetTokens} are left for messages; shorten it, let tools answer with less, or choose a model with a larger context`,
    );
  }
}

/**
 * `tokenBudget` is what is left for messages: context − system prompt − room for the answer. Without any user message nothing is
 * selected. Throws MessageTooLarge.
 */
export function selectMessages(
  messages: readonly ConversationMessage[],
  tokenBudget: number,
  estimateTokens: (message: ConversationMessage) => number,
): Selection {
  const tokens = messages.map((message) => estimateTokens(message));
  const callers = mapCallers(messages);
  const from = suffixTokens(tokens, callers);
  const users = messages.flatMap(({ role }, at) => (role === 'user' ? [at] : []));
  const newestQuestion = messages.findLastIndex(isFromPerson);
  const newest = newestQuestion === -1 ? users.at(-1) : newestQuestion;
  if (newest === undefined) return toSelection(messages, tokens, () => false);

  const isAfter = (start: number) => (at: number) => at >= start && callers(at) >= start;
  const start = users.find((at) => at <= newest && from(at) <= tokenBudget);
  if (start !== undefined) return toSelection(messages, tokens, isAfter(start));

  const question = tokens[newest] ?? 0;
  const rounds = messages.flatMap(({ role }, at) => (role === 'assistant' && at > newest ? [at] : []));
  // Without an answer yet, what follows the question comes from others.
  const last = rounds.at(-1) ?? messages.length;
  const round = [...rounds, last].find((at) => question + from(at) <= tokenBudget);
  if (round === undefined) throw new MessageTooLarge(question + from(last), tokenBudget);
  return toSelection(messages, tokens, (at) => at === newest || isAfter(round)(at));
}

/** For a result the place of its call, −1 where it has none; for any other message its place. */
function mapCallers(messages: readonly ConversationMessage[]): (at: number) => number {
  const latest = new Map<string, number>();
  const callers = messages.map((message, at) => {
    if (message.role === 'tool') return latest.get(message.callId) ?? -1;
    if (message.role === 'assistant') {
      for (const block of message.blocks) if (block.kind === 'tool-call') latest.set(block.callId, at);
    }
    return at;
  });
  return (at) => callers[at] ?? -1;
}

/** Tokens of what is selected when it begins at a place: all after it, without the results whose calls are before it. */
function suffixTokens(tokens: readonly number[], callers: (at: number) => number): (start: number) => number {
  // A message counts for every start up to its caller's place.
  const sums = new Array<number>(tokens.length + 1).fill(0);
  tokens.forEach((each, at) => {
    const caller = callers(at);
    if (caller >= 0) sums[caller] = (sums[caller] ?? 0) + each;
  });
  for (let at = tokens.length - 1; at >= 0; at--) sums[at] = (sums[at] ?? 0) + (sums[at + 1] ?? 0);
  return (start) => sums[start] ?? 0;
}

function toSelection(messages: readonly ConversationMessage[], tokens: readonly number[], isKept: (at: number) => boolean): Selection {
  const selected = messages.filter((_, at) => isKept(at));
  if (selected.length === messages.length) return { selected, overflow: null };
  return {
    selected,
    overflow: {
      droppedCount: messages.length - selected.length,
      estimatedDroppedTokens: tokens.reduce((sum, each, at) => (isKept(at) ? sum : sum + each), 0),
    },
  };
}
