/** Conversations: begin them, list them, look at them, change and end them; fork, rewind and resume them, and answer a turn anew. */
import { randomUUID } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import type { AnswerAgainOptions, AnsweredAgain, Listed } from '../../client.js';
import type { GatewayApp, GatewayContext } from '../context.js';
import { GatewayError } from '../core/errors.js';
import { idOfRequest } from '../core/read-body.js';
import { readStatus } from '../../client/turns/turn-status.js';
import { isSettled } from '../../client/listing.js';
import { LIMITS } from '../../conversation/protocol/contract.js';
import { SPENDING_GROUPS } from '../../records/spending.js';
import { add, doneWithin } from './operation.js';
import { answeredAgain, branch, conversation, dispatchResult, listed, pendingTurn, status, usage } from './answers.js';
import { budget, json, modelName, name, onConversation, orNull, start, turnId, visibleText, waiting, whole, decimal } from './schemas.js';

const tag = 'conversations';
const WAITS = 'Waits for the answer for up to `wait` seconds, then answers 202 with the turn, which goes on.';
/** Only the latest are scanned: `before` finds older ones. */
const MAX_SCANNED = 5_000;
const sum = z
  .object({
    of: z.string().openapi({ description: 'what these calls have in common: a name, or a day in UTC' }),
    calls: z.int(),
    failed: z.int(),
    fenced: z.int().openapi({ description: 'what they brought was not wanted any more when it came' }),
    usage,
    unpriced: z.int().openapi({ description: 'calls whose price is not known: the cost leaves them out' }),
  })
  .openapi('SpendingSum');
const dispatched = z.object({
  id: z.string(),
  position: z.int(),
  result: z
    .discriminatedUnion('kind', [
      z.object({ kind: z.literal('reduced'), ...dispatchResult }),
      z.object({ kind: z.literal('unreduced') }),
      z.object({ kind: z.literal('parked'), error: z.string() }),
      z.object({ kind: z.literal('not-known') }),
    ])
    .optional()
    .openapi({ description: 'with `wait`: what its reducer has made of it' }),
});
const STATUSES = ['running', 'waiting', 'failed', 'ended', 'canceled', 'terminated', 'timed-out'] as const;

interface Filter {
  readonly agent?: string;
  readonly ofTenant?: string;
  readonly status?: (typeof STATUSES)[number];
  readonly costUsd?: number;
  readonly text?: string;
}

/** Where a search attribute is not registered, a filter by it matches nothing. */
function toPredicate({ agent, ofTenant, status, costUsd, text }: Filter): (listed: Listed) => boolean {
  const sought = text?.toLowerCase();
  return (one) =>
    (agent === undefined || one.agent === agent) &&
    (ofTenant === undefined || one.tenant === ofTenant) &&
    (status === undefined || hasStatus(one, status)) &&
    (costUsd === undefined || (one.costUsd ?? -1) >= costUsd) &&
    (sought === undefined || [one.id, one.publicId, one.title].some((name) => name?.toLowerCase().includes(sought)));
}

/** `running` has all that run; one that runs may have failed with its last turn, or wait for a person. */
function hasStatus({ running, state, status }: Listed, wanted: (typeof STATUSES)[number]): boolean {
  if (wanted === 'waiting') return running && status === 'waiting';
  if (wanted === 'failed') return state === 'failed' || (running && status === 'failed');
  return state === wanted;
}

