/** What happened in a conversation, and why: turns, their timelines, the context, and every state that it was in. */
import { z } from '@hono/zod-openapi';
import { LANES } from '../../insight/timeline/shape.js';
import type { GatewayApp } from '../context.js';
import { add } from './operation.js';
import { contextIndex, control, instant, listed, openApproval, queuedEvent, status, thresholds, usage } from './answers.js';
import { onConversation, onTurn, orNull, turnId, whole } from './schemas.js';

const tag = 'insight';
const texts = z.array(z.string());

const turn = z
  .object({
    turn: z.string(),
    startedAt: z.string(),
    durationMs: z.number().openapi({ description: 'until the latest thing recorded' }),
    messages: z.int(),
    toolCalls: z.int(),
    question: z.string(),
    problem: z.string().optional().openapi({ description: 'why it has no whole answer' }),
  })
  .openapi('Turn');

const bar = z
  .object({
    id: z.string(),
    lane: z.enum(LANES),
    label: z.string(),
    detail: z.string(),
    from: instant,
    to: instant.nullable().openapi({ description: 'null: it goes on' }),
    started: instant.nullable().openapi({ description: 'where the attempt began that counts: what is before it is waiting, or lost' }),
    attempt: z.int(),
    worker: z.string().nullable(),
    outcome: z.enum(['ok', 'failed', 'timed-out', 'canceled', 'denied', 'expired', 'running']),
    failure: z.string().nullable(),
    usage: orNull(usage),
    model: z.string().nullable(),
    callId: z.string().nullable(),
    conversation: z.string().nullable().openapi({ description: 'the sub-agent' }),
    event: z.int().openapi({ description: "of Temporal's history, in its run" }),
    endEvent: z.int().nullable(),
    run: z.string(),
    link: z.string().nullable().openapi({ description: "its page in Temporal's UI, where that is known" }),
  })
  .openapi('TimelineBar');

const timeline = z
  .object({
    turn: z.string(),
    from: instant.nullable(),
    to: instant.nullable(),
    bars: z.array(bar),
    marks: z.array(
      z.object({
        kind: z.enum(['worker-died', 'worker-changed', 'handed-over', 'message', 'decided', 'interrupted']),
        at: instant,
        words: z.string(),
        event: z.int(),
        run: z.string(),
        link: z.string().nullable(),
      }),
    ),
    usage: orNull(usage),
    workers: z.array(z.string()),
    complete: z.boolean().openapi({ description: 'false where a part has passed its retention' }),
  })
  .openapi('Timeline');

/** All that a list of them names, and the tools. */
const shownChunk = z
  .string()
  .regex(/^(?:system|tools|memory|chunk_\d{1,15})$/)
  .openapi({ example: 'chunk_12' });
const chunk = z
  .object({
    id: z.string(),
    kind: z.enum(['SYSTEM', 'MEMORY', 'WORKING_FLOW']),
    tokens: z.int(),
    turn: z.string(),
    role: z.string(),
    words: z.string(),
    drops: z.boolean().openapi({ description: 'the next truncation takes it' }),
    slot: z.int().optional(),
  })
  .openapi('Chunk');

const shortened = z.array(z.object({ turn: z.string(), kind: z.enum(['message', 'result']), item: z.string() }));
const tokens = z.object({ before: z.number(), after: z.number() });
const contextView = z
  .object({
    index: contextIndex,
    thresholds,
    chunks: z.array(chunk),
    earlier: z
      .array(z.object({ chunk: z.string(), turns: z.array(z.string()), messages: z.int(), tokens: z.number(), drops: z.boolean() }))
      .optional()
      .openapi({ description: 'with `last`: the messages before those of `chunks`, several as one; `turns`: of the first and the last' }),
    turns: z
      .object({
        whole: texts,
        inPart: texts,
        shortened,
        summarized: z.array(z.object({ episode: z.string(), turns: texts })),
        leftOut: texts,
        earlierSessions: texts,
      })
      .openapi('KnownTurns', { description: 'which turns the next model call sees whole, shortened, as a summary, or not at all' }),
  })
  .openapi('ContextView');

