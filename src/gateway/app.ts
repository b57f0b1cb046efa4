/**
 * The gateway: every conversation over HTTP. What all protocols share stands here, in the order in which a request meets it: log and
 * metrics, host and origin, size, token, rate; then each protocol's routes.
 */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { cors } from 'hono/cors';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import type { PerduraClient } from '../client.js';
import { createHosts } from './access/hosts.js';
import { mayAct, type Principal, type Role } from './access/principal.js';
import type { Authenticate } from './access/tokens.js';
import { createConversations, type Conversations } from './core/conversations.js';
import { GatewayError, toProblem, type Problem } from './core/errors.js';
import { createMetrics, type GatewayMetrics } from './metrics.js';
import { addAiSdkRoutes, answerChatProblem, CHAT_PATH } from './ai-sdk/routes.js';
import { addNativeRoutes } from './native/routes.js';

export interface GatewayOptions {
  readonly client: PerduraClient;
  /** Who holds a token. */
  readonly authenticate: Authenticate;
  /** Names of agents that may be asked for; default: none is listed. */
  readonly agents?: () => Promise<readonly string[]>;
  /** Hosts beside loopback by which it is reached, and origins of pages that may ask from elsewhere. */
  readonly hosts?: readonly string[];
  readonly origins?: readonly string[];
  /** What `/readyz` asks, by name; each throws where it is not ready. */
  readonly checks?: Readonly<Record<string, () => Promise<unknown>>>;
  /** Requests of one token in a minute; default 1,200. */
  readonly requestsPerMinute?: number;
  readonly version?: string;
  /** What went wrong, and where. */
  readonly log?: (line: string) => void;
  /** A line for each request, without what was said. */
  readonly accessLog?: (line: string) => void;
  /** Ends streams, so that a server can close. */
  readonly closing?: AbortSignal;
  /** Where it stands behind a proxy, such as `/perdura`; default: at the root. */
  readonly basePath?: string;
}

export interface GatewayVariables {
  readonly Variables: {
    readonly principal: Principal;
    readonly conversations: Conversations;
    readonly metrics: GatewayMetrics;
    readonly closing: AbortSignal;
    readonly agents: () => Promise<readonly string[]>;
  };
}

export type GatewayApp = OpenAPIHono<GatewayVariables>;
export type GatewayContext = Context<GatewayVariables>;

const MAX_BODY_BYTES = 1024 * 1024;
/** Of clients that send all that was said with each message. */
const MAX_HISTORY_BYTES = 8 * 1024 * 1024;
const WHOLE_HISTORIES = new Set([CHAT_PATH]);
/** Wrong tokens from one address in a minute. */
const MAX_WRONG_TOKENS = 30;
const OPEN_PATHS = new Set(['/healthz', '/readyz', '/.well-known/agent-card.json']);

/** A Hono app: `app.fetch` serves it in any server, `serveGateway` in one of its own. */
export function createGateway(options: GatewayOptions): GatewayApp {
  const { client, version = '0', log = () => undefined, closing = new AbortController().signal } = options;
  const metrics = createMetrics();
  const conversations = createConversations(client, log);
  const app: GatewayApp = new OpenAPIHono<GatewayVariables>({ defaultHook: refuseInvalid });
  const provided = { conversations, metrics, closing, agents: options.agents ?? (() => Promise.resolve([])) };

  app.use(async (context, next) => {
    for (const [name, value] of Object.entries(provided)) context.set(name as 'conversations', value as Conversations);
    const began = performance.now();
    await next();
    const route = context.req.routePath === '/*' ? 'other' : context.req.routePath;
    metrics.request(context.req.method, route, context.res.status, (performance.now() - began) / 1000);
    options.accessLog?.(accessLine(context, performance.now() - began));
  });
  app.use(checkHost(options));
  if ((options.origins ?? []).length > 0) app.use(cors({ origin: [...(options.origins ?? [])], credentials: true }));
  const limits = [MAX_BODY_BYTES, MAX_HISTORY_BYTES].map((maxSize) => bodyLimit({ maxSize, onError: tooLarge(maxSize) }));
  app.use((context, next) => limits[WHOLE_HISTORIES.has(context.req.path) ? 1 : 0]?.(context, next) ?? next());

  app.get('/healthz', (context) => context.json({ status: 'ok', version }));
  app.get('/readyz', async (context) => {
    const checks = Object.entries(options.checks ?? {});
    const answers = await Promise.all(checks.map(async ([name, check]) => [name, await isReady(check)] as const));
    const isAll = answers.every(([, ready]) => ready);
    return context.json({ status: isAll ? 'ready' : 'not-ready', ...Object.fromEntries(answers) }, isAll ? 200 : 503);
  });

  app.use(authenticated(options));
  app.get('/metrics', needs('operator'), async (context) =>
    context.text(await metrics.text(), 200, { 'content-type': metrics.contentType }),
  );
  addNativeRoutes(app);
  addAiSdkRoutes(app);
  app.doc31('/openapi.json', {
    openapi: '3.1.0',
    info: { title: 'Perdura', version, description: 'Durable conversations with AI agents.' },
    security: [{ token: [] }],
  });
  app.openAPIRegistry.registerComponent('securitySchemes', 'token', { type: 'http', scheme: 'bearer' });

  app.notFound((context) => answerProblem(context, { status: 404, type: 'not-found', message: `there is no ${context.req.path}` }));
  app.onError((error, context) => {
    const problem = toProblem(error);
    if (problem.status === 500) log(`${context.req.method} ${context.req.path} failed: ${error.stack ?? error.message}`);
    return (context.req.path.startsWith(CHAT_PATH) ? answerChatProblem : answerProblem)(context, problem);
  });
  if (options.basePath === undefined) return app;
  const based: GatewayApp = new OpenAPIHono<GatewayVariables>();
  based.mount(options.basePath, app.fetch);
  return based;
}

