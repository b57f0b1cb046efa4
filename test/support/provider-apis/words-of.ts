/** What all protocols read from a scripted reply: its pieces, its numbers, its ids. */
import { randomBytes } from 'node:crypto';
import type { Reply, ReplyUsage, ToolCall } from './reply.js';

const defaultPiece = 12;

/** Cuts between characters, never within a surrogate pair. */
export function pieces(text: string, reply: Reply): string[] {
  const characters = [...text];
  const size =
    typeof reply.chunks === 'number'
      ? Math.max(1, Math.ceil(characters.length / reply.chunks))
      : Math.max(1, reply.chunks?.size ?? defaultPiece);
  const parts: string[] = [];
  for (let at = 0; at < characters.length; at += size) parts.push(characters.slice(at, at + size).join(''));
  return parts;
}

export function textsOf(reply: Reply): readonly string[] {
  return typeof reply.text === 'string' ? [reply.text] : (reply.text ?? []);
}

/** The words for stopping are the Messages API's; what a protocol has no word for is passed on. */
export function stopWordOf(reply: Reply, words: Readonly<Record<string, string>> = {}): string {
  const stop = reply.stopReason ?? ((reply.toolCalls ?? []).length > 0 ? 'tool_use' : 'end_turn');
  return words[stop] ?? stop;
}

/** The input's JSON as it streams. */
export function inputJsonOf(call: ToolCall): string {
  return call.inputJson ?? JSON.stringify(call.input ?? {});
}

/** The input as a value, for protocols that do not stream it. */
export function inputOf(call: ToolCall): unknown {
  return call.input ?? (call.inputJson === undefined ? {} : parsedOrEmpty(call.inputJson));
}

function parsedOrEmpty(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}

/** `prompt` is what was asked, without what is no part of it. */
export function usageOf(reply: Reply, prompt: unknown): ReplyUsage {
  return {
    input_tokens: reply.usage?.input_tokens ?? estimateTokens(prompt),
    cache_creation_input_tokens: reply.usage?.cache_creation_input_tokens ?? 0,
    cache_read_input_tokens: reply.usage?.cache_read_input_tokens ?? 0,
    output_tokens: reply.usage?.output_tokens ?? estimateTokens([reply.text, reply.thinking, reply.toolCalls]),
  };
}

/** For APIs that count what is cached as part of the prompt. */
export function allInput({ input_tokens: plain, cache_creation_input_tokens: written, cache_read_input_tokens: read }: ReplyUsage): number {
  return plain + written + read;
}

/** `toolu_` and the like, fresh each time: ids must be unique in a conversation, over restarts too. */
export function freshId(prefix: string): string {
  return `${prefix}_01${randomBytes(11).toString('hex')}`;
}

/** Four characters to a token, as good as any. */
export function estimateTokens(value: unknown): number {
  return Math.max(1, Math.ceil((JSON.stringify(value) ?? '').length / 4));
}
