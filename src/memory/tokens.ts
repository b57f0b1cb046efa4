/**
 * Tokens by estimate: characters over four (seed 002, gap 6), or by a model's tokenizer where one is handed in. A guard, never
 * the driver: what the provider reports decides.
 */
import { citationTokens, citedMessageTokens, isKept, newFrom } from '../conversation/context/citing.js';
import {
  isBodyRef,
  isFromPerson,
  type AssistantBlock,
  type Body,
  type ConversationMessage,
  type Entry,
  sourcesIn,
  type MediaKind,
} from '../records/message.js';
import { estimateTokens } from '../records/token-usage.js';

/**
 * What each counts, whatever its size. A picture: about what the largest that providers do not scale down takes (1,568 pixels a side);
 * sound and video: about a minute of it; a document: about ten pages.
 */
export const MEDIA_TOKENS: Readonly<Record<MediaKind, number>> = { images: 1_600, audio: 2_000, video: 16_000, documents: 20_000 };

export function estimateStringTokens(text: string): number {
  return estimateTokens(text.length);
}

export type CountTokens = (text: string) => number;

/** All that reaches a prompt: texts, tool inputs as JSON, names and call ids, thinking. What is only in the store counts its bytes. */
export function estimateMessageTokens(message: ConversationMessage, count?: CountTokens): number {
  let characters = 0;
  let counted = 0;
  const add = (body: Body): void => {
    if (isBodyRef(body)) characters += body.bytes;
    else if (count) counted += count(body);
    else characters += body.length;
  };
  addMessage(message, add);
  const media = message.role === 'user' ? sourcesIn(message).reduce((sum, { kind }) => sum + MEDIA_TOKENS[kind], 0) : 0;
  return estimateTokens(characters) + counted + media;
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
    return at < border && isKept(message) ? Math.min(whole, citationTokens(message)) : whole;
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
      return [entry, cited.has(entry.slot) && isFromPerson(entry.message) ? Math.min(whole, citedMessageTokens()) : whole];
    }),
  );
  return (entry) => tokens.get(entry) ?? 0;
}
