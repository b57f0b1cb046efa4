/** Lives: fork, rewind, resume; a turn answered anew. */
import { z } from '@hono/zod-openapi';
import type { GatewayApp } from '../context.js';
import { messageIdOf } from './conversations.js';
import { add } from './operation.js';
import { anything, budget, onConversation, start, turnId, turnResult } from './schemas.js';

const tag = 'lives';
const begun = z.looseObject({ id: z.string() });
const named = start.pick({ title: true, agent: true, scope: true }).extend({ budget: budget.optional() });

export function addLineage(app: GatewayApp): void {
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
    answer: anything,
    act: ({ client }, { params: { id }, body: { to } }) => client.rewind(id, to),
  });
  add(app, {
    method: 'post',
    path: '/v1/conversations/{id}/retry',
    tag,
    summary: 'Answer the last turn anew; the old answer becomes a branch',
    params: onConversation,
    body: z.strictObject({}),
    answer: turnResult.loose(),
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
    answer: turnResult.loose(),
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
    answer: z.object({ branches: z.array(anything) }),
    act: async ({ client }, { params: { id } }) => ({ branches: await client.branches(id) }),
  });
}
