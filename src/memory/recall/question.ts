/** How a question to past messages is put: the same for agents, for MCP clients and over HTTP. */
import { z } from 'zod';
import { parseMoment } from '../../records/time.js';
import { KINDS, type Kind } from '../../search/passage-table.js';
import { DEFAULT_HITS, MAX_HITS, type RecallQuery } from './recall.js';
import { MAX_AROUND } from './recalled.js';

/** UTF-16 units. Of a long question the first BOUNDS.questionCharacters are read. */
export const MAX_QUESTION = 100_000;
const MAX_ADDRESS = 120;

/** Notices are not indexed. */
export const SEARCHED_KINDS = KINDS.filter((kind): kind is Exclude<Kind, 'notice'> => kind !== 'notice');

const moment = z
  .string()
  .max(40)
  .refine((text) => parseMoment(text) !== undefined, 'expected an ISO date or time, such as 2026-02-27 or 2026-02-27T14:30Z');

export const questionShape = {
  question: z
    .string()
    .min(1)
    .max(MAX_QUESTION)
    .describe('The whole question, in the words of the asker; names and times ("last May", "2026-02") count. Not a pattern.'),
  limit: z.int().min(1).max(MAX_HITS).default(DEFAULT_HITS).describe('How many to answer at most.'),
  after: moment.optional().describe('Only messages of this ISO date or time (UTC) and later.'),
  before: moment.optional().describe('Only messages before this ISO time (UTC), or up to the end of this ISO date.'),
  conversation: z.string().min(1).max(200).optional().describe('One conversation alone: its id, or the first part of an address in it.'),
  kinds: z
    .array(z.enum(SEARCHED_KINDS))
    .min(1)
    .max(SEARCHED_KINDS.length)
    .optional()
    .describe('Only these: messages of user or assistant, results of tools, HISTORY, lines of MEMORY.md, facts, episodes, items.'),
};

export const openShape = {
  at: z.string().min(1).max(MAX_ADDRESS).describe('An address, as search_memory gives it.'),
  around: z.int().min(0).max(MAX_AROUND).default(3).describe('How many messages before it and after it.'),
};

export interface RecallQuestion {
  readonly question: string;
  readonly limit?: number | undefined;
  readonly after?: string | undefined;
  readonly before?: string | undefined;
  readonly conversation?: string | undefined;
  readonly kinds?: readonly Kind[] | undefined;
}

/** A day as `before` is in it. */
export function toQuery({ after, before, ...question }: RecallQuestion, now: Date): RecallQuery {
  return {
    ...question,
    after: after === undefined ? undefined : parseMoment(after),
    before: before === undefined ? undefined : parseMoment(before, 'end'),
    now,
  };
}
