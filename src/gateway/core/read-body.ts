/**
 * Bodies of requests, collected once the client was let in, and read as their protocol has them. A refusal names the wrong field.
 *
 * @rule gateway/bounded-bodies: Without a token nothing of a body is read. With one each is within the limit of its path, those of one
 *   token within a share, and all within what a gateway may hold at once. (test: test/gateway/read-body.test.ts)
 */
import { createHash, randomUUID } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import type { z } from 'zod';
import type { GatewayVariables, GatewayContext } from '../context.js';
import type { Principal } from '../access/principal.js';
import { GatewayError, invalid } from './errors.js';
import { decodeText, detectForm } from '../../records/file-type.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';

/** What all requests of a gateway together may hold as bytes of bodies; what is parsed of them is a small multiple. */
export const MAX_HELD_BYTES = 256 * 1024 * 1024;
/** What those of one token may hold of it: eight of the largest. */
const MAX_HELD_PER_TOKEN = 80 * 1024 * 1024;
/** Levels of JSON: what walks through it calls itself for each. */
const MAX_DEPTH = 128;

export interface CollectOptions {
  /** Most bytes of a body by path; undefined: the route reads its body itself as it comes. */
  readonly limit: (path: string) => number | undefined;
  readonly tooLarge: (context: Context, maxBytes: number) => Response;
  readonly maxHeldBytes?: number;
  readonly maxHeldPerToken?: number;
}

export function collectBodies(options: CollectOptions): MiddlewareHandler<GatewayVariables> {
  const { limit, tooLarge, maxHeldBytes = MAX_HELD_BYTES, maxHeldPerToken = MAX_HELD_PER_TOKEN } = options;
  const held = createHeldBytes(maxHeldBytes, maxHeldPerToken);
  return async (context, next) => {
    const maxBytes = limit(context.req.path);
    if (maxBytes === undefined || !hasBody(context)) return next();
    const declared = declaredBytes(context);
    if (declared !== undefined && declared > maxBytes) return tooLarge(context, maxBytes);
    const share = held.open((context.get('principal') as Principal | undefined)?.name ?? '');
    try {
      const body = await collect(context.req.raw.body, maxBytes, (bytes) => share.take(bytes));
      if (body === undefined) return tooLarge(context, maxBytes);
      const isFile = context.req.path.endsWith('/attachments');
      context.req.raw = new Request(context.req.raw, { body: isFile ? body : plainJson(body) });
      return await next();
    } finally {
      share.close();
    }
  };
}

/** Whether the request comes with a body that a route may read. In a server that is not Node's it may state no length. */
export function hasBody(context: Context): boolean {
  if (['GET', 'HEAD'].includes(context.req.method)) return false;
  return declaredBytes(context) !== 0 && (declaredBytes(context) !== undefined || context.req.raw.body !== null);
}

/** Undefined: it is not known before it has come. */
function declaredBytes(context: Context): number | undefined {
  const length = context.req.header('content-length');
  return length === undefined || context.req.header('transfer-encoding') !== undefined ? undefined : Number(length);
}

/** Undefined: there are more bytes than `maxBytes`. */
async function collect(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  take: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    take(chunk.length);
    chunks.push(chunk);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

const HALF_CHARACTERS = /\\\\|\\u(?:d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(d[89a-f][0-9a-f]{2}))/gi;

/**
 * JSON in UTF-8, without half characters, which stores and providers refuse. Throws where it is too deep; what is no JSON its route
 * refuses.
 */
export function plainJson(sent: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | string {
  const body = detectForm(sent).hasMark ? new TextEncoder().encode(decodeText(sent)) : sent;
  if (depthExceeds(body, MAX_DEPTH)) throw invalid(`the JSON of a request may be ${MAX_DEPTH} levels deep`);
  if (!Buffer.from(body.buffer, body.byteOffset, body.length).includes('\\u')) return body;
  const text = new TextDecoder().decode(body);
  return text.replace(HALF_CHARACTERS, (escape, half: string | undefined) => (half === undefined ? escape : '\\ufffd'));
}

function depthExceeds(json: Uint8Array, max: number): boolean {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (inText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === BRACKET || byte === BRACE) {
      if ((depth += 1) > max) return true;
    } else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) depth -= 1;
  }
  return false;
}