export function addConversations(app: GatewayApp): void {
  add(app, {
    name: 'startConversation',
    method: 'post',
    path: '/v1/conversations',
    tag,
    summary: 'Start a conversation, or attach to the running one of that id',
    body: z.strictObject({ ...start.shape, id: name.optional() }),
    status: 201,
    answer: z.object({ id: z.string(), attached: z.boolean() }),
    act: ({ client }, { body: { id, ...options } }) => client.start(id ?? `conv-${randomUUID()}`, options),
  });
  add(app, {
    name: 'listConversations',
    method: 'get',
    path: '/v1/conversations',
    tag,
    summary: 'Conversations, latest started first',
    description: `Filters narrow the latest ${MAX_SCANNED}; \`before\`, the \`startedAt\` of the last one, begins the next page.`,
    query: z.object({
      limit: whole(1, 500).default(50).openapi({ default: 50 }),
      running: z.enum(['true', 'false']).optional(),
      before: z.iso
        .datetime({ offset: true })
        .optional()
        .openapi({ description: 'only those that started in that millisecond or earlier: its own come once more' }),
      since: z.iso.datetime({ offset: true }).optional().openapi({ description: 'only those that started then or later' }),
      agent: z.string().max(64).optional(),
      ofTenant: z.string().max(64).optional().openapi({ description: 'for who sees all tenants; `tenant` asks in the place of one' }),
      status: z.enum(STATUSES).optional(),
      costUsd: decimal(0).optional().openapi({ description: 'only those that are known to have cost so much' }),
      text: z.string().max(200).optional().openapi({ description: 'in the id or the title' }),
      current: z.enum(['true', 'false']).default('false').openapi({
        description: 'ask the first 100 how they stand now, for up to two seconds; what is not asked is as of the last tenth turn',
      }),
    }),
    answer: z.object({ conversations: z.array(listed) }),
    act: async ({ client }, { query: { limit, running, before, since, current, ...filter } }) => {
      const wanted = [
        ...(running === undefined ? [] : [running === 'true' ? `ExecutionStatus = 'Running'` : `ExecutionStatus != 'Running'`]),
        ...(before === undefined ? [] : [`StartTime < '${new Date(Date.parse(before) + 1).toISOString()}'`]),
        ...(since === undefined ? [] : [`StartTime >= '${new Date(since).toISOString()}'`]),
      ];
      const isFiltered = Object.values(filter).some((value) => value !== undefined);
      const list = current === 'true' ? client.standing : client.list;
      const all = await list({
        limit,
        ...(wanted.length > 0 && { query: wanted.join(' AND ') }),
        ...(isFiltered && { where: toPredicate(filter), scan: MAX_SCANNED }),
      });
      return { conversations: all.map(({ taskQueue: _, ...one }) => ({ isCurrent: isSettled(one), ...one })) };
    },
  });
  add(app, {
    name: 'getConversation',
    method: 'get',
    path: '/v1/conversations/{id}',
    tag,
    summary: 'A conversation: what it is, and what it does now',
    params: onConversation,
    answer: conversation,
    act: async ({ client }, { params: { id } }) => {
      const { state, agent, scope, title, startedAt, closedAt } = await client.describe(id);
      return { id, state, agent, scope, title, startedAt, closedAt, status: await readStatus(client, id) };
    },
  });
  add(app, {
    name: 'getStatus',
    method: 'get',
    path: '/v1/conversations/{id}/status',
    tag,
    summary: 'What a running conversation does now',
    params: onConversation,
    answer: status,
    act: ({ client }, { params: { id } }) => client.status(id),
  });
  add(app, {
    name: 'updateConversation',
    method: 'patch',
    path: '/v1/conversations/{id}',
    tag,
    summary: 'Rename it, change its model, its mode or its budget',
    description: 'The mode needs the role operator. A user chooses among the models of agent.json, and may only lower its limits.',
    params: onConversation,
    body: z.strictObject({
      title: visibleText(200).optional(),
      model: orNull(modelName).optional(),
      mode: z.enum(['auto', 'stepping']).optional(),
      budget: budget.optional(),
    }),
    act: async ({ client }, { params: { id }, body }) => {
      // What a user may be refused comes first: a request that is refused has changed nothing.
      if (body.mode !== undefined) await client.setMode(id, body.mode);
      if (body.model !== undefined) await client.setModel(id, body.model);
      if (body.budget !== undefined) await client.raiseBudget(id, body.budget);
      if (body.title !== undefined) await client.rename(id, body.title);
    },
  });
  add(app, {
    name: 'closeConversation',
    method: 'post',
    path: '/v1/conversations/{id}/close',
    tag,
    summary: 'End it: what is queued is run out, and what was said is remembered',
    params: onConversation,
    body: z.strictObject({ memory: z.boolean().optional() }),
    status: 202,
    answer: z.object({ id: z.string() }),
    act: async ({ client }, { params: { id }, body: { memory } }) => {
      await client.closeConversation(id, memory === false ? { memory } : {});
      return { id };
    },
  });
  add(app, {
    name: 'deleteConversation',
    method: 'delete',
    path: '/v1/conversations/{id}',
    tag,
    summary: 'Remove one that has ended, with its sub-agents, for good',
    role: 'admin',
    params: onConversation,
    answer: z.object({
      lives: z.int(),
      runs: z.int(),
      subAgents: z.int(),
      scopes: z.array(z.string()).openapi({ description: 'whose long-term memory it had: that stays' }),
      retentionDays: z.int().nullable().openapi({ description: 'for how long Temporal has histories of what has ended' }),
    }),
    act: async ({ client }, { params: { id } }) => client.deleteConversation(id),
  });
  add(app, {
    name: 'listAgents',
    method: 'get',
    path: '/v1/agents',
    tag,
    summary: 'Agents that a conversation may have',
    answer: z.object({ agents: z.array(z.string()) }),
    act: async (_core, { context }) => ({ agents: await context.get('agents')() }),
  });
  add(app, {
    name: 'getUsage',
    method: 'get',
    path: '/v1/usage',
    tag,
    summary: 'What has been spent',
    role: 'operator',
    query: z.object({
      by: z.enum(SPENDING_GROUPS).default('model'),
      since: z.iso.datetime({ offset: true }).optional(),
    }),
    answer: z.object({ by: z.enum(SPENDING_GROUPS), since: z.string().nullable(), sums: z.array(sum), total: sum }),
    act: ({ client }, { query: { by, since } }) => client.usage({ by, ...(since !== undefined && { since: new Date(since) }) }),
  });
  add(app, {
    name: 'dispatchEvent',
    method: 'post',
    path: '/v1/conversations/{id}/dispatch',
    tag,
    summary: "Hand over an event of the application's own, for its reducer",
    params: onConversation,
    query: z.object({ wait: z.enum(['true', 'false']).optional() }),
    body: z.strictObject({
      id: z.string().min(1).max(128).optional(),
      type: z.string().regex(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/),
      payload: json.optional(),
    }),
    answer: dispatched,
    act: ({ client }, { params: { id }, query: { wait }, body: { id: eventId, type, payload }, signal }) => {
      const event = { type, ...(eventId !== undefined && { id: eventId }), ...(payload !== undefined && { payload }) };
      return client.dispatch(id, event, { wait: wait === 'true', signal });
    },
  });
}

