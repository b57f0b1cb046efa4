/** What becomes of the events of a stream. Each provider assembles an answer differently; this is what they share. */
import type { AssistantBlock, ModelStop } from '../records/message.js';
import type { ModelResponse, ModelUsage } from './model.js';
import { brokenStream } from './tool-input.js';
import { toWellFormed } from './well-formed.js';

export interface Answer<Event> {
  /** Takes the next event. Throws ModelFailure `broken-stream` on one that cannot follow, Refusal on one that says no. */
  take(event: Event): void;
  /** The stream has ended by itself, as it should. */
  end(): void;
  /** Whether the answer is complete. */
  isWhole(): boolean;
  /** Throws ModelFailure `broken-stream` unless it is whole. */
  response(): ModelResponse;
  /** What can be kept of an answer that was stopped: whole blocks, no tool calls. */
  soFar(): { readonly blocks: readonly AssistantBlock[]; readonly usage: ModelUsage };
}

export const NO_USAGE: ModelUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0 };

/**
 * An unknown stop reason ends an answer that has content, and breaks an empty one.
 * A stop for tools without one is an end.
 */
export function settledStop(known: ModelStop | undefined, word: string, blocks: readonly AssistantBlock[]): ModelStop {
  const stop = known ?? (hasText(blocks) ? 'end' : undefined);
  if (stop === undefined) throw brokenStream(`an unknown stop reason, ${JSON.stringify(toWellFormed(word))}, and no text`);
  return stop === 'tool-calls' && !blocks.some((block) => block.kind === 'tool-call') ? 'end' : stop;
}

export function hasText(blocks: readonly AssistantBlock[]): boolean {
  return blocks.some((block) => block.kind === 'text' && block.text !== '');
}
