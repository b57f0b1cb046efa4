/** Shapes of the native API. The client checks what comes in once more, as deep as the workflow does; here it is described and bounded. */
import { z } from '@hono/zod-openapi';
import { LIMITS, STOP_REASONS } from '../../conversation/protocol/contract.js';
import type { JsonValue } from '../../records/message.js';

/** How deep and long it may be is checked once, by the client. */
const json = z.unknown() as unknown as z.ZodType<JsonValue>;
const object = z.record(z.string(), json);

export const problem = z
  .object({ type: z.string(), title: z.string(), status: z.int(), detail: z.string() })
  .openapi('Problem', { description: '`type` is `urn:perdura:` and a stable name: not-found, invalid, closed, queue-full, no-worker, …' });

const id = z.string().min(1).max(200).openapi({ description: 'id of the conversation', example: 'trip-to-oslo' });
export const turnId = z
  .string()
  .regex(/^turn_\d{4,15}$/)
  .openapi({ example: 'turn_0001' });
export const onConversation = z.object({ id });
export const chunkId = z
  .string()
  .regex(/^(?:memory|chunk_\d{1,15})$/)
  .openapi({ example: 'chunk_12' });
export const onTurn = z.object({ id, turn: turnId });

const budget = z
  .strictObject({ maxTokens: z.number().positive().optional(), maxCostUsd: z.number().positive().optional() })
  .openapi('Budget', { description: 'What a conversation may use in all; absent: no limit' });

/** As it was answered; the rest of that answer may come along. */
const attachment = z
  .object({ ref: z.string().regex(/^att_/), mediaType: z.string().default('application/octet-stream') })
  .openapi({ description: 'a reference of `POST /v1/attachments`' });
const source = z.union([
  z.strictObject({ mediaType: z.string(), url: z.string() }),
  z.strictObject({ mediaType: z.string(), base64: z.string() }),
  z.strictObject({ mediaType: z.string(), ref: z.string() }),
  attachment,
]);

const name = z.string().max(200).optional();
const file = z.union([
  z.strictObject({ mediaType: z.string(), url: z.string() }),
  z.strictObject({ mediaType: z.string().default('application/octet-stream'), base64: z.string(), name }),
  z.strictObject({ mediaType: z.string(), ref: z.string(), name }),
  attachment.extend({ name }),
]);

export const message = z
  .strictObject({
    id: z.string().min(1).max(128).optional().openapi({ description: 'the same id twice is one message; `Idempotency-Key` says it too' }),
    text: z.string(),
    images: z.array(source).max(32).optional(),
    audio: z.array(source).max(32).optional(),
    video: z.array(source).max(32).optional(),
    documents: z
      .array(file)
      .max(32)
      .optional()
      .openapi({ description: 'PDF, and texts (as base64 or by reference), which become part of the text; what each is says its content' }),
    delivery: z.enum(['queue', 'steer', 'interrupt']).optional(),
    payload: json.optional().openapi({ description: 'data for the model, shown to it after the text' }),
    output: object.optional().openapi({ description: 'JSON Schema of the object that the answer must be' }),
    context: object.optional().openapi({ description: 'values that tools see and the model never does' }),
    tools: z
      .array(
        z.strictObject({ name: z.string(), description: z.string().optional(), inputSchema: object, mustCall: z.literal(true).optional() }),
      )
      .max(LIMITS.tools)
      .optional()
      .openapi({
        description:
          'tools that the sender runs: their calls wait among the approvals, of the kind `client-tool`; the turn begins with a call of one that has `mustCall`',
      }),
  })
  .openapi('Message');

export const start = z
  .strictObject({
    agent: z.string().max(64).optional(),
    scope: z.string().max(64).optional().openapi({ description: "whose long-term memory it has; the agent's own without one" }),
    title: z.string().max(200).optional(),
    model: z.string().max(200).optional(),
    mode: z.enum(['auto', 'stepping']).optional(),
    budget: budget.optional(),
    context: object.optional(),
  })
  .openapi('Start');

export const usage = z
  .object({ inputTokens: z.int(), cachedTokens: z.int(), outputTokens: z.int(), costUsd: z.number().nullable() })
  .openapi('Usage');
const error = z.object({ type: z.string(), message: z.string() });

export const turnResult = z
  .object({
    turnId: z.string().nullable(),
    text: z.string(),
    stopReason: z.enum(STOP_REASONS),
    usage,
    payload: json.optional(),
    toolCalls: z.int(),
    error: error.optional(),
  })
  .openapi('TurnResult');

