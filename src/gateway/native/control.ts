/** Who steers: approvals and questions, stop, reset, compaction, stepping. */
import { z } from '@hono/zod-openapi';
import { ClientError } from '../../client/errors.js';
import type { ChangeOptions } from '../../client/temporal/patience.js';
import { LIMITS } from '../../conversation/protocol/contract.js';
import { checkEdits, type GatewayApp } from '../context.js';
import { add, doneWithin } from './operation.js';
import { approval, contextIndex, control, controlStatus, dispatchResult, queuedEvent } from './answers.js';
import { chunkId, decision, onConversation, waiting } from './schemas.js';

const tag = 'control';
const queued = z.string().regex(/^qevt_\d{1,15}$/);
const reason = z.string().max(1_000).optional();
const queue = z.object({ queue: z.array(queuedEvent) });
const tokens = { tokensBefore: z.number(), tokensAfter: z.number() };
const compaction = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('compacted'),
      epoch: z.int(),
      turns: z.int().openapi({ description: 'how many became memory' }),
      method: z.enum(['model', 'repaired', 'rules', 'compactor']),
      ...tokens,
    }),
    z.object({ kind: z.literal('cited'), messages: z.int(), ...tokens }),
    z.object({ kind: z.literal('undone'), epoch: z.int() }),
    z.object({ kind: z.literal('truncated'), entries: z.int(), ...tokens }),
    z.object({ kind: z.enum(['nothing-to-compact', 'nothing-to-undo', 'nothing-to-truncate']) }),
    z.object({ kind: z.literal('failed'), message: z.string() }),
  ])
  .openapi('CompactionOutcome');
const WAITS = 'Done behind what runs and what is queued. Waits for it for up to `wait` seconds, then answers 202: it is done in its turn.';
const pending = z.object({ conversation: z.string() });
const made = z.enum(['event', 'truncation', 'compaction', 'model-call', 'tool-run', 'sub-agent', 'nothing']);
const step = z
  .object({
    stepId: z.string(),
    did: made,
    words: z.string(),
    dispatchResult: z.object(dispatchResult).nullable(),
    eventProcessed: z.boolean(),
    compactionPerformed: z.boolean(),
    truncationPerformed: z.boolean(),
    hasPendingOperations: z.boolean(),
    queuedEventCount: z.int(),
    next: z.string().nullable(),
    child: z.object({ conversation: z.string(), did: made, words: z.string() }).optional(),
  })
  .openapi('Step');

/** What it names is well-formed, by its schema: where it is refused all the same, the conversation does not have it now. */
async function asItStands<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof ClientError && error.kind === 'invalid' ? new ClientError('conflict', error.message, { cause: error }) : error;
  }
}

export function addControl(app: GatewayApp): void {
  add(app, {
    name: 'listApprovals',
    method: 'get',
    path: '/v1/conversations/{id}/approvals',
    tag,
    summary: 'What waits for a person in it and in its sub-agents, with the arguments whole',
    params: onConversation,
    answer: z.object({ approvals: z.array(approval) }),
    act: async ({ client }, { params: { id } }) => ({ approvals: await client.approvals(id) }),
  });
  add(app, {
    name: 'listAllApprovals',
    method: 'get',
    path: '/v1/approvals',
    tag,
    summary: 'What waits for a person in all conversations',
    role: 'operator',
    answer: z.object({
      approvals: z.array(approval),
      silent: z.array(z.object({ id: z.string(), reason: z.string() })),
      more: z.boolean(),
    }),
    act: ({ client }) => client.allApprovals(),
  });
  add(app, {
    name: 'decide',
    method: 'post',
    path: '/v1/conversations/{id}/decide',
    tag,
    summary: 'Allow a call, refuse it, or answer a question',
    description: 'With `input`, which changes the arguments, it needs the role operator.',
    params: onConversation,
    body: decision,
    answer: z.object({ callId: z.string(), decision: z.enum(['approve', 'deny']) }),
    act: ({ client }, { params: { id }, body, context }) => {
      checkEdits(context, [body]);
      return client.decide(id, body);
    },
  });
  add(app, {
    name: 'interrupt',
    method: 'post',
    path: '/v1/conversations/{id}/interrupt',
    tag,
    summary: 'Stop what it does now; what was said stays',
    params: onConversation,
    body: z.strictObject({ reason }),
    act: ({ client }, { params: { id }, body }) => client.interrupt(id, body.reason),
  });
  add(app, {
    name: 'resetSession',
    method: 'post',
    path: '/v1/conversations/{id}/reset',
    tag,
    summary: 'Clear the session, as `/new` does',
    description: WAITS,
    params: onConversation,
    query: waiting,
    pending,
    answer: z.object({
      reply: z.string(),
      session: z.int().openapi({ description: 'that begins' }),
      consolidation: z.enum(['model', 'raw-fallback', 'nothing-to-do']),
    }),
    act: ({ client }, given) => inItsTurn(given, (options) => client.reset(given.params.id, options)),
  });
  add(app, {
    name: 'getContext',
    method: 'get',
    path: '/v1/conversations/{id}/context',
    tag,
    summary: 'What the next model call would see, and what it takes',
    params: onConversation,
    answer: contextIndex,
    act: ({ client }, { params: { id } }) => client.context(id),
  });
  add(app, {
    name: 'getQueue',
    method: 'get',
    path: '/v1/conversations/{id}/queue',
    tag,
    summary: 'What waits in its queue',
    params: onConversation,
    answer: queue,
    act: async ({ client }, { params: { id } }) => ({ queue: await client.queue(id) }),
  });
  add(app, {
    name: 'editQueue',
    method: 'post',
    path: '/v1/conversations/{id}/queue',
    tag,
    summary: 'Drop, move or clear what waits in its queue, and see what waits then',
    role: 'operator',
    params: onConversation,
    body: z.discriminatedUnion('op', [
      z.strictObject({ op: z.literal('drop'), id: queued }),
      z.strictObject({ op: z.literal('move'), id: queued, before: queued.nullable().openapi({ description: 'null: to the end' }) }),
      z.strictObject({ op: z.literal('clear') }),
    ]),
    answer: queue,
    act: async ({ client }, { params: { id }, body }) => ({ queue: await asItStands(client.editQueue(id, body)) }),
  });
  addContext(app);
  addStepping(app);
}

