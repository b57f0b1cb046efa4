/**
 * Tokens of messages: by estimate (records/token-estimate.ts), or by what is handed in, a model's tokenizer or an estimate that has learnt.
 */
import { citationTokens, citedTokens, isKept, newFrom } from '../conversation/context/citing.js';
import { isFromPerson, type AssistantBlock, type Body, type ConversationMessage, type Entry } from '../records/message.js';
import { estimateMediaTokens, estimateTokens, measureBodyTokens } from '../records/token-estimate.js';

export function estimateStringTokens(text: string): number {
  return estimateTokens(text);
}

export type CountTokens = (text: string) => number;

/** Estimates by no counter. A message never changes, and every turn counts the whole of a long conversation. */
const ESTIMATES = new WeakMap<ConversationMessage, number>();

/** All that reaches a prompt: texts, tool inputs as JSON, names and call ids, thinking. What is only in the store counts by its size. */
export function estimateMessageTokens(message: ConversationMessage, count?: CountTokens): number {
  const known = count ? undefined : ESTIMATES.get(message);
  if (known !== undefined) return known;
  let sum = 0;
  addMessage(message, (body) => (sum += measureBodyTokens(body, count)));
  const tokens = Math.ceil(sum) + (message.role === 'assistant' ? 0 : estimateMediaTokens(message));
  if (!count) ESTIMATES.set(message, tokens);
  return tokens;
}

function addMessage(message: ConversationMessage, add: (body: Body) => void): void {
  switch (message.role) {
    case 'user':
      return add(message.text);
    case 'assistant':
      return message.blocks.forEach((block) => addBlock(block, add));
    case 'tool':
      for (const body of [message.callId, message.name, message.text]) add(body);
      return;
    default:
      return message satisfies never;
  }
}

function addBlock(block: AssistantBlock, add: (body: Body) => void): void {
  switch (block.kind) {
    case 'text':
      return add(block.text);
    case 'thinking':
      add(block.text);
      return add(block.signature ?? '');
    case 'opaque':
      return add(JSON.stringify(block.value));
    case 'tool-call':
      for (const body of [block.callId, block.name, block.inputRef ?? JSON.stringify(block.input)]) add(body);
      return;
    default:
      return block satisfies never;
  }
}

export function countMessageTokens(messages: readonly ConversationMessage[], count?: CountTokens): number {
  return messages.reduce((sum, message) => sum + estimateMessageTokens(message, count), 0);
}

/** Of messages as they are stored: old results in the memory channel count as their citations. */
export function countShown(messages: readonly ConversationMessage[], count?: CountTokens): number {
  return shownTokensEach(messages, count).reduce((sum, tokens) => sum + tokens, 0);
}

/** The same for each. */
export function shownTokensEach(messages: readonly ConversationMessage[], count?: CountTokens): number[] {
  const border = newFrom(messages);
  return messages.map((message, at) => {
    const whole = estimateMessageTokens(message, count);
    return at < border && isKept(message) ? Math.min(whole, citationTokens(message, count)) : whole;
  });
}

/** Of each entry, as the prompt shows it. `cited`: slots of messages that are shown by their ends. */
export function entryTokens(
  entries: readonly Entry[],
  { count, cited = new Set() }: { readonly count?: CountTokens; readonly cited?: ReadonlySet<number> } = {},
): (entry: Entry) => number {
  const shown = shownTokensEach(
    entries.map(({ message }) => message),
    count,
  );
  const tokens = new Map(
    entries.map((entry, at) => {
      const whole = shown[at] ?? 0;
      return [entry, cited.has(entry.slot) && isFromPerson(entry.message) ? Math.min(whole, citedTokens(entry.message, whole)) : whole];
    }),
  );
  return (entry) => tokens.get(entry) ?? 0;
}
