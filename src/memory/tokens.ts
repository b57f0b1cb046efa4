/**
 * Tokens by estimate: characters over four (seed 002, gap 6), or by a model's own tokenizer where one is handed in. A guard, never
 * the driver: what the provider reports decides.
 */
import { citationTokens, isKept, newFrom } from '../conversation/context/citing.js';
import { isBodyRef, type AssistantBlock, type Body, type ConversationMessage, sourcesIn, type MediaKind } from '../records/message.js';
import { estimateTokens } from '../records/token-usage.js';

/**
 * What each counts, whatever its size. A picture: about what the largest that providers do not scale down takes (1,568 pixels a side);
 * sound and video: about a minute of it.
 */
export const MEDIA_TOKENS: Readonly<Record<MediaKind, number>> = { images: 1_600, audio: 2_000, video: 16_000 };

export function estimateStringTokens(text: string): number {
  return estimateTokens(text.length);
}

export type CountTokens = (text: string) => number;

/** All that reaches a prompt: texts, tool inputs as JSON, names and call ids, thinking. What lies in the store counts its bytes. */
export function estimateMessageTokens(message: ConversationMessage, count?: CountTokens): number {
  const { texts, elsewhere } = partsOf(message);
  const media = message.role === 'user' ? sourcesIn(message).reduce((sum, { kind }) => sum + MEDIA_TOKENS[kind], 0) : 0;
  const characters = count ? 0 : texts.reduce((sum, { length }) => sum + length, 0);
  const counted = count ? texts.reduce((sum, text) => sum + count(text), 0) : 0;
  return estimateTokens(characters + elsewhere) + counted + media;
}

/** `elsewhere`: bytes of what lies in the store. */
function partsOf(message: ConversationMessage): { readonly texts: readonly string[]; readonly elsewhere: number } {
  const bodies = bodiesIn(message);
  return {
    texts: bodies.filter((body) => typeof body === 'string'),
    elsewhere: bodies.reduce((sum, body) => (isBodyRef(body) ? sum + body.bytes : sum), 0),
  };
}

function bodiesIn(message: ConversationMessage): Body[] {
  switch (message.role) {
    case 'user':
      return [message.text];
    case 'assistant':
      return message.blocks.flatMap(bodiesInBlock);
    case 'tool':
      return [message.callId, message.name, message.text];
    default:
      return message satisfies never;
  }
}

function bodiesInBlock(block: AssistantBlock): Body[] {
  switch (block.kind) {
    case 'text':
      return [block.text];
    case 'thinking':
      return [block.text, block.signature ?? ''];
    case 'opaque':
      return [JSON.stringify(block.value)];
    case 'tool-call':
      return [block.callId, block.name, block.inputRef ?? JSON.stringify(block.input)];
    default:
      return block satisfies never;
  }
}

export function tokensOf(messages: readonly ConversationMessage[], count?: CountTokens): number {
  return messages.reduce((sum, message) => sum + estimateMessageTokens(message, count), 0);
}

/** Of messages as they are stored: old results in the memory channel count as what stands for them. */
export function shownTokensOf(messages: readonly ConversationMessage[], count?: CountTokens): number {
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
