/** The native API: all that the client library can do, as REST and server-sent events, described by `/openapi.json`. */
import { z } from '@hono/zod-openapi';
import type { GatewayApp } from '../context.js';
import { addAttachments } from './attachments.js';
import { addControl } from './control.js';
import { addConversations, messageIdOf } from './conversations.js';
import { addFleet } from './fleet.js';
import { addInsight } from './insight.js';
import { addMemory } from './memory.js';
import { addTurns } from './turns.js';
import { ROLES } from '../access/principal.js';
import { add } from './operation.js';
import { answeredAgain, branch } from './answers.js';
import { budget, onConversation, start, turnId } from './schemas.js';

export function addNativeRoutes(app: GatewayApp): void {
  for (const add of [addConversations, addTurns, addAttachments, addControl, addLineage, addMemory, addInsight, addFleet, addMe]) add(app);
}

/** The principal of the request. */

const me = z
  .object({ name: z.string(), role: z.enum(ROLES), tenant: z.string().optional().openapi({ description: 'whose conversations it sees' }) })
  .openapi('Me');

function addMe(app: GatewayApp): void {
  add(app, {
    method: 'get',
    path: '/v1/me',
    summary: 'Who asks: the name of the token or user, its role and its tenant',
    tag: 'gateway',
    answer: me,
    act: (_core, { context }) => {
      const { name, role, tenant } = context.get('principal');
      return Promise.resolve({ name, role, ...(tenant !== undefined && { tenant }) });
    },
  });
}

/** Lives: fork, rewind, resume; a turn answered anew. */

const tag = 'lives';
const begun = z.object({
  id: z.string(),
  conversation: z.string().openapi({ description: 'whose turns it begins with' }),
  turn: z.string().openapi({ description: 'the last one that is shared' }),
  turns: z.int(),
  inContext: z.int().openapi({ description: 'turns that its model sees word for word' }),
  tokens: z.number(),
});
const named = start.pick({ title: true, agent: true, scope: true }).extend({ budget: budget.optional() });

function addLineage(app: GatewayApp): void {
  add(app, {
    method: 'post',
    path: '/v1/conversations/{id}/fork',
    tag,
    summary: 'Begin another conversation with its turns up to one of them',
    params: onConversation,
    body: named.extend({ at: turnId, id: z.string().min(1).max(64).optional() }),
    status: 201,
    answer: begun,
    act: ({ client }, { params: { id }, body }) => client.fork(id, body),
  });
  add(app, {
    method: 'post',
    path: '/v1/conversations/{id}/resume',
    tag,
    summary: 'Go on with one that has ended',
    params: onConversation,
    body: named,
    answer: begun,
    act: ({ client }, { params: { id }, body }) => client.resume(id, body),
  });
  add(app, {
    method: 'post',
    path: '/v1/conversations/{id}/rewind',
    tag,
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
    method: 'post',
    path: '/v1/conversations/{id}/retry',
    tag,
    summary: 'Answer the last turn anew; the old answer becomes a branch',
    params: onConversation,
    body: z.strictObject({}),
    answer: answeredAgain,
    act: ({ client }, { params: { id }, signal, context }) =>
      client.retry(id, { messageId: messageIdOf(undefined, context.req.header('idempotency-key')), signal }),
  });
  add(app, {
    method: 'post',
    path: '/v1/conversations/{id}/edit',
    tag,
    summary: 'Say something else in place of a turn and all after it',
    params: onConversation,
    body: z.strictObject({ text: z.string(), turn: turnId.optional() }),
    answer: answeredAgain,
    act: ({ client }, { params: { id }, body: { text, turn }, signal, context }) => {
      const messageId = messageIdOf(undefined, context.req.header('idempotency-key'));
      return client.edit(id, text, { messageId, signal, ...(turn !== undefined && { turn }) });
    },
  });
  add(app, {
    method: 'get',
    path: '/v1/conversations/{id}/branches',
    tag,
    summary: 'What rewinds have cut out of it',
    params: onConversation,
    answer: z.object({ branches: z.array(branch) }),
    act: async ({ client }, { params: { id } }) => ({ branches: await client.branches(id) }),
  });
}