const [QUOTE, BACKSLASH, BRACKET, CLOSING_BRACKET, BRACE, CLOSING_BRACE] = [...Buffer.from('"\\[]{}')];

interface Share {
  /** Throws 503 where the gateway, and 429 where the token holds as much as it may. */
  take(bytes: number): void;
  /** Gives back what it has taken. */
  close(): void;
}

function createHeldBytes(maxBytes: number, maxPerToken: number): { open(token: string): Share } {
  const byToken = new Map<string, number>();
  let all = 0;
  return {
    open(token) {
      let mine = 0;
      return {
        take(bytes) {
          const ofToken = (byToken.get(token) ?? 0) + bytes;
          if (ofToken > maxPerToken) {
            const message = `requests of this token that are being read hold ${maxPerToken} bytes: wait until some of them are answered`;
            throw new GatewayError({ status: 429, type: 'too-many-requests', message, retryAfter: 1 });
          }
          if (all + bytes > maxBytes) {
            const message = `requests that are being read hold ${maxBytes} bytes, which is what this gateway may: try again in a moment`;
            throw new GatewayError({ status: 503, type: 'busy', message, retryAfter: 1 });
          }
          byToken.set(token, ofToken);
          all += bytes;
          mine += bytes;
        },
        close() {
          const rest = (byToken.get(token) ?? 0) - mine;
          if (rest <= 0) byToken.delete(token);
          else byToken.set(token, rest);
          all -= mine;
          mine = 0;
        },
      };
    },
  };
}

/** Throws a refusal that names the field. */
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

/** The id of what a request sends, where it gives none itself. */
export async function idOfRequest(context: GatewayContext): Promise<string> {
  const attempt = readAttempt((name) => context.req.header(name));
  const { record, joinsEqual } = context.get('repeated');
  const hasOwn = context.req.header('idempotency-key') !== undefined;
  if (hasOwn || (attempt === undefined && !joinsEqual)) return randomUUID();
  const { name, tenant = '' } = context.get('principal');
  const { pathname, search } = new URL(context.req.url);
  const named = context.req.header('x-perdura-conversation') ?? '';
  const hash = createHash('sha256').update(JSON.stringify([name, tenant, context.req.method, pathname + search, named]));
  const request = hash.update(new Uint8Array(await context.req.arrayBuffer())).digest('hex');
  const id = await record.idOf(request, attempt ?? 0);
  // Its repeat may have come before it was noted: then that one stands for both.
  if (context.req.raw.signal.aborted) {
    const message = 'the client has given up on this request before it was taken: nothing has been done for it';
    throw new GatewayError({ status: 503, type: 'aborted', message });
  }
  context.set('delivered', () => void record.answered(request, id));
  return id;
}

/** How often it was sent before, by its client; undefined where that does not count. */
export function readAttempt(header: (name: string) => string | undefined): number | undefined {
  // What Stainless generates (openai, anthropic, and what is built on them) counts repeats; clients of AWS and Google count from one.
  const repeats = /^\d{1,3}$/.exec(header('x-stainless-retry-count') ?? '')?.[0];
  if (repeats !== undefined) return Number(repeats);
  const tries =
    /\battempt=(\d{1,3})\b/.exec(header('amz-sdk-request') ?? '')?.[1] ??
    /\bgccl-attempt-count\/(\d{1,3})\b/.exec(header('x-goog-api-client') ?? '')?.[1];
  return tries === undefined ? undefined : Math.max(0, Number(tries) - 1);
}