/** A path may name anything: it is cut, and has no control characters, since a URL has none. */
function accessLine(context: GatewayContext, ms: number): string {
  const who = (context.get('principal') as Principal | undefined)?.name ?? '-';
  return `${context.req.method} ${context.req.path.slice(0, 200)} ${context.res.status} ${Math.round(ms)} ms ${who}`;
}

/** RFC 9457. */
export function answerProblem(context: Context, { status, type, message, retryAfter }: Problem): Response {
  if (retryAfter !== undefined) context.header('retry-after', String(retryAfter));
  return context.body(JSON.stringify({ type: `urn:perdura:${type}`, title: type, status, detail: message }), status, {
    'content-type': 'application/problem+json',
  });
}

/** For routes that not all may use. */
export function needs(role: Role): MiddlewareHandler<GatewayVariables> {
  return async (context, next) => {
    if (!mayAct(context.get('principal'), role)) {
      throw new GatewayError({ status: 403, type: 'forbidden', message: `this needs the role ${role}` });
    }
    await next();
  };
}

function tooLarge(bytes: number): () => never {
  return () => {
    throw new GatewayError({
      status: 413,
      type: 'too-large',
      message: `a request may have ${bytes} bytes; send more as an attachment`,
    });
  };
}

function checkHost({ hosts = [], origins = [] }: GatewayOptions): MiddlewareHandler<GatewayVariables> {
  const known = createHosts({ names: hosts, origins });
  return async (context, next) => {
    const host = context.req.header('host');
    if (!known.isAllowedHost(host)) {
      throw new GatewayError({
        status: 403,
        type: 'forbidden',
        message: 'this host is not served here: `perdura serve --allow-host` adds one',
      });
    }
    const isChange = !['GET', 'HEAD', 'OPTIONS'].includes(context.req.method);
    if (isChange && !known.isAllowedOrigin(context.req.header('origin'), host)) {
      throw new GatewayError({
        status: 403,
        type: 'forbidden',
        message: 'pages of this origin may not ask: `perdura serve --allow-origin` adds one',
      });
    }
    await next();
  };
}

function authenticated({ authenticate, requestsPerMinute = 1_200 }: GatewayOptions): MiddlewareHandler<GatewayVariables> {
  const wrong = new RateLimiterMemory({ points: MAX_WRONG_TOKENS, duration: 60 });
  const requests = new RateLimiterMemory({ points: requestsPerMinute, duration: 60 });
  return async (context, next) => {
    if (OPEN_PATHS.has(context.req.path)) return next();
    const presented = presentedToken(context);
    const principal = presented === undefined ? undefined : await authenticate(presented);
    if (principal === undefined) {
      await within(wrong, addressOf(context));
      context.header('www-authenticate', 'Bearer');
      throw new GatewayError({
        status: 401,
        type: 'unauthorized',
        message: `${presented === undefined ? 'a token is needed' : 'this token opens nothing'}: send Authorization: Bearer with the one that \`perdura serve\` names`,
      });
    }
    await within(requests, principal.name);
    context.set('principal', principal);
    return next();
  };
}

/** Clients of Anthropic's API send `x-api-key`. */
function presentedToken(context: Context): string | undefined {
  const [, token] = /^Bearer +(\S{1,2048})$/i.exec(context.req.header('authorization') ?? '') ?? [];
  return token ?? context.req.header('x-api-key');
}

async function within(limiter: RateLimiterMemory, key: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    const retryAfter = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
    throw new GatewayError({ status: 429, type: 'too-many-requests', message: `too many requests: wait ${retryAfter} s`, retryAfter });
  }
}

function addressOf(context: Context): string {
  const incoming = (context.env as { incoming?: { socket?: { remoteAddress?: string } } } | undefined)?.incoming;
  return incoming?.socket?.remoteAddress ?? 'unknown';
}

async function isReady(check: () => Promise<unknown>): Promise<boolean> {
  try {
    await check();
    return true;
  } catch {
    return false;
  }
}

/** What a schema refuses, in words: the field and what it must be. */
function refuseInvalid(result: { success: boolean; error?: unknown }): undefined {
  if (result.success) return;
  const issues = (result.error as { issues?: { path: PropertyKey[]; message: string }[] } | undefined)?.issues ?? [];
  const words = issues.slice(0, 5).map(({ path, message }) => (path.length === 0 ? message : `${path.join('.')}: ${message}`));
  throw new GatewayError({ status: 400, type: 'invalid', message: words.join('; ') || 'the request cannot be read' });
}
