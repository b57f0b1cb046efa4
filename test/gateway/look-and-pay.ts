/** The two tools of the clients' tests: one that is free, with results of any length, and one that a person has to allow. */
import { z } from 'zod';
import { defineTool } from '../../src/tools/define-tool.js';
import type { Tool } from '../../src/tools/tool.js';

export const LONG = 'word '.repeat(1_000);

/** `paid`: the inputs with which `pay` was run. */
export function createLookAndPay(): { readonly tools: readonly Tool[]; readonly paid: readonly unknown[] } {
  const paid: unknown[] = [];
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({ at: z.string() }),
    policy: { repeatable: true, approval: 'allow' },
    run: ({ at }) => (at === 'nothing' ? { ok: false, error: 'there is nothing' } : `${at} ${LONG}`),
  });
  const pay = defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ to: z.string(), note: z.string().optional() }),
    policy: { approval: 'ask' },
    run: (input) => {
      paid.push(input);
      return `paid ${input.to}`;
    },
  });
  return { tools: [look, pay], paid };
}
