/** The tools that every agent has unless its `agent.json` says otherwise. */
import type { KnownSecrets } from '../../platform/known-secrets.js';
import type { Tool } from '../tool.js';
import { createEditFile, editFile } from './files/edit-file.js';
import { createFetchUrl, fetchUrl } from './web/fetch-url.js';
import { listFiles } from './files/list-files.js';
import { readFile } from './files/read-file.js';
import { createRunCommand, runCommand } from './command/run-command.js';
import { searchFiles } from './files/search-files.js';
import { openMemory, searchHistory, searchMemory } from './memory/search-memory.js';
import { readEpisode } from './memory/read-episode.js';
import { storeInMemory, retrieveFromMemory, queryMemory } from './memory/memory-channel.js';
import { createWriteFile, writeFile } from './files/write-file.js';
import { z } from 'zod';
import { defineTool, taskSchema } from '../define-tool.js';
import { LIMITS } from '../../conversation/protocol/contract.js';
import { beginningOf } from '../../records/text.js';

/** Tools that the conversation performs itself: it asks a person, waits, delegates, sets the task, compacts. */

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
  run: () => ({ ok: false, error: 'nobody could be asked' }),
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
      title: beginningOf(title ?? task.replace(/\s+/g, ' '), 80),
      maxDepth,
      maxChildren,
      maxTotal,
      ...(memory && { memory }),
      ...(maxCostUsd === undefined ? {} : { budget: { maxCostUsd } }),
    };
  },
  run: ({ agent }) => ({
    ok: false,
    error: `no sub-agent of the name "${agent ?? ''}" may be asked here (delegation.agents in agent.json)`,
  }),
});

const { goal, openTasks } = taskSchema.shape;

export const setTask = defineTool({
  name: 'set_task',
  description:
    'Pins what this conversation is for, and what is still open: both stay word for word when older turns become a summary. ' +
    'Each call replaces the open tasks that were pinned before, so say all that still holds.',
  input: z.object({
    goal: goal.optional().describe("Default: as it was pinned before, at first the session's first message."),
    openTasks: openTasks.optional().describe('What is still to be done, one task each. Default: nothing.'),
  }),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  run: ({ goal: said = '', openTasks: open = [] }) => {
    const pinnedGoal = said.trim();
    const lines = [
      'Pinned now.',
      `Goal: ${pinnedGoal === '' ? "as before; at first the session's first message" : pinnedGoal}`,
      ...(open.length === 0 ? ['Open tasks: none'] : ['Open tasks:', ...open.map((task) => `- ${task}`)]),
    ];
    return { ok: true, content: lines.join('\n'), task: { goal: pinnedGoal, openTasks: open } };
  },
});

const compactContext = defineTool({
  name: 'compact_context',
  description:
    'Makes memory of the older turns of this conversation, so that there is room for what comes. Use it at the end of a task, when you ' +
    'were told that the context fills; never in the middle of one.',
  input: z.object({}),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  workflowAction: () => ({ kind: 'compact' }),
  run: () => ({ ok: false, error: 'the conversation could not be compacted' }),
});

export const getTime = defineTool({
  name: 'get_time',
  description: 'Tells the current date and time in ISO 8601: in UTC, or in the time zone given, with its offset.',
  input: z.object({
    timeZone: z.string().min(1).max(100).optional().describe('IANA name, such as "Europe/Berlin". Default: UTC.'),
  }),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  run: ({ timeZone }, { now }) => (timeZone === undefined ? now().toISOString() : inZone(now(), timeZone)),
});

/** `2026-11-21T15:45:00+01:00` */
function inZone(time: Date, timeZone: string): string {
  const parts = new Map(
    zoneFormat(timeZone)
      .formatToParts(time)
      .map(({ type, value }) => [type, value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.get(type) ?? '';
  // `GMT+01:00`, and plain `GMT` where the offset is nothing.
  const offset = part('timeZoneName').replace('GMT', '') || '+00:00';
  return `${part('year')}-${part('month')}-${part('day')}T${part('hour')}:${part('minute')}:${part('second')}${offset}`;
}

function zoneFormat(timeZone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'iso8601',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      timeZoneName: 'longOffset',
    });
  } catch (cause) {
    throw new Error(`there is no time zone ${JSON.stringify(timeZone)}; use an IANA name such as "Europe/Berlin" or "UTC"`, { cause });
  }
}

export const builtinTools: Tool[] = [
  askUser,
  compactContext,
  delegate,
  editFile,
  fetchUrl,
  getTime,
  listFiles,
  openMemory,
  queryMemory,
  readEpisode,
  readFile,
  retrieveFromMemory,
  runCommand,
  searchFiles,
  searchHistory,
  searchMemory,
  setTask,
  storeInMemory,
  waitUntil,
  writeFile,
];

export interface BuiltinSettings {
  /** `host:port` that may be fetched from although it is not public. */
  readonly fetchAllow: readonly string[];
  readonly commandEnvironment: Readonly<Record<string, string>>;
  /** Absolute paths of settings and memory, which file tools do not write. */
  readonly protectedPlaces: readonly string[];
  readonly secrets?: KnownSecrets;
}

/** Those of `builtinTools`, the ones with settings in a worker's own. */
export function builtinToolsWith({ fetchAllow, commandEnvironment, protectedPlaces, secrets }: BuiltinSettings): Tool[] {
  const own = [
    createEditFile({ protectedPlaces }),
    createFetchUrl({ allow: fetchAllow, ...(secrets && { secrets }) }),
    createRunCommand({ environment: commandEnvironment }),
    createWriteFile({ protectedPlaces }),
  ];
  return builtinTools.map((tool) => own.find(({ name }) => name === tool.name) ?? tool);
}
