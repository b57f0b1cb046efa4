/** Tools that the conversation performs itself: it asks a person, waits, delegates, sets the task, compacts. */
import { z } from 'zod';
import { defineTool, taskSchema } from '../define-tool.js';
import { LIMITS } from '../../conversation/protocol/contract.js';
import { truncate } from '../../records/text.js';

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
  workflowAction: ({ options }, { approvalExpiryMs }) => ({ kind: 'ask-person', expiresMs: approvalExpiryMs, ...(options && { options }) }),
  run: () => ({ ok: false, error: 'no person could be reached' }),
});

const MAX_DAYS = 365;
const DAY_SECONDS = 24 * 60 * 60;

export const waitUntil = defineTool({
  name: 'wait_until',
  description:
    'Waits: until a time, or for some seconds. It survives restarts of everything, and the person can interrupt it. ' +
    'Use it to look again later, not to pass the time.',
  input: z
    .object({
      until: z.iso.datetime({ offset: true }).optional().describe('ISO 8601 with a zone, such as "2026-11-21T15:45:00Z".'),
      seconds: z
        .number()
        .min(0)
        .max(MAX_DAYS * DAY_SECONDS)
        .optional(),
    })
    .refine(({ until, seconds }) => (until === undefined) !== (seconds === undefined), 'expected one of until and seconds')
    .refine(
      ({ until }) => until === undefined || Date.parse(until) < Date.now() + MAX_DAYS * DAY_SECONDS * 1000,
      `until is more than ${MAX_DAYS} days away`,
    ),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  workflowAction: ({ until, seconds = 0 }) =>
    until === undefined ? { kind: 'wait-for', ms: seconds * 1000 } : { kind: 'wait-until', until: Date.parse(until) },
  run: () => ({ ok: false, error: 'the conversation could not wait' }),
});

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
  workflowAction({ task, agent: wanted, title, maxCostUsd }, { agent, delegation: { agents, maxDepth, maxChildren, maxTotal, memory } }) {
    if (wanted !== undefined && wanted !== agent && !agents.includes(wanted)) return undefined;
    return {
      kind: 'delegate',
      agent: wanted ?? agent,
      task,
      title: truncate(title ?? task.replace(/\s+/g, ' '), 80),
      maxDepth,
      maxChildren,
      maxTotal,
      ...(memory && { memory }),
      ...(maxCostUsd === undefined ? {} : { budget: { maxCostUsd } }),
    };
  },
  run: ({ agent }) => ({
    ok: false,
    error: `no sub-agent of the name "${agent ?? ''}" may be called here (delegation.agents in agent.json)`,
  }),
});

const { goal, openTasks } = taskSchema.shape;

export const setTask = defineTool({
  name: 'set_task',
  description:
    'Pins what this conversation is for, and what is still open: both stay word for word when older turns become a summary. ' +
    'Each call replaces the open tasks that were pinned before, so say all that still holds.',
  input: z.object({
    goal: goal.optional().describe('Default: as it was before.'),
    openTasks: openTasks.optional().describe('What is still to be done, one task each. Default: nothing.'),
  }),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  run: ({ goal: newGoal = '', openTasks: open = [] }) => {
    const pinnedGoal = newGoal.trim();
    const lines = [
      'Pinned now.',
      `Goal: ${pinnedGoal === '' ? 'as before' : pinnedGoal}`,
      ...(open.length === 0 ? ['Open tasks: none'] : ['Open tasks:', ...open.map((task) => `- ${task}`)]),
    ];
    return { ok: true, content: lines.join('\n'), task: { goal: pinnedGoal, openTasks: open } };
  },
});

export const compactContext = defineTool({
  name: 'compact_context',
  description:
    'Makes memory of the older turns of this conversation, so that there is room for what comes. Use it at the end of a task, when you ' +
    'were told that the context fills; never in the middle of one.',
  input: z.object({}),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  workflowAction: () => ({ kind: 'compact' }),
  run: () => ({ ok: false, error: 'the conversation could not be compacted' }),
});
