/**
 * First words of a turn's message and of its answer, for Temporal's page. History has both, so they are derived from it here; a worker brings
 * only what it would show otherwise: what an input processor has made, and what is left without the secrets that it knows.
 */
import { firstWords } from '../../records/first-words.js';
import type { ModelAnswer, ModelStepInput, ModelStepResult } from './model-step-effects.js';
import type { ConversationState } from '../state.js';

export const MAX_ANSWER_WORDS = 120;

/** Of a message. A replay pays for it too: little of the text is read. */
export function askedWords(text = ''): string | undefined {
  return firstWords(text, { longest: 60, read: 400 });
}

export function answeredWords(blocks: ModelAnswer['blocks']): string | undefined {
  return firstWords(spokenIn(blocks), { longest: MAX_ANSWER_WORDS, read: 400 });
}

export function spokenIn(blocks: ModelAnswer['blocks']): string {
  return blocks
    .flatMap((block) => (block.kind === 'text' ? [typeof block.text === 'string' ? block.text : block.text.preview] : []))
    .join(' ');
}

/** What history shows by itself is no part of a result: only what differs from it is. A new question has no answer yet. */
export function acceptWords(state: ConversationState, { turn, write }: ModelStepInput, output: ModelStepResult): ConversationState {
  const isShown = state.settings?.showsWords === true;
  const { asked, answered } = output.words ?? {};
  const message = write.messages.find((one) => one.turn === turn);
  const question = asked === undefined && isShown && message ? askedWords(message.text) : asked;
  const answer = answered === undefined && isShown && output.kind === 'answered' ? answeredWords(output.answer.blocks) : answered;
  const { words, ...silent } = state;
  const shown = {
    ...(message ? question && { asked: question } : words),
    ...(answer && { answered: answer }),
  };
  return Object.keys(shown).length === 0 ? silent : { ...state, words: shown };
}
