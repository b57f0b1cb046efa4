/**
 * Tokens by estimate: characters over four (seed 002, gap 6). A guard, never the driver: what the provider reports decides. Free
 * of any tokenizer, so that the same text counts the same everywhere.
 */
import { citationTokens, isKept, newFrom } from '../conversation/citing.js';
import { sourcesIn, type MediaKind } from '../conversation/media.js';
import { isBodyRef, type AssistantBlock, type Body, type ConversationMessage } from '../conversation/message.js';
import { estimateTokens } from '../conversation/state.js';

/**
 * What each counts, whatever its size. A picture: about what the largest that providers do not scale down takes (1,568 pixels a side);
 * sound and video: about a minute of it.
 */
export const MEDIA_TOKENS: Readonly<Record<MediaKind, number>> = { images: 1_600, audio: 2_000, video: 16_000 };

export function estimateStringTokens(text: string): number {
  return estimateTokens(text.length);
}

/** All that reaches a prompt: texts, tool inputs as JSON, names and call ids, thinking. What lies in the store counts its bytes. */
export function estimateMessageTokens(message: ConversationMessage): number {
  switch (message.role) {
    case 'user':
      return estimateTokens(lengthOf(message.text)) + sourcesIn(message).reduce((sum, { kind }) => sum + MEDIA_TOKENS[kind], 0);
    case 'assistant':
      return estimateTokens(message.blocks.reduce((sum, block) => sum + blockLength(block), 0));
    case 'tool':
      return estimateTokens(message.callId.length + message.name.length + lengthOf(message.text));
    default:
      return message satisfies never;
  }
}

function blockLength(block: AssistantBlock): number {
  switch (block.kind) {
    case 'text':
      return lengthOf(block.text);
    case 'thinking':
      return block.text.length + (block.signature?.length ?? 0);
    case 'opaque':
      return JSON.stringify(block.value).length;
    case 'tool-call':
      return block.callId.length + block.name.length + (block.inputRef?.bytes ?? JSON.stringify(block.input).length);
    default:
      return block satisfies never;
  }
}

function lengthOf(body: Body): number {
  return isBodyRef(body) ? body.bytes : body.length;
}

export function tokensOf(messages: readonly ConversationMessage[]): number {
  return messages.reduce((sum, message) => sum + estimateMessageTokens(message), 0);
}

/** Of messages as they are stored: old results in the memory channel count as what stands for them. */
export function shownTokensOf(messages: readonly ConversationMessage[]): number {
  return shownTokensEach(messages).reduce((sum, tokens) => sum + tokens, 0);
}

/** The same for each. */
export function shownTokensEach(messages: readonly ConversationMessage[]): number[] {
  const border = newFrom(messages);
  return messages.map((message, at) => {
    const whole = estimateMessageTokens(message);
    return at < border && isKept(message) ? Math.min(whole, citationTokens(message)) : whole;
  });
}
