/**
 * A2A 1.0 over JSON-RPC, and 0.3 for clients that ask for nothing newer, without any state here. `/a2a` is the agent that the message's
 * metadata names, `/a2a/NAME` that one.
 */
import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import { z } from 'zod';
import { packageVersion } from '../../platform/optional-package.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import { readOrigin, requestSignal, type GatewayApp, type GatewayContext } from '../context.js';
import { GatewayError, toProblem, type Problem } from '../core/errors.js';
import { sendEvents } from '../sse.js';
import { A2A_VERSIONS, createCard, type CardOptions, createA2aHandler, loadSdk, toRefusal, type Sdk } from './handler.js';

const [, LEGACY_VERSION] = A2A_VERSIONS;
const CARD_PATH = '/.well-known/agent-card.json';
const CARD_MAX_AGE_S = 300;
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const INTERNAL_ERROR = -32_603;
const SERVER_ERROR = -32_000;
const STREAMING: readonly unknown[] = ['SendStreamingMessage', 'SubscribeToTask', 'message/stream', 'tasks/resubscribe'];

const envelope = z.looseObject({
  jsonrpc: z.literal('2.0'),
  method: z.string().min(1).max(200),
  id: z.union([z.string().max(512), z.int(), z.null()]).optional(),
});
type Envelope = z.output<typeof envelope>;

interface Beside {
  /** The gateway's path behind a proxy. */
  readonly basePath?: string | undefined;
}

export function addA2aRoutes(app: GatewayApp, { basePath = '' }: Beside = {}): void {
  const about = (context: GatewayContext): CardOptions => {
    const agent = context.req.param('agent');
    if (agent !== undefined && !ID_PATTERN.test(agent)) throw noAgent();
    return { base: `${readOrigin(context)}${basePath}`, version: packageVersion(), ...(agent !== undefined && { agent }) };
  };
  app.on('GET', [CARD_PATH, `/a2a/:agent${CARD_PATH}`], async (context) => {
    await loadSdk();
    const card = about(context);
    const known = card.agent === undefined ? [] : await context.get('agents')();
    if (card.agent !== undefined && known.length > 0 && !known.includes(card.agent)) throw noAgent();
    return answerCard(context, createCard(card), card.agent === undefined);
  });
  app.on('POST', ['/a2a', '/a2a/', '/a2a/:agent', '/a2a/:agent/'], (context) => answerRpc(context, about(context)));
  app.on('GET', ['/a2a', '/a2a/:agent'], (context) => {
    context.header('allow', 'POST');
    return refuse(context, 405, SERVER_ERROR, `POST each request; the agent card is at ${CARD_PATH}`);
  });
}

function noAgent(): GatewayError {
  return new GatewayError({ status: 404, type: 'not-found', message: 'there is no such agent' });
}

/** For what is refused before a request is read. */
export function answerA2aProblem(context: Context, { status, message }: Problem): Response {
  const code = status >= 500 ? INTERNAL_ERROR : status === 413 || status === 400 ? INVALID_REQUEST : SERVER_ERROR;
  return refuse(context, status, code, message);
}

function refuse(context: Context, status: Problem['status'], code: number, message: string, id: Envelope['id'] = null): Response {
  return context.json({ jsonrpc: '2.0', id, error: { code, message } }, status);
}

function answerCard(context: GatewayContext, card: object, isOpen: boolean): Response {
  const body = JSON.stringify(card);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
  context.header('etag', etag);
  context.header('vary', 'host, x-forwarded-host, x-forwarded-proto', { append: true });
  context.header('cache-control', `${isOpen ? 'public' : 'private'}, max-age=${CARD_MAX_AGE_S}`);
  if (context.req.header('if-none-match') === etag) return context.body(null, 304);
  return context.body(body, 200, { 'content-type': 'application/json' });
}

