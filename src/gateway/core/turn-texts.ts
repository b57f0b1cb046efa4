/** A turn as texts of the model: what stands of it while it streams, and what it was when it has ended. */
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { answerText, type Entry } from '../../records/message.js';
import { createAnswerParts, type AnswerEvent } from './answer-parts.js';
import type { Conversations } from './conversations.js';
import type { Followed } from './follow-turn.js';

export type TurnPiece =
  | Exclude<AnswerEvent, { readonly kind: 'finished' }>
  /** Some of its live events were lost: only the end is sure from here on. */
  | { readonly kind: 'resync' }
  /** The last: each text that the model said in it, in order; the last one is the answer. */
  | { readonly kind: 'whole'; readonly result: TurnResult; readonly texts: readonly string[] };

export type Whole = Extract<TurnPiece, { readonly kind: 'whole' }>;

/** The texts at the end come from the result and the store, whatever the live events had. */
export async function* turnPieces(core: Conversations, conversation: string, followed: AsyncIterable<Followed>): AsyncGenerator<TurnPiece> {
  const parts = createAnswerParts();
  let calls = 0;
  let missed = false;
  for await (const { event } of followed) {
    if (event.kind === 'turn-finished') {
      const { result } = event;
      yield { kind: 'whole', result, texts: await textsAtEnd(core, conversation, result, calls > 1 || missed) };
      return;
    }
    if (event.kind === 'resync') {
      missed = true;
      yield event;
    }
    for (const piece of parts.take(event)) {
      if (piece.kind === 'finished') continue;
      if (piece.kind === 'call') calls += 1;
      yield piece;
    }
  }
}

/** The same of a turn that has ended. */
export async function textsAtEnd(
  { client }: Pick<Conversations, 'client'>,
  conversation: string,
  result: TurnResult,
  isLonger = result.toolCalls > 0,
): Promise<readonly string[]> {
  const alone = result.text === '' ? [] : [result.text];
  if ((!isLonger && result.toolCalls === 0) || result.turnId === null) return alone;
  const texts = textsOf(await client.history(conversation), result.turnId);
  return texts.length === 0 ? alone : texts;
}

export function textsOf(entries: readonly Entry[], turn: string): readonly string[] {
  return entries.flatMap((entry) => {
    const text = entry.turn === turn ? answerText(entry.message) : '';
    return text === '' ? [] : [text];
  });
}

/** As protocols have it whose answer is one text. */
export function joined(texts: readonly string[]): string {
  return texts.join('\n\n');
}
