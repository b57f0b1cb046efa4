import { z } from 'zod';
import { defineTool } from '../src/tools/define-tool.js';
import { FINDING } from './bodies.js';

const input = z.object({ question: z.string() });

let runs = 0;

/** How often any of them has run in this process. */
export function toolRuns(): number {
  return runs;
}

function find(): string {
  runs += 1;
  return FINDING;
}

/** Runs inside the next model step: its turn has two activities. */
export const quick = defineTool({
  name: 'quick',
  description: 'Finds something at once.',
  input,
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  run: find,
});

export const ordinary = defineTool({
  name: 'ordinary',
  description: 'Finds something.',
  input,
  policy: { repeatable: true, quick: false, timeoutMs: 60_000 },
  run: find,
});