interface AskedAgain {
  readonly params: { readonly id: string };
  readonly query: { readonly wait: number };
  readonly signal: AbortSignal;
  readonly context: GatewayContext;
}

/** The new answer, or 202 with its turn: a turn may step, or ask a person. */
async function answerAgain(
  given: AskedAgain,
  ask: (options: AnswerAgainOptions) => Promise<AnsweredAgain>,
): Promise<Response | AnsweredAgain> {
  const messageId = await chooseMessageId(given.context);
  const conversation = given.params.id;
  return doneWithin(given, (signal, begun) => ask({ messageId, signal, onBegun: (turn) => begun({ conversation, turn }) }));
}

/** The id of a message: `Idempotency-Key` gives one to a message without an id. */
export async function chooseMessageId(context: GatewayContext, given?: string): Promise<string> {
  const header = context.req.header('idempotency-key');
  if (given !== undefined && header !== undefined && given !== header) {
    throw new GatewayError({ status: 400, type: 'invalid', message: 'Idempotency-Key and the id of the message differ: send one of them' });
  }
  return given ?? header ?? (await idOfRequest(context));
}

const begun = z.object({
  id: z.string(),
  conversation: z.string().openapi({ description: 'whose turns it begins with' }),
  turn: z.string().openapi({ description: 'the last one that is shared' }),
  turns: z.int(),
  inContext: z.int().openapi({ description: 'turns that its model sees word for word' }),
  tokens: z.number(),
});
const named = start.pick({ title: true, agent: true, scope: true }).extend({ budget: budget.optional() });

export function addLineage(app: GatewayApp): void {
  add(app, {
    name: 'forkConversation',
    method: 'post',
    path: '/v1/conversations/{id}/fork',
    tag: 'lives',
    summary: 'Begin another conversation with its turns up to one of them',
    params: onConversation,
    body: named.extend({ at: turnId, id: name.optional() }),
    status: 201,
    answer: begun,
    act: ({ client }, { params: { id }, body }) => client.fork(id, body),
  });
  add(app, {
    name: 'resumeConversation',
    method: 'post',
    path: '/v1/conversations/{id}/resume',
    tag: 'lives',
    summary: 'Go on with one that has ended',
    params: onConversation,
    body: named,
    answer: begun,
    act: ({ client }, { params: { id }, body }) => client.resume(id, body),
  });
  add(app, {
    name: 'rewindConversation',
    method: 'post',
    path: '/v1/conversations/{id}/rewind',
    tag: 'lives',
    summary: 'Cut out the turns after one of them; a branch keeps them',
    params: onConversation,
    body: z.strictObject({ to: turnId }),
    answer: z.object({
      to: z.string().openapi({ description: 'the last turn that stays; `turn_0000`: none does' }),
      cut: z.int(),
      branch: z.int().nullable(),
      session: z.int(),
      epoch: z.int(),
      turnId: z.string().optional(),
    }),
    act: ({ client }, { params: { id }, body: { to } }) => client.rewind(id, to),
  });
  add(app, {
    name: 'retryTurn',
    method: 'post',
    path: '/v1/conversations/{id}/retry',
    tag: 'lives',
    summary: 'Answer the last turn anew; the old answer becomes a branch',
    description: WAITS,
    params: onConversation,
    query: waiting,
    body: z.strictObject({}),
    answer: answeredAgain,
    pending: pendingTurn,
    act: ({ client }, given) => answerAgain(given, (options) => client.retry(given.params.id, options)),
  });
  add(app, {
    name: 'editTurn',
    method: 'post',
    path: '/v1/conversations/{id}/edit',
    tag: 'lives',
    summary: 'Say something else in place of a turn and all after it',
    description: WAITS,
    params: onConversation,
    query: waiting,
    body: z.strictObject({ text: visibleText(LIMITS.messageBytes), turn: turnId.optional() }),
    answer: answeredAgain,
    pending: pendingTurn,
    act: ({ client }, given) =>
      answerAgain(given, (options) => {
        const { text, turn } = given.body;
        return client.edit(given.params.id, text, { ...options, ...(turn !== undefined && { turn }) });
      }),
  });
  add(app, {
    name: 'listBranches',
    method: 'get',
    path: '/v1/conversations/{id}/branches',
    tag: 'lives',
    summary: 'What rewinds have cut out of it',
    params: onConversation,
    answer: z.object({ branches: z.array(branch) }),
    act: async ({ client }, { params: { id } }) => ({ branches: await client.branches(id) }),
  });
}
