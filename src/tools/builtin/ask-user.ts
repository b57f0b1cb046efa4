import { z } from 'zod';
import { defineTool } from '../define-tool.js';

export const askUser = defineTool({
  name: 'ask_user',
  description:
    'Asks the person a question and waits for the answer, for days if need be. Use it when you cannot go on without a decision that ' +
    'is theirs; otherwise go on, and say what you have assumed.',
  input: z.object({
    question: z.string().min(1).max(4_000).describe('The question, with all that is needed to answer it.'),
    options: z
      .array(z.string().min(1).max(200))
      .min(2)
      .max(10)
      .optional()
      .describe('Answers to choose from; the person may say something else.'),
  }),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  instead: (_, { approvalExpiryMs }) => ({ kind: 'ask-person', expiresMs: approvalExpiryMs }),
  run: () => ({ ok: false, error: 'nobody could be asked' }),
});