async function answerRpc(context: GatewayContext, card: CardOptions): Promise<Response> {
  const sdk = await loadSdk();
  const version = context.req.header('a2a-version') || context.req.query('A2A-Version') || LEGACY_VERSION;
  const isLegacy = version === LEGACY_VERSION;
  const wording = (error: unknown): object =>
    isLegacy
      ? sdk.legacy.LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
      : sdk.server.JsonRpcTransportHandler.mapToJSONRPCError(error);
  const type = context.req.header('content-type')?.split(';')[0]?.trim().toLowerCase() ?? 'application/json';
  if (type !== 'application/json') {
    const error = wording(new sdk.errors.ContentTypeNotSupportedError('the request must be application/json'));
    return context.json({ jsonrpc: '2.0', id: null, error }, 415);
  }
  const body: unknown = await context.req.json().catch(() => undefined);
  if (body === undefined) return refuse(context, 400, PARSE_ERROR, 'the request is no JSON');
  const rpc = envelope.safeParse(body);
  if (!rpc.success) return refuse(context, 400, INVALID_REQUEST, 'the request is none of JSON-RPC 2.0 (batches are not taken)');
  const { id = null } = rpc.data;
  if (!(A2A_VERSIONS as readonly string[]).includes(version)) {
    const words = `A2A-Version ${JSON.stringify(version.slice(0, 20))} is not spoken here: ${A2A_VERSIONS.join(' and ')} are`;
    return context.json({ jsonrpc: '2.0', id, error: wording(new sdk.errors.VersionNotSupportedError(words)) });
  }
  return isStreaming(rpc.data)
    ? stream(context, { sdk, card, isLegacy, rpc: rpc.data, wording })
    : answerOnce(context, { sdk, card, isLegacy, rpc: rpc.data, wording });
}

function isStreaming({ method }: Envelope): boolean {
  return STREAMING.includes(method);
}

interface Answering {
  readonly sdk: Sdk;
  readonly card: CardOptions;
  readonly isLegacy: boolean;
  readonly rpc: Envelope;
  /** An error, as the version has it. */
  readonly wording: (error: unknown) => object;
}

/** A handler for one request: the request decides what it may see and when it ends. */
function handle(
  context: GatewayContext,
  { sdk, card, isLegacy, rpc }: Answering,
  signal: AbortSignal,
  onFailure: (error: unknown) => void,
) {
  const handler = createA2aHandler({
    ...{ sdk, card, signal, onFailure },
    core: context.get('conversations'),
    principal: context.get('principal'),
    agents: context.get('agents'),
  });
  const transport = isLegacy ? new sdk.legacy.LegacyJsonRpcTransportHandler(handler) : new sdk.server.JsonRpcTransportHandler(handler);
  const call = new sdk.server.ServerCallContext({ requestedVersion: isLegacy ? LEGACY_VERSION : A2A_VERSIONS[0] });
  return transport.handle(rpc, call);
}

async function answerOnce(context: GatewayContext, answering: Answering): Promise<Response> {
  let failure: { readonly error: unknown } | undefined;
  const answer = await handle(context, answering, requestSignal(context), (error) => (failure ??= { error }));
  // With the status that says so, and in the log where it was not foreseen.
  if (failure) throw failure.error;
  return context.json(answer as object);
}

async function stream(context: GatewayContext, answering: Answering): Promise<Response> {
  const { sdk, rpc, wording } = answering;
  const { id = null } = rpc;
  const toRpcError = (error: unknown): object => ({
    jsonrpc: '2.0',
    id,
    error: wording(toRefusal(sdk, error) ?? new Error(toProblem(error).message)),
  });
  try {
    return await sendEvents(
      context,
      async function* (gone) {
        let failure: { readonly error: unknown } | undefined;
        const answer = await handle(context, answering, gone, (error) => (failure ??= { error }));
        if (!(Symbol.asyncIterator in answer)) throw new Refused(answer);
        try {
          for await (const event of answer) yield { data: JSON.stringify(event) };
        } catch (error) {
          throw failure === undefined ? error : failure.error;
        }
      },
      (error) => ({ data: JSON.stringify(error instanceof Refused ? error.answer : toRpcError(error)) }),
    );
  } catch (error) {
    if (error instanceof Refused) return context.json(error.answer);
    if (toRefusal(sdk, error) === undefined) throw error;
    return context.json(toRpcError(error));
  }
}

/** The refusal of the library before the stream began. */
class Refused extends Error {
  constructor(readonly answer: object) {
    super('refused');
  }
}
