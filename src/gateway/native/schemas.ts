/**
 * What the native API takes. The client checks it once more, as deep as the workflow does; here it is described and bounded. A schema with
 * a name is not extended: the document would say `allOf` of two objects, each of which refuses the fields of the other.
 */
import { z } from '@hono/zod-openapi';
import { ID_PATTERN, LIMITS } from '../../conversation/protocol/contract.js';
import { CHILD_PATTERN, CONVERSATION_PATTERN, TENANT_PATTERN } from '../../conversation/protocol/limits.js';
import { MEDIA_KINDS, type JsonValue } from '../../records/message.js';

/** How deep and long it may be is checked once, by the client. */
const json = z.unknown() as unknown as z.ZodType<JsonValue>;
const object = z.record(z.string(), json);

/** By `nullable()` a schema with a name would not be null in the document, or be null wherever its name is used. */
export function orNull<Schema extends z.ZodType>(schema: Schema): z.ZodUnion<[Schema, z.ZodNull]> {
  return z.union([schema, z.null()]);
}

function anyPattern(...patterns: readonly RegExp[]): RegExp {
  return new RegExp(patterns.map(({ source }) => source).join('|'));
}

/** With something to see. */
export function visibleText(most: number) {
  return z.string().max(most).regex(/\S/, 'must not be empty');
}

function unanchored({ source }: RegExp): string {
  return source.slice(1, -1);
}

/** Of a new conversation, of an agent, and of a scope. */
export const name = z.string().max(64).regex(ID_PATTERN);

export const problem = z
  .object({ type: z.string(), title: z.string(), status: z.int(), detail: z.string() })
  .openapi('Problem', { description: '`type` is `urn:perdura:` and a stable name: not-found, invalid, closed, queue-full, no-worker, …' });

/** Of a query or a path, which have texts: without the white space and the empty text that JavaScript takes for numbers. */
export function whole(minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  const number = z
    .string()
    .regex(/^\d{1,16}$/, 'must be a whole number')
    .transform(Number);
  return number.pipe(z.int().min(minimum).max(maximum)).openapi({ type: 'integer', minimum, maximum });
}

export function decimal(minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  const number = z
    .string()
    .regex(/^\d{1,16}(?:\.\d{1,400})?(?:e[+-]?\d{1,3})?$/i, 'must be a number')
    .transform(Number);
  return number.pipe(z.number().min(minimum).max(maximum)).openapi({ type: 'number', minimum, maximum });
}

const DEFAULT_WAIT_S = 60;

/** For how many seconds an answer is waited for, until 202 says that it is not there yet. */
export const waiting = z.object({ wait: decimal(0, 3_600).default(DEFAULT_WAIT_S).openapi({ default: DEFAULT_WAIT_S }) });

/** Of a memory: that of a tenant begins with its name and a full stop. */
export const scopeName = z
  .string()
  .max(64)
  .regex(new RegExp(`^(?:${unanchored(TENANT_PATTERN)}\\.)?${unanchored(ID_PATTERN)}$`));

/** Those of sub-agents are made of their parents'. */
export const conversationId = z.string().max(200).regex(anyPattern(CONVERSATION_PATTERN, CHILD_PATTERN));
const id = conversationId.openapi({ description: 'id of the conversation', example: 'trip-to-oslo' });
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

const most = z.number().positive().max(Number.MAX_SAFE_INTEGER).optional();
const budget = z
  .strictObject({ maxTokens: most, maxCostUsd: most })
  .openapi('Budget', { description: 'What a conversation may use in all; absent: no limit' });

/** As it was answered; the rest of that answer may come along. */
const attachment = z
  .object({ ref: z.string().regex(/^att_[0-9a-f]{32}$/), mediaType: z.string().default('application/octet-stream') })
  .openapi({ description: 'a reference of `POST /v1/attachments`' });
const url = z
  .string()
  .max(LIMITS.mediaUrl)
  .regex(/^https?:\/\/\S+$/);
const base64 = z.string().regex(/^[A-Za-z0-9+/]+={0,2}$/);
const ref = z.string().min(1).max(LIMITS.mediaUrl);

/** As the conversation takes them, which looks again (conversation/protocol/message.ts). */
function sources(mediaType: z.ZodType<string>) {
  const source = z.union([
    z.strictObject({ mediaType, url }),
    z.strictObject({ mediaType, base64 }),
    z.strictObject({ mediaType, ref }),
    attachment,
  ]);
  return z.array(source).max(LIMITS.mediaPerMessage).optional();
}
const pictureType = z.string().regex(/^image\/(?:png|jpeg|gif|webp)$/);
const audioType = z
  .string()
  .regex(/^audio\/[a-z0-9][a-z0-9.+-]{0,63}$/)
  .openapi({ example: 'audio/mpeg' });
const videoType = z
  .string()
  .regex(/^video\/[a-z0-9][a-z0-9.+-]{0,63}$/)
  .openapi({ example: 'video/mp4' });

const pdf = z.string().regex(/^application\/pdf$/);
const fileName = z.string().max(200).optional();
const file = z.union([
  z.strictObject({ mediaType: pdf, url }),
  z.strictObject({ mediaType: z.string().default('application/octet-stream'), base64, name: fileName }),
  z.strictObject({ mediaType: pdf, ref, name: fileName }),
  attachment.extend({ name: fileName }),
]);