export const submitted = z
  .object({
    conversation: z.string(),
    messageId: z.string(),
    turn: z.string().nullable(),
    acceptedAs: z.enum(['queue', 'steer', 'interrupt', 'duplicate']),
    position: z.int(),
    after: z.string().openapi({ description: 'cursor: the events of the turn begin after it' }),
  })
  .openapi('Submitted');

export const listed = z
  .object({
    id: z.string(),
    running: z.boolean(),
    state: z.string(),
    agent: z.string().nullable(),
    tenant: z.string().nullable(),
    publicId: z.string().nullable().openapi({ description: 'by which its tenant knows it, where that is another id; null for the tenant' }),
    title: z.string().nullable(),
    startedAt: z.string(),
    closedAt: z.string().nullable(),
    status: z.string().nullable(),
    model: z.string().nullable(),
    turns: z.int().nullable(),
    costUsd: z.number().nullable(),
    isCurrent: z.boolean().optional().openapi({ description: 'with `current`: its status, turns and cost are as of now' }),
    phase: z.string().optional().openapi({ description: 'with `current`: what it does now; `idle` between turns' }),
  })
  .openapi('Listed');

export const status = z
  .looseObject({
    phase: z.string(),
    turn: z.int(),
    turns: z.int(),
    session: z.int(),
    mode: z.enum(['auto', 'stepping']),
    queued: z.int(),
    pendingApprovals: z.int(),
    usage,
    budget: budget.nullable(),
    agent: z.string(),
    scope: z.string(),
    model: z.string().nullable(),
    title: z.string().nullable(),
  })
  .openapi('Status');

export const conversation = z
  .object({
    id: z.string(),
    state: z.string(),
    agent: z.string().nullable(),
    scope: z.string().nullable(),
    title: z.string().nullable(),
    startedAt: z.string(),
    closedAt: z.string().nullable(),
    status: status.nullable().openapi({ description: 'null where it does not run, or no worker answers' }),
  })
  .openapi('Conversation');

export const entry = z
  .looseObject({
    slot: z.int(),
    session: z.int(),
    turn: z.string(),
    seq: z.int(),
    ts: z.number().openapi({ description: 'seconds since 1970' }),
    message: z.looseObject({ role: z.enum(['user', 'assistant', 'tool']) }),
    messageId: z.string().optional(),
  })
  .openapi('Entry');

export const recalled = z
  .looseObject({
    address: z.string().openapi({ description: 'for /v1/search/open' }),
    kind: z.string(),
    ts: z.number().openapi({ description: 'seconds since 1970; 0 where nothing dates it' }),
    conversation: z.string().optional(),
    turn: z.string().optional(),
    speaker: z.string(),
    trust: z.string().openapi({ description: 'user, model, person, or tool:NAME, whose word is not to be trusted' }),
    text: z.string(),
    isPart: z.literal(true).optional().openapi({ description: 'there is more of the text' }),
    marks: z.array(z.array(z.int())).openapi({ description: 'where words of the question stand in it: [start, end) in UTF-16 units' }),
    score: z.number(),
    confidence: z.number().openapi({ description: '0 to 1: how much of the question its own words are' }),
  })
  .openapi('Recalled');

export const approval = z
  .looseObject({
    conversation: z.string(),
    via: z.string(),
    callId: z.string(),
    tool: z.string(),
    hash: z.string(),
    arguments: json.optional(),
  })
  .openapi('Approval');

export const decision = z
  .strictObject({
    decision: z.enum(['approve', 'deny']),
    note: z.string().optional().openapi({ description: 'a reason, or the answer to a question' }),
    hash: z.string().optional().openapi({ description: 'of the approval that was shown: other arguments are then not allowed' }),
    input: object.optional().openapi({ description: "with `approve`, arguments to run with in place of the model's" }),
    always: z.literal(true).optional().openapi({ description: 'with `approve`: this very call is not asked about again in this session' }),
    output: json.optional().openapi({ description: 'what a tool of the client has answered, with `approve`' }),
    isError: z.literal(true).optional().openapi({ description: 'it has failed: the output says how' }),
    conversation: z.string().optional().openapi({ description: 'the sub-agent that asked, where it was one' }),
  })
  .openapi('Decision');

export const anything = z.looseObject({});
export const cursor = z
  .string()
  .regex(/^(?:\$|0|\d{1,15}-\d{1,15})$/)
  .openapi({ description: 'of an event that was seen; 0: all that is kept; $: from now on' });
export { budget, json };
