/** What a person reads of what a model said: its texts, one after the other. */
import { isBodyRef, type AssistantBlock, type BodyRef } from './message.js';

export interface Answer {
  readonly text: string;
  /** Where the whole of it lies, when `text` is only its beginning. */
  readonly textRef?: BodyRef;
}

/** Undefined when nothing was said. */
export function answerIn(blocks: readonly AssistantBlock[]): Answer | undefined {
  const texts = blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : []));
  if (texts.length === 0) return undefined;
  const text = texts.map((part) => (typeof part === 'string' ? part : `${part.preview}…`)).join('\n\n');
  const textRef = texts.find(isBodyRef);
  return textRef ? { text, textRef } : { text };
}
