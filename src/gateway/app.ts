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
import { MAX_ATTACHMENT_BYTES } from '../client/attach.js';
import { createHosts } from './access/hosts.js';
import type { Principal } from './access/principal.js';
import type { Authenticate } from './access/tokens.js';
import { createConversations, type Conversations } from './core/conversations.js';
import { GatewayError, toProblem, type Problem } from './core/errors.js';
import { addMcpRoutes } from './mcp/routes.js';
import { createMetrics } from './metrics.js';
import { answerNative, needs, type GatewayApp, type GatewayContext, type GatewayVariables } from './context.js';
import { addAnthropicRoutes, answerAnthropicProblem } from './anthropic/routes.js';
import { addAguiRoutes, answerAguiProblem } from './ag-ui/routes.js';
import { addAiSdkRoutes, answerChatProblem } from './ai-sdk/routes.js';
import { addNativeRoutes } from './native/routes.js';
import { addOpenaiRoutes, answerOpenaiProblem } from './openai/routes.js';

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

const MAX_BODY_BYTES = 1024 * 1024;
/** Of clients that send all that was said with each message. */
const MAX_HISTORY_BYTES = 8 * 1024 * 1024;
/** By path, where it is not MAX_BODY_BYTES. */
const BODY_LIMITS: readonly (readonly [RegExp, number])[] = [
  [/^\/v1\/conversations\/[^/]+\/attachments$/, MAX_ATTACHMENT_BYTES],
  [/^\/(api\/chat|agui|v1\/chat\/completions|v1\/responses|v1\/messages)$/, MAX_HISTORY_BYTES],
];
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
  const bodies = [...BODY_LIMITS, [/^/, MAX_BODY_BYTES] as const].map(
    ([paths, maxSize]) => [paths, bodyLimit({ maxSize, onError: tooLarge(maxSize) })] as const,
  );
  app.use((context, next) => bodies.find(([paths]) => paths.test(context.req.path))?.[1](context, next) ?? next());

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
  addMcpRoutes(app);
  addOpenaiRoutes(app);
  addAnthropicRoutes(app);
  addAiSdkRoutes(app);
  addAguiRoutes(app);
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
    return answerProblem(context, problem);
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

/** Protocols whose clients read errors of a shape of their own, by their paths. */
const PROBLEM_SHAPES: readonly (readonly [RegExp, (context: Context, problem: Problem) => Response])[] = [
  [/^\/v1\/(chat|responses|models)(\/|$)/, answerOpenaiProblem],
  [/^\/v1\/messages(\/|$)/, answerAnthropicProblem],
  [/^\/api\/chat(\/|$)/, answerChatProblem],
  [/^\/agui(\/|$)/, answerAguiProblem],
];

/** In the shape of the path's protocol, else as RFC 9457 has it. */
function answerProblem(context: Context, problem: Problem): Response {
  const { retryAfter } = problem;
  if (retryAfter !== undefined) context.header('retry-after', String(retryAfter));
  const [, shaped] = PROBLEM_SHAPES.find(([paths]) => paths.test(context.req.path)) ?? [];
  return (shaped ?? answerNative)(context, problem);
}

/** What is left of the body is not read, so that nothing else can come on this connection. */
function tooLarge(bytes: number): (context: Context) => Response {
  return (context) => {
    context.header('connection', 'close');
    const message = `a request may have ${bytes} bytes here; send more as an attachment`;
    return answerProblem(context, { status: 413, type: 'too-large', message });
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
