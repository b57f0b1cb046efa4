/** A request's body, checked as its protocol has it. A refusal names the wrong field. */
import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import type { GatewayContext } from '../context.js';
import { GatewayError, invalid } from './errors.js';

export async function readBody<Schema extends z.ZodType>(context: GatewayContext, schema: Schema): Promise<z.output<Schema>> {
  const given: unknown = await context.req.json().catch(() => {
    throw invalid('the body is no JSON');
  });
  return readAs(schema, given);
}

/** Throws a refusal that names the field. */
export function readAs<Schema extends z.ZodType>(schema: Schema, given: unknown): z.output<Schema> {
  const read = schema.safeParse(given);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const param = issue?.path.join('.') ?? '';
  throw invalid(param === '' ? (issue?.message ?? 'the request cannot be read') : `${param}: ${issue?.message ?? 'is wrong'}`, param);
}

/** A field that clients leave out, or send as null. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

const MAX_KEY = 128;

export function idempotencyKey(context: GatewayContext): string | undefined {
  const key = context.req.header('idempotency-key');
  if (key === undefined || (key !== '' && key.length <= MAX_KEY)) return key;
  throw invalid(`Idempotency-Key must have 1 to ${MAX_KEY} characters`);
}

/** The agent of a `model`: its name, also as `agent:NAME`. Where agents are not listed, the worker knows. */
export async function readAgent(context: GatewayContext, model: string): Promise<string> {
  const name = model.replace(/^agent:/, '');
  const agents = await context.get('agents')();
  if (agents.length === 0 || agents.includes(name)) return name;
  throw new GatewayError({
    status: 404,
    type: 'model-not-found',
    message: `the model ${JSON.stringify(name.slice(0, 80))} does not exist: a model is an agent here, and GET /v1/models lists them`,
    param: 'model',
  });
}

/** For an id that the client may choose freely: a valid one stays unchanged, and a hash, always the same, replaces any other string. */
export function toConversationId(publicId: string): string {
  return ID_PATTERN.test(publicId) ? publicId : `x-${createHash('sha256').update(publicId).digest('base64url')}`;
}
