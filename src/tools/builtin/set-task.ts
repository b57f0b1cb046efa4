import { z } from 'zod';
import { taskSchema } from '../beside-the-text.js';
import { defineTool } from '../define-tool.js';

const { goal, openTasks } = taskSchema.shape;

export const setTask = defineTool({
  name: 'set_task',
  description:
    'Pins what this conversation is for, and what is still open: both stay word for word when older turns become a summary. ' +
    'Each call replaces what was pinned before, so say all that still holds.',
  input: z.object({
    goal: goal.optional().describe("Default: the session's first message."),
    openTasks: openTasks.optional().describe('What is still to be done, one task each. Default: nothing.'),
  }),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  run: ({ goal: said = '', openTasks: open = [] }) => {
    const pinnedGoal = said.trim();
    const lines = [
      'Pinned now.',
      `Goal: ${pinnedGoal === '' ? "the session's first message" : pinnedGoal}`,
      ...(open.length === 0 ? ['Open tasks: none'] : ['Open tasks:', ...open.map((task) => `- ${task}`)]),
    ];
    return { ok: true, content: lines.join('\n'), task: { goal: pinnedGoal, openTasks: open } };
  },
});
