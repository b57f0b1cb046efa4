/**
 * The texts of the last turns of this run, for the handlers that wait for them. Not state: they are in history already, and
 * a replay gathers them again. After a hand-over they are read from the store.
 */
import { answerIn, type Answer } from '../records/message.js';
import type { ConversationEvent } from '../conversation/event.js';

export interface Answers {
  note(event: ConversationEvent): void;
  /** The last answer of the turn; undefined when this run does not know it. */
  of(turn: string): Answer | undefined;
}

const MAX_TURNS = 50;
const MAX_CHARACTERS = 256 * 1024;

export function createAnswers(): Answers {
  const answers = new Map<string, Answer>();
  return {
    note(event) {
      if (event.kind !== 'effect-completed' || event.effect !== 'model-step' || event.output.kind !== 'answered') return;
      const { turn, blocks } = event.output.answer;
      const latest = answerIn(blocks);
      if (!latest) return;
      answers.delete(turn);
      answers.set(turn, latest);
      let characters = 0;
      for (const [index, [id, answer]] of [...answers].reverse().entries()) {
        characters += answer.text.length;
        if (index > 0 && (index >= MAX_TURNS || characters > MAX_CHARACTERS)) answers.delete(id);
      }
    },
    of: (turn) => answers.get(turn),
  };
}