const cause = z
  .object({
    kind: z.enum(['compacted', 'truncated', 'trimmed', 'session-ended', 'rewound', 'returned', 'other']),
    at: instant,
    epoch: z.int(),
    session: z.int(),
    slots: z.array(z.int()),
    turns: texts.openapi({ description: 'all that left the prompt with it' }),
    tokens: tokens.nullable(),
    model: z.string().nullable(),
    method: z.string().nullable(),
    inputsHash: z.string().nullable(),
    failure: z.string().nullable(),
    episode: z.string().nullable(),
    summary: z.string().nullable(),
    consolidation: z.string().nullable(),
    from: z.enum(['history', 'store']),
  })
  .openapi('WhyCause');
const why = z
  .object({
    id: z.string(),
    turn: z.string(),
    hasEnded: z.boolean(),
    branch: z.int().optional(),
    entries: z.int(),
    inPrompt: z.int(),
    shortened,
    causes: z.array(cause),
    complete: z.boolean(),
    problems: z.array(z.string()),
  })
  .openapi('Why');

const bases = z.object({ before: z.string().nullable(), after: z.string().nullable() });
const change = z
  .object({
    number: z.int(),
    kind: z.enum(['compacted', 'cited', 'truncated', 'trimmed', 'undone']),
    at: instant,
    epoch: z.int(),
    session: z.int(),
    cause: orNull(z.enum(['asked', 'context-full', 'ratio', 'budget', 'hard'])),
    method: z.string().nullable(),
    model: z.string().nullable(),
    usage: orNull(usage),
    episode: z.string().nullable(),
    turns: texts,
    slots: z.array(z.int()),
    tokens,
    messages: z.object({ before: z.int(), after: z.int() }),
    base: bases.openapi({ description: 'references to what stood before the messages' }),
    text: z.string().nullable(),
    beforeText: z.string().nullable(),
    afterText: z.string().nullable(),
    undoneBy: z.int().nullable(),
  })
  .openapi('ContextChange');

const momentFields = { position: z.int(), event: z.string().nullable(), words: z.string(), at: instant, run: z.int() };
const moment = z.object(momentFields).openapi('Moment');
const scene = z
  .object({
    id: z.string(),
    status,
    queue: z.array(queuedEvent),
    index: contextIndex,
    control: orNull(control),
    approvals: z.array(openApproval),
    chunks: z.array(chunk),
  })
  .openapi('Scene');
const momentPage = z
  .object({
    last: z.int(),
    moments: z.array(moment),
    turns: z.array(z.object({ turn: z.string(), position: z.int() })),
    complete: z.boolean(),
    problems: z.array(z.string()),
  })
  .openapi('Moments');
const momentView = z
  .object({
    ...momentFields,
    last: z.int(),
    before: orNull(scene),
    after: scene,
    changes: z.array(z.object({ path: z.string(), before: z.string().nullable(), after: z.string().nullable() })),
    more: z.boolean(),
  })
  .openapi('MomentView');

/** The conversation at the root has none of the listed fields. */
const node = z.object(
  listed
    .partial({ scope: true, tenant: true, publicId: true, status: true, model: true, turns: true, costUsd: true })
    .omit({ isCurrent: true, answeredAt: true, phase: true, lastError: true }).shape,
);

