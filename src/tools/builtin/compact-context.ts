import { z } from 'zod';
import { defineTool } from '../define-tool.js';

export const compactContext = defineTool({
  name: 'compact_context',
  description:
    'Makes memory of the older turns of this conversation, so that there is room for what comes. Use it at the end of a task, when you ' +
    'were told that the context fills; never in the middle of one.',
  input: z.object({}),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  instead: () => ({ kind: 'compact' }),
  run: () => ({ ok: false, error: 'the conversation could not be compacted' }),
});
