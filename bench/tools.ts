import { z } from 'zod';
import { defineTool } from '../src/tools/define-tool.js';
import { FINDING } from './bodies.js';

const input = z.object({ question: z.string() });

/** Runs as a local activity. */
export const quick = defineTool({
  name: 'quick',
  description: 'Finds something at once.',
  input,
  policy: { repeatable: true, local: true, timeoutMs: 1_000 },
  run: () => FINDING,
});

export const ordinary = defineTool({
  name: 'ordinary',
  description: 'Finds something.',
  input,
  policy: { repeatable: true, local: false, timeoutMs: 60_000 },
  run: () => FINDING,
});