function addContext(app: GatewayApp): void {
  const chunks = z.strictObject({ chunks: z.array(chunkId).min(1).max(1_000).optional() });
  add(app, {
    name: 'compact',
    method: 'post',
    path: '/v1/conversations/{id}/compact',
    tag,
    summary: 'Make memory of the older turns now, or of these chunks',
    description: WAITS,
    params: onConversation,
    query: waiting,
    body: chunks,
    pending,
    answer: compaction,
    act: ({ client }, given) => {
      const { params, body } = given;
      if (body.chunks) return asItStands(client.triggerCompaction(params.id, body.chunks));
      return inItsTurn(given, (options) => client.compact(params.id, options));
    },
  });
  add(app, {
    name: 'undoCompaction',
    method: 'post',
    path: '/v1/conversations/{id}/compact/undo',
    tag,
    summary: 'Take the last compaction back',
    description: WAITS,
    params: onConversation,
    query: waiting,
    pending,
    answer: compaction,
    act: ({ client }, given) => inItsTurn(given, (options) => client.undoCompaction(given.params.id, options)),
  });
  add(app, {
    name: 'truncate',
    method: 'post',
    path: '/v1/conversations/{id}/truncate',
    tag,
    summary: 'Leave the oldest out of the prompt, or these chunks',
    description: WAITS,
    params: onConversation,
    query: waiting,
    body: chunks,
    pending,
    answer: compaction,
    act: ({ client }, given) => {
      const { params, body } = given;
      if (body.chunks) return asItStands(client.executeTruncation(params.id, body.chunks));
      return inItsTurn(given, (options) => client.truncate(params.id, options));
    },
  });
}

function inItsTurn<Result>(
  given: Parameters<typeof doneWithin>[0] & { readonly params: { readonly id: string } },
  ask: (options: ChangeOptions) => Promise<Result>,
): Promise<Response | Result> {
  return doneWithin(given, (signal, begun) => ask({ signal, onAccepted: () => begun({ conversation: given.params.id }) }));
}

function addStepping(app: GatewayApp): void {
  const role = 'operator';
  add(app, {
    name: 'getControl',
    method: 'get',
    path: '/v1/conversations/{id}/control',
    tag,
    summary: 'How it is stepped through, and what comes next',
    role,
    params: onConversation,
    answer: control,
    act: ({ client }, { params: { id } }) => client.control(id),
  });
  add(app, {
    name: 'step',
    method: 'post',
    path: '/v1/conversations/{id}/step',
    tag,
    summary: 'Do exactly one thing',
    role,
    params: onConversation,
    body: z.strictObject({ id: z.string().min(1).max(128).optional(), scope: z.enum(['into', 'over']).optional() }),
    answer: step,
    act: ({ client }, { params: { id }, body: { id: stepId, scope }, signal }) =>
      client.step(id, { ...(stepId !== undefined && { id: stepId }), ...(scope !== undefined && { scope }), signal }),
  });
  add(app, {
    name: 'setBreakpoints',
    method: 'put',
    path: '/v1/conversations/{id}/breakpoints',
    tag,
    summary: 'Where it stops by itself, in place of what was set before',
    role,
    params: onConversation,
    body: z.strictObject({
      tools: z.array(z.string().min(1).max(100)).max(100).optional(),
      events: z.array(z.string().min(1).max(100)).max(100).optional(),
      onError: z.boolean().optional(),
      costUsd: z.number().min(0).max(LIMITS.usd).optional(),
    }),
    answer: controlStatus,
    act: ({ client }, { params: { id }, body }) => client.setBreakpoints(id, body),
  });
}
