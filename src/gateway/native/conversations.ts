/** Conversations: begin them, list them, look at them, change and end them. */
import { randomUUID } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import type { GatewayApp } from '../context.js';
import { GatewayError } from '../core/errors.js';
import { statusOf } from '../core/status-of.js';
import { add } from './operation.js';
import { anything, budget, conversation, json, listed, onConversation, start, status } from './schemas.js';

const tag = 'conversations';

export function addConversations(app: GatewayApp): void {
  add(app, {
    method: 'post',
    path: '/v1/conversations',
    tag,
    summary: 'Start a conversation, or attach to the running one of that id',
    body: start.extend({ id: z.string().min(1).max(64).optional() }),
    status: 201,
    answer: z.object({ id: z.string(), attached: z.boolean() }),
    act: ({ client }, { body: { id, ...options } }) => client.start(id ?? `conv-${randomUUID()}`, options),
  });
  add(app, {
    method: 'get',
    path: '/v1/conversations',
    tag,
    summary: 'Conversations, latest started first',
    query: z.object({ limit: z.coerce.number().int().min(1).max(500).default(50), running: z.enum(['true', 'false']).optional() }),
    answer: z.object({ conversations: z.array(listed) }),
    act: async ({ client }, { query: { limit, running } }) => {
      const wanted = { true: `ExecutionStatus = 'Running'`, false: `ExecutionStatus != 'Running'` };
      const all = await client.list({ limit, ...(running !== undefined && { query: wanted[running] }) });
      return { conversations: all.map(({ taskQueue: _, ...one }) => one) };
    },
  });
  add(app, {
    method: 'get',
    path: '/v1/conversations/{id}',
    tag,
    summary: 'A conversation: what it is, and what it does now',
    params: onConversation,
    answer: conversation,
    act: async ({ client }, { params: { id } }) => {
      const { state, agent, scope, title, startedAt, closedAt } = await client.describe(id);
      return { id, state, agent, scope, title, startedAt, closedAt, status: await statusOf(client, id) };
    },
  });
  add(app, {
    method: 'get',
    path: '/v1/conversations/{id}/status',
    tag,
    summary: 'What a running conversation does now',
    params: onConversation,
    answer: status,
    act: ({ client }, { params: { id } }) => client.status(id),
  });
  add(app, {
    method: 'patch',
    path: '/v1/conversations/{id}',
    tag,
    summary: 'Rename it, change its model, its mode or its budget',
    params: onConversation,
    body: z.strictObject({
      title: z.string().max(200).optional(),
      model: z.string().max(200).nullable().optional(),
      mode: z.enum(['auto', 'stepping']).optional(),
      budget: budget.optional(),
    }),
    act: async ({ client }, { params: { id }, body }) => {
      if (body.title !== undefined) await client.rename(id, body.title);
      if (body.model !== undefined) await client.setModel(id, body.model);
      if (body.mode !== undefined) await client.setMode(id, body.mode);
      if (body.budget !== undefined) await client.raiseBudget(id, body.budget);
    },
  });
  add(app, {
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
    method: 'delete',
    path: '/v1/conversations/{id}',
    tag,
    summary: 'Remove one that has ended, with its sub-agents, for good',
    role: 'admin',
    params: onConversation,
    answer: anything,
    act: async ({ client }, { params: { id } }) => client.deleteConversation(id),
  });
  add(app, {
    method: 'get',
    path: '/v1/agents',
    tag,
    summary: 'Agents that a conversation may have',
    answer: z.object({ agents: z.array(z.string()) }),
    act: async (_core, { context }) => ({ agents: await context.get('agents')() }),
  });
  add(app, {
    method: 'get',
    path: '/v1/usage',
    tag,
    summary: 'What has been spent',
    role: 'operator',
    query: z.object({
      by: z.enum(['agent', 'scope', 'tenant', 'model', 'day', 'conversation']).default('model'),
      since: z.iso.datetime({ offset: true }).optional(),
    }),
    answer: anything,
    act: ({ client }, { query: { by, since } }) => client.usage({ by, ...(since !== undefined && { since: new Date(since) }) }),
  });
  add(app, {
    method: 'post',
    path: '/v1/conversations/{id}/dispatch',
    tag,
    summary: "Hand over an event of the application's own, for its reducer",
    params: onConversation,
    query: z.object({ wait: z.enum(['true', 'false']).optional() }),
    body: z.strictObject({ id: z.string().max(128).optional(), type: z.string().max(128), payload: json.optional() }),
    answer: anything,
    act: ({ client }, { params: { id }, query: { wait }, body: { id: eventId, type, payload }, signal }) => {
      const event = { type, ...(eventId !== undefined && { id: eventId }), ...(payload !== undefined && { payload }) };
      return client.dispatch(id, event, { wait: wait === 'true', signal });
    },
  });
}

/** The id that `Idempotency-Key` gives a message which has none of its own. */
export function messageIdOf(given: string | undefined, header: string | undefined): string {
  if (given !== undefined && header !== undefined && given !== header) {
    throw new GatewayError({ status: 400, type: 'invalid', message: 'Idempotency-Key and the id of the message differ: send one of them' });
  }
  return given ?? header ?? randomUUID();
}
