import { z } from 'zod';
import { DEFAULT_LIMIT, MOST_FOUND, splitAtCommas, type MemoryCriteria } from '../../../records/memory/agent-memory.js';
import { parseMoment } from '../../../records/memory/moment.js';
import { defineTool } from '../../define-tool.js';

const moment = z
  .string()
  .max(40)
  .refine((text) => parseMoment(text) !== undefined, 'expected an ISO date or time, such as 2026-02-27 or 2026-02-27T14:30Z');

const LAST_MOMENT_MS = 8.64e15;

export const queryMemory = defineTool({
  name: 'query_memory',
  description:
    'Lists what lies in the memory of this conversation, newest first: id, type, source, timestamp, size and tags, never the contents.',
  input: z.object({
    type: z.string().max(100).optional().describe('action_result, web_content, database_result or custom.'),
    source: z.string().max(200).optional().describe('Name of the tool whose result it is; user for what store_in_memory stored.'),
    tags: z.string().max(1_000).optional().describe('Only items that have all of these, with commas between them.'),
    since: moment.optional().describe('Only items of this ISO date or time (UTC) and later.'),
    until: moment.optional().describe('Only items up to this ISO time (UTC), or to the end of this ISO date.'),
    limit: z.int().min(1).max(MOST_FOUND).default(DEFAULT_LIMIT),
  }),
  policy: { repeatable: true, quick: true, timeoutMs: 1_000 },
  async run({ type, source, tags, since, until, limit }, { memory }) {
    const timeRange = rangeOf(since, until);
    const items = await memory.query({
      limit,
      ...(type !== undefined && { type }),
      ...(source !== undefined && { source }),
      tags: splitAtCommas(tags),
      ...(timeRange && { timeRange }),
    });
    const told = items.map(({ id, type: kind, metadata }) => ({
      id,
      type: kind,
      source: metadata.source,
      timestamp: metadata.timestamp,
      size: metadata.size,
      tags: metadata.tags,
    }));
    return JSON.stringify(told, null, 2);
  },
});

function rangeOf(since: string | undefined, until: string | undefined): MemoryCriteria['timeRange'] {
  if (since === undefined && until === undefined) return undefined;
  const start = since === undefined ? 0 : (parseMoment(since) ?? 0) * 1000;
  const end = until === undefined ? LAST_MOMENT_MS : (parseMoment(until, 'end') ?? 0) * 1000;
  return { start: new Date(start), end: new Date(end) };
}