/** A step in an address. */
const UP = /\/\.{1,2}(?:\/|$)/;
/** As `provider/model`. */
export const modelName = z
  .string()
  .regex(/^[!-.0-~]{1,64}\/[!-~]{1,128}$/)
  .refine((name) => !UP.test(name), 'must have no part that is "." or ".."')
  .openapi({ example: 'anthropic/claude-sonnet-5', not: { pattern: UP.source } });
const callId = z
  .string()
  .regex(/^turn_\d{4,15}\/c\d{1,6}$/)
  .openapi({ example: 'turn_0001/c1' });

export const start = z
  .strictObject({
    agent: name.optional(),
    scope: name.optional().openapi({ description: 'whose long-term memory it has; that of the agent without one' }),
    title: z.string().max(200).optional(),
    model: modelName.optional(),
    mode: z.enum(['auto', 'stepping']).optional(),
    budget: budget.optional(),
    context: object.optional(),
  })
  .openapi('Start');

const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,56}$/);
const argumentsSchema = z
  .object({ type: z.literal('object').optional() })
  .catchall(json)
  .openapi({ description: 'a JSON Schema of an object' });
const toolFlags = { mustCall: z.literal(true).optional(), single: z.literal(true).optional() };

export const message = z
  .strictObject({
    id: z.string().min(1).max(128).optional().openapi({ description: 'the same id twice is one message; `Idempotency-Key` says it too' }),
    text: z.string(),
    images: sources(pictureType),
    audio: sources(audioType),
    video: sources(videoType),
    documents: z
      .array(file)
      .max(LIMITS.mediaPerMessage)
      .optional()
      .openapi({ description: 'PDF, and texts (as base64 or by reference), which become part of the text; what each is says its content' }),
    delivery: z.enum(['queue', 'steer', 'interrupt']).optional(),
    payload: json.optional().openapi({ description: 'data for the model, shown to it after the text' }),
    output: object.optional().openapi({ description: 'JSON Schema of the object that the answer must be' }),
    context: object.optional().openapi({ description: 'values that tools see and the model never does' }),
    tools: z
      .array(z.strictObject({ name: toolName, description: z.string().optional(), inputSchema: argumentsSchema, ...toolFlags }))
      .max(LIMITS.tools)
      .optional()
      .openapi({
        description:
          'tools that the sender runs: their calls wait among the approvals, of the kind `client-tool`; the turn begins with a call of one that has `mustCall`, and an answer has one call at most of those with `single`',
      }),
    stop: z
      .strictObject({
        at: z.array(z.string().min(1).max(LIMITS.stopLength)).max(LIMITS.stops).optional(),
        tokens: z.int().min(1).max(LIMITS.tokens).optional(),
      })
      .optional()
      .openapi({
        description: 'where each answer of the turn’s model ends at the latest: before one of these texts, after so many tokens',
      }),
    start: start.optional(),
  })
  .refine(
    ({ text, payload, output, ...rest }) =>
      /\S/.test(text) || payload !== undefined || output !== undefined || MEDIA_KINDS.some((kind) => (rest[kind] ?? []).length > 0),
    'text: is empty; say something',
  )
  .openapi('Message', {
    description: 'A text of white space alone is only taken with something else to say.',
    not: {
      properties: {
        text: { pattern: String.raw`^\s*$` },
        ...Object.fromEntries(MEDIA_KINDS.map((kind) => [kind, { maxItems: 0 }])),
        ...{ payload: { not: {} }, output: { not: {} } },
      },
    },
  });

export const decision = z
  .strictObject({
    callId,
    decision: z.enum(['approve', 'deny']),
    note: z.string().optional().openapi({ description: 'a reason, or the answer to a question' }),
    hash: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .openapi({ description: 'of the approval that was shown: other arguments are then not allowed' }),
    input: object.optional().openapi({ description: "with `approve`, arguments to run with in place of the model's" }),
    always: z.literal(true).optional().openapi({ description: 'with `approve`: this very call is not asked about again in this session' }),
    output: json.optional().openapi({ description: 'what a tool of the client has answered, with `approve`' }),
    isError: z.literal(true).optional().openapi({ description: 'it has failed: the output says how' }),
    conversation: conversationId.optional().openapi({ description: 'the sub-agent that waits, where it is one' }),
  })
  .refine(({ decision, always, input, output }) => {
    const isDenied = decision === 'deny';
    return !(always && (isDenied || input !== undefined)) && !(isDenied && output !== undefined);
  }, 'always and output go with approve alone, and always not with input')
  .openapi('Decision', {
    not: {
      anyOf: [
        { required: ['always', 'input'] },
        { properties: { decision: { const: 'deny' } }, anyOf: [{ required: ['always'] }, { required: ['output'] }] },
      ],
    },
  });

export const cursor = z
  .string()
  .regex(/^(?:\$|0|\d{1,15}-\d{1,15})$/)
  .openapi({ description: 'of an event that was seen; 0: all that is kept; $: from now on' });
export { budget, json };