export function addInsight(app: GatewayApp): void {
  add(app, {
    name: 'listTurns',
    method: 'get',
    path: '/v1/conversations/{id}/turns',
    tag,
    summary: 'Its turns, the latest page first',
    params: onConversation,
    query: z.object({ limit: whole(1, 500).default(50).openapi({ default: 50 }), before: turnId.optional() }),
    answer: z.object({ turns: z.array(turn), more: z.boolean() }),
    act: ({ client }, { params: { id }, query: { limit, before } }) => client.turns(id, { limit, ...(before !== undefined && { before }) }),
  });
  add(app, {
    name: 'getTimeline',
    method: 'get',
    path: '/v1/conversations/{id}/turns/{turn}/timeline',
    tag,
    summary: 'What happened in a turn and when, attempt by attempt',
    description:
      "From Temporal's history: model calls, tools, sub-agents, waiting for people and for another try, memory, the store and healing; deaths " +
      'and changes of workers as marks. A part that has passed its retention is not in it.',
    params: onTurn,
    answer: timeline,
    act: async ({ client }, { params: { id, turn: wanted }, context }) => {
      const found = await client.timeline(id, wanted);
      const link = await context.get('temporalLink')(id);
      const linked = <T extends { readonly run: string; readonly event: number }>(one: T) => ({
        ...one,
        link: link?.(one.run, one.event) ?? null,
      });
      return { ...found, bars: found.bars.map(linked), marks: found.marks.map(linked) };
    },
  });
  add(app, {
    name: 'explainTurn',
    method: 'get',
    path: '/v1/conversations/{id}/turns/{turn}/why',
    tag,
    summary: 'Why a turn is no longer in the prompt',
    params: onTurn,
    answer: why,
    act: ({ client }, { params: { id, turn: wanted } }) => client.why(id, wanted),
  });
  add(app, {
    name: 'listChunks',
    method: 'get',
    path: '/v1/conversations/{id}/context/chunks',
    tag,
    summary: 'What the next model call sees, chunk by chunk',
    params: onConversation,
    query: z.object({ last: whole(1, 1e6).optional().openapi({ description: 'so many messages one by one, the latest; default: all' }) }),
    answer: contextView,
    act: ({ client }, { params: { id }, query: { last } }) => client.contextView(id, last === undefined ? {} : { last }),
  });
  add(app, {
    name: 'getChunk',
    method: 'get',
    path: '/v1/conversations/{id}/context/chunks/{chunk}',
    tag,
    summary: 'The text of one chunk, in the prompt or out of it',
    description: 'At most 64 Ki characters from `offset` on. `system` and `tools` begin the prompt, `memory` stands before the messages.',
    params: onConversation.extend({ chunk: shownChunk }),
    query: z.object({ offset: whole(0, 1e9).default(0).openapi({ default: 0 }) }),
    answer: z.object({
      id: z.string(),
      kind: z.string(),
      turn: z.string().nullable(),
      role: z.string().nullable(),
      text: z.string(),
      offset: z.int(),
      characters: z.int(),
      next: z.int().nullable(),
    }),
    act: ({ client }, { params: { id, chunk: wanted }, query: { offset } }) => client.chunk(id, wanted, offset),
  });
  add(app, {
    name: 'listContextChanges',
    method: 'get',
    path: '/v1/conversations/{id}/context/changes',
    tag,
    summary: 'Compactions, truncations and trims, with what the prompt stood on before and after, and what was undone',
    params: onConversation,
    answer: z.object({ changes: z.array(change), complete: z.boolean(), problems: z.array(z.string()) }),
    act: ({ client }, { params: { id } }) => client.contextChanges(id),
  });
  add(app, {
    name: 'listMoments',
    method: 'get',
    path: '/v1/conversations/{id}/moments',
    tag,
    summary: 'Every event of its past, running or ended',
    role: 'operator',
    params: onConversation,
    query: z.object({ from: whole(0).default(0).openapi({ default: 0 }), limit: whole(1, 500).default(200).openapi({ default: 200 }) }),
    answer: momentPage,
    act: ({ client }, { params: { id }, query }) => client.moments(id, query),
  });
  add(app, {
    name: 'getMoment',
    method: 'get',
    path: '/v1/conversations/{id}/moments/{position}',
    tag,
    summary: 'The state before and after one event, and the fields that it changed',
    role: 'operator',
    params: onConversation.extend({ position: whole(0) }),
    answer: momentView,
    act: ({ client }, { params: { id, position } }) => client.moment(id, position),
  });
  add(app, {
    name: 'getTree',
    method: 'get',
    path: '/v1/conversations/{id}/tree',
    tag,
    summary: 'It and its sub-agents, to the last level',
    params: onConversation,
    answer: z.object({ conversations: z.array(node), more: z.boolean() }),
    act: async ({ client }, { params: { id } }) => {
      const { state, agent, title, startedAt, closedAt } = await client.describe(id);
      const below = await client.list({ idPrefix: `${id}:`, limit: MAX_TREE + 1 });
      const root = { id, state, agent, title, startedAt, closedAt, running: state === 'running' };
      return { conversations: [root, ...below.slice(0, MAX_TREE).map(({ taskQueue: _, ...one }) => one)], more: below.length > MAX_TREE };
    },
  });
}

const MAX_TREE = 500;
