import { z } from 'zod';
import { LIMITS } from '../../conversation/protocol/contract.js';
import { beginningOf } from '../../records/text.js';
import { defineTool } from '../define-tool.js';

export const delegate = defineTool({
  name: 'delegate',
  description:
    'Gives a task to a sub-agent: a conversation of its own, which works it out and reports its final answer here. Several in one ' +
    'answer work side by side. It sees nothing of this conversation, so say all that it needs.',
  input: z.object({
    task: z
      .string()
      .min(1)
      .refine(
        (text) => Buffer.byteLength(text) <= LIMITS.taskBytes,
        `longer than ${LIMITS.taskBytes} bytes: put the rest into a file and name it`,
      )
      .describe('What to do, what to report, and everything that is needed for it.'),
    agent: z.string().min(1).max(64).optional().describe('Which agent; the one you are by default.'),
    title: z.string().min(1).max(100).optional().describe('A few words for people who watch.'),
    maxCostUsd: z.number().positive().optional().describe('What it may cost at most, in US dollars.'),
  }),
  policy: { repeatable: false, timeoutMs: 60_000 },
  instead({ task, agent: wanted, title, maxCostUsd }, { agent, delegation: { agents, maxDepth, maxChildren, memory } }) {
    if (wanted !== undefined && wanted !== agent && !agents.includes(wanted)) return undefined;
    return {
      kind: 'delegate',
      agent: wanted ?? agent,
      task,
      title: beginningOf(title ?? task.replace(/\s+/g, ' '), 80),
      maxDepth,
      maxChildren,
      ...(memory && { memory }),
      ...(maxCostUsd === undefined ? {} : { budget: { maxCostUsd } }),
    };
  },
  run: ({ agent }) => ({
    ok: false,
    error: `no sub-agent of the name "${agent ?? ''}" may be asked here (delegation.agents in agent.json)`,
  }),
});
