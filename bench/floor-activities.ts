import { ANSWER, FINDING } from './bodies.js';

export interface FloorActivities {
  /** A model call that asks for a tool. */
  ask(said: string): Promise<string>;
  look(question: string): Promise<string>;
  answer(said: string): Promise<string>;
  /** A tool and the model call that reads what it found, in one. */
  lookAndAnswer(question: string): Promise<{ readonly found: string; readonly text: string }>;
}

export const floorActivities: FloorActivities = {
  ask: async (said) => `look up ${said}`,
  look: async () => FINDING,
  answer: async () => ANSWER,
  lookAndAnswer: async () => ({ found: FINDING, text: ANSWER }),
};
