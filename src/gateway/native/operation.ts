/** One operation of the native API: its schemas are the check of what comes in, and `/openapi.json`. */
import { createRoute, z } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import type { Conversations } from '../core/conversations.js';
import { requestSignal, needs, type GatewayApp, type GatewayContext, type GatewayVariables } from '../context.js';
import type { Role } from '../access/principal.js';
import type { JsonObject, JsonValue } from '../../records/message.js';
import { timeoutSignal, withTimeout } from '../../platform/promises.js';
import { GatewayError } from '../core/errors.js';
import { problem } from './schemas.js';

type Nothing = z.ZodObject<Record<never, never>>;

const bytes = z.string().min(1).openapi({ format: 'binary' });

/** The requested work goes on. */
const ACCEPTED: number = 202;

/** A value that matches a schema once it is JSON: times may be `Date` until then. */
type Answered<T> = [JsonValue] extends [T]
  ? T
  : T extends string
    ? string extends T
      ? T | Date
      : T
    : T extends readonly (infer Element)[]
      ? readonly Answered<Element>[]
      : { readonly [Field in keyof T]: Answered<T[Field]> };

export interface Operation<Path extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType, Answer extends z.ZodType> {
  /** Its `operationId`: what clients that are made of the document call it. It stays. */
  readonly name: string;
  readonly method: 'get' | 'post' | 'patch' | 'put' | 'delete';
  /** As OpenAPI writes it: `/v1/conversations/{id}`. */
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly tag: string;
  /** The role that it needs; default: any with a token. */
  readonly role?: Role;
  /** A further condition on the principal of the request. */
  readonly guard?: MiddlewareHandler<GatewayVariables>;
  readonly params?: Path;
  readonly query?: Query;
  readonly body?: Body;
  /** The body is a file: `act` reads it. */
  readonly takesFile?: true;
  /** Schema of the answer; without one, the answer is empty (204). */
  readonly answer?: Answer;
  /** The answer with 202 where the result is not there yet: `act` makes the response. */
  readonly pending?: z.ZodType;
  readonly status?: 200 | 201 | 202;
  /** It answers server-sent events: `act` makes the response. */
  readonly streams?: true;
  /** With `Accept: text/event-stream` it answers these: `act` makes the response. */
  readonly mayStream?: true;
  /** It answers a file of one of these types: `act` makes the response. */
  readonly answersFile?: readonly string[];
  readonly act: (
    core: Conversations,
    given: {
      readonly params: z.output<Path>;
      readonly query: z.output<Query>;
      readonly body: z.output<Body>;
      /** Aborted when the client is gone. */
      readonly signal: AbortSignal;
      readonly context: GatewayContext;
    },
  ) => Promise<Response | Answered<z.output<Answer>>>;
}

/** The result, or 202 with what is known where it is not done `wait` seconds after it has begun: it goes on. */
export async function doneWithin<Result>(
  {
    query: { wait },
    signal,
    context,
  }: { readonly query: { readonly wait: number }; readonly signal: AbortSignal; readonly context: GatewayContext },
  ask: (signal: AbortSignal, begun: (known: JsonObject) => void) => Promise<Result>,
): Promise<Response | Result> {
  const over = new AbortController();
  let known: JsonObject | undefined;
  const begun = (now: JsonObject): void => {
    known = now;
    timeoutSignal(wait * 1000).addEventListener('abort', () => over.abort());
  };
  try {
    return await ask(AbortSignal.any([signal, over.signal]), begun);
  } catch (error) {
    if (known === undefined || !over.signal.aborted || signal.aborted) throw error;
    return context.json(known, 202);
  }
}

export function add<
  Path extends z.ZodObject = Nothing,
  Query extends z.ZodObject = Nothing,
  Body extends z.ZodType = Nothing,
  Answer extends z.ZodType = z.ZodVoid,
>(app: GatewayApp, operation: Operation<Path, Query, Body, Answer>): void {
  const { name, method, path, summary, description, tag, role, guard, params, query, body, takesFile, answer, pending } = operation;
  const { streams, mayStream, answersFile } = operation;
  const status = operation.status ?? ((answer ?? streams ?? answersFile) === undefined ? 204 : 200);
  const content: Content = {
    ...Object.fromEntries((answersFile ?? []).map((type) => [type, { schema: bytes }])),
    ...(answer && { 'application/json': { schema: answer } }),
    ...((streams ?? mayStream) && { 'text/event-stream': { schema: z.string() } }),
  };
  const route = createRoute({
    operationId: name,
    method,
    path,
    summary,
    tags: [tag],
    ...(description !== undefined && { description }),
    middleware: [...(role === undefined ? [] : [needs(role)]), ...(guard === undefined ? [] : [guard])],
    request: {
      ...(params && { params }),
      ...(query && { query }),
      ...(takesFile && { body: { required: true, content: { 'application/octet-stream': { schema: bytes } } } }),
      ...(body && { body: { required: !body.safeParse({}).success, content: { 'application/json': { schema: body } } } }),
    },
    responses: {
      [status]: describeResponse(summary, content),
      ...(pending && { [ACCEPTED]: describeResponse('It is not there yet', { 'application/json': { schema: pending } }) }),
      default: { description: 'What went wrong (RFC 9457)', content: { 'application/problem+json': { schema: problem } } },
    },
  });
  const answerRequest = async (context: GatewayContext): Promise<Response> => {
    const valid = context.req as unknown as { valid(target: 'param' | 'query' | 'json'): unknown };
    const given = {
      params: (params ? valid.valid('param') : {}) as z.output<Path>,
      query: (query ? valid.valid('query') : {}) as z.output<Query>,
      body: (body ? valid.valid('json') : {}) as z.output<Body>,
      signal: requestSignal(context),
      context,
    };
    const acted = operation.act(context.get('conversations'), given);
    const answered = await ((pending ?? streams ?? mayStream) === undefined
      ? withTimeout(MAX_MS, acted, () => unfinished(summary))
      : acted);
    if (answered instanceof Response) return answered;
    return status === 204 ? context.body(null, 204) : context.json(answered as object, status);
  };
  // The type of `act` ensures that it answers as the route states; the library has no type for a route of any schema.
  app.openapi(route, answerRequest as never);
}

/** Of a conversation that steps, a reset waits for a person. */
const MAX_MS = 120_000;

function unfinished(what: string): GatewayError {
  const message = `not done within ${MAX_MS / 1000} s: ${what}. It may still be done: look at the conversation before you ask for it again`;
  return new GatewayError({ status: 503, type: 'unfinished', message });
}

type Content = Record<string, { readonly schema: z.ZodType }>;

function describeResponse(description: string, content: Content): { description: string; content?: Content } {
  return { description, ...(Object.keys(content).length > 0 && { content }) };
}
