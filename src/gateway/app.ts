/**
 * The gateway: every conversation over HTTP. What all protocols share is here, in the order in which a request meets it: log and
 * metrics, host and origin, size, principal and rate; then each protocol's routes.
 */
import { randomUUID } from 'node:crypto';
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { PerduraClient } from '../client.js';
import { MAX_ATTACHMENT_BYTES, DEFAULT_UPLOAD_BYTES } from '../client/uploads.js';
import { authenticated } from './access/authenticated.js';
import type { Browsers, Authenticate } from './access/entrance.js';
import { createHosts, createProxies } from './access/proxies.js';
import { createLimits, type SharedCounts } from './access/limits.js';
import type { Principal } from './access/principal.js';
import { addMcpSignInRoutes, MCP_SIGN_IN_PATHS, type McpSignIn } from './access/mcp-sign-in.js';
import { addBrowserRoutes, BROWSER_PATHS } from './access/routes.js';
import { collectBodies } from './core/read-body.js';
import { createRepeatedRequests, notesInMemory, type Notes } from './core/repeated-requests.js';
import { createConversations, type Conversations } from './core/conversations.js';
import { GatewayError, toProblem, type Problem } from './core/errors.js';
import { addA2aRoutes, answerA2aProblem } from './a2a/routes.js';
import { addMcpRoutes } from './mcp/routes.js';
import {
  type AddedCase,
  answerNative,
  needs,
  type AgentDescription,
  type Finding,
  type GatewayApp,
  type GatewayContext,
  type GatewayMetrics,
  type GatewayVariables,
} from './context.js';
import { addAnthropicRoutes, answerAnthropicProblem, isAnthropic } from './anthropic/routes.js';
import { addAguiRoutes, answerAguiProblem } from './ag-ui/routes.js';
import { addAiSdkRoutes, answerChatProblem } from './ai-sdk/routes.js';
import { addNativeRoutes } from './native/routes.js';
import { ofTenant, untenanted } from './tenants/routes.js';
import { answerOpenaiProblem } from './openai/frames.js';
import { addOpenaiRoutes } from './openai/routes.js';
import { addPage, OWN_PAGE } from './page/routes.js';

/** What `createGateway` is given. */
export interface GatewayOptions {
  readonly client: PerduraClient;
  /** Finds the principal of a token. */
  readonly authenticate: Authenticate;
  /** Lets browsers in by a cookie; absent: tokens alone open. */
  readonly browsers?: Browsers;
  /** Lets people sign in at agents' MCP servers; absent: the links of such approvals lead nowhere. */
  readonly mcpSignIn?: McpSignIn;
  /** Names of agents that clients may use, for a tenant or for clients of no tenant; default: none is listed. */
  readonly agents?: (tenant?: string) => Promise<readonly string[]>;
  /** What an agent is made of, by its name; for a tenant only what it may use. Default: nothing is known of any. */
  readonly describeAgent?: (name: string, tenant?: string) => Promise<AgentDescription | undefined>;
  /** What may be wrong where it runs, as `perdura doctor` has it. */
  readonly findings?: () => Promise<readonly Finding[]>;
  /** Adds a turn, as this client sees it, to a dataset of the project that it runs in; absent: it writes into none. */
  readonly addToDataset?: (
    client: PerduraClient,
    id: string,
    turn: string,
    to: { readonly name: string; readonly labels: readonly string[] },
  ) => Promise<AddedCase | undefined>;
  /** Where Temporal's UI shows an event, by workflow, run and event; those of a tenant are not linked. */
  readonly temporalLink?: (workflow: string, run: string, event: number) => string | undefined;
  /** Hashes tenants' ids: the same for every gateway of an installation. Without one no tenant is served. */
  readonly tenantKey?: string;
  /**
   * Of the installation: seals what MCP clients bring back when they repeat a call; the first closes, each opens. Without one, a client
   * has to repeat it at the same gateway.
   */
  readonly secrets?: readonly [string, ...string[]];
  /** Hosts beside loopback by which it is reached, and other origins whose pages may send requests. */
  readonly hosts?: readonly string[];
  readonly origins?: readonly string[];
  /** The checks of `/readyz`, by name; each throws where it is not ready. */
  readonly checks?: Readonly<Record<string, () => Promise<unknown>>>;
  /** Requests of one token in a minute; default 1,200. */
  readonly requestsPerMinute?: number;
  /** Requests and streams of one token that are open at once; default 2,000. */
  readonly openPerToken?: number;
  /**
   * A file of `POST /v1/attachments`: most bytes (default: 10 MiB), how long its sender may be silent (20,000 ms), and for how long one
   * waits that no message has named (24 hours).
   */
  readonly attachments?: { readonly maxBytes?: number; readonly silenceMs?: number; readonly keepMs?: number };
  /** Milliseconds after which the token of an open request is looked at again, each time; default 15,000. */
  readonly lookAgainMs?: number;
  /** Where gateways of one installation count together; absent: each counts alone. */
  readonly sharedCounts?: SharedCounts;
  /** Where gateways of one installation note requests, so that what a client repeats is one message; absent: each gateway alone. */
  readonly requestNotes?: Notes;
  /** A request with the body of an earlier one, within ten minutes, is that one; default: only where its client says that it repeats. */
  readonly joinEqualRequests?: boolean;
  /** Addresses of proxies whose `X-Forwarded-*` count, such as `10.0.0.0/8`. */
  readonly trustedProxies?: readonly string[];
  readonly version?: string;
  /** What went wrong, and where. */
  readonly log?: (line: string) => void;
  /** Takes secrets out of that, and out of what it says of an error to clients. Default: nothing is taken out. */
  readonly redact?: (text: string) => string;
  /** A line for each request, without its text. */
  readonly accessLog?: (line: string) => void;
  /** Ends streams, so that a server can close. */
  readonly closing?: AbortSignal;
  /** Its path behind a proxy, such as `/perdura`; default: the root. */
  readonly basePath?: string;
  /** Folder of the page for people, as it was built; default: the one in the package. False: there is none. */
  readonly page?: string | false;
}

const ATTACHMENTS_PATH = '/v1/attachments';
const UPLOAD_SILENCE_MS = 20_000;
const MAX_BODY_BYTES = 1024 * 1024;
/** For clients that send the whole history with each message. */
const MAX_HISTORY_BYTES = 8 * 1024 * 1024;
/** By path, where it is not MAX_BODY_BYTES. */
const BODY_LIMITS: readonly (readonly [RegExp, number])[] = [
  [/^\/v1\/conversations\/[^/]+\/attachments$/, MAX_ATTACHMENT_BYTES],
  [/^\/(api\/chat|agui|a2a(?:\/[^/]*)?|v1\/chat\/completions|v1\/responses|v1\/messages)$/, MAX_HISTORY_BYTES],
];
/** Of every answer that says nothing else: it is for this client alone, and of the type that it names. */
const CAREFUL = [
  ['x-content-type-options', 'nosniff'],
  ['cache-control', 'no-store'],
] as const;
export const MAX_HEADERS = 100;
const UNSERVED = new Set(['TRACE', 'TRACK', 'CONNECT']);
/** Wrong tokens from one address in a minute. */
const MAX_WRONG_TOKENS = 30;
const OPEN_PATHS = new Set(['/healthz', '/readyz', '/.well-known/agent-card.json', ...BROWSER_PATHS, ...MCP_SIGN_IN_PATHS]);

/** A Hono app: `app.fetch` serves it in any server, `serveGateway` in one that it starts. */
export function createGateway(options: GatewayOptions): GatewayApp {
  const { client, version = '0', redact = (text) => text, closing = new AbortController().signal } = options;
  const log = (line: string): void => options.log?.(redact(line));
  const metrics = createMetrics();
  const conversations = createConversations(client, log);
  const app: GatewayApp = new OpenAPIHono<GatewayVariables>({ defaultHook: refuseInvalid });
  const { temporalLink } = options;
  const uploads = { maxBytes: DEFAULT_UPLOAD_BYTES, silenceMs: UPLOAD_SILENCE_MS, ...options.attachments };
  const joinsEqual = options.joinEqualRequests === true;
  const record = createRepeatedRequests(options.requestNotes ?? notesInMemory(), { joinsEqual, log });
  const provided = {
    repeated: { record, joinsEqual },
    uploads,
    conversations,
    metrics,
    closing,
    redact,
    agents: () => options.agents?.() ?? Promise.resolve([]),
    describeAgent: (name: string) => options.describeAgent?.(name) ?? Promise.resolve(undefined),
    findings: () => options.findings?.() ?? Promise.resolve([]),
    addToDataset: options.addToDataset ?? (() => Promise.resolve(undefined)),
    temporalLink: (id: string) => Promise.resolve(temporalLink && ((run: string, event: number) => temporalLink(id, run, event) ?? null)),
  };

  app.use(async (context, next) => {
    for (const [name, value] of Object.entries(provided)) context.set(name as 'conversations', value as Conversations);
    const began = performance.now();
    for (const [name, value] of CAREFUL) context.header(name, value);
    const requestId = `req_${randomUUID().replaceAll('-', '')}`;
    context.set('requestId', requestId);
    context.header('x-request-id', requestId);
    if (isAnthropic(context.req.path)) context.header('request-id', requestId);
    await next();
    if (isWholeAnswer(context)) context.get('delivered')?.();
    const route = context.req.routePath === '/*' ? 'other' : context.req.routePath;
    metrics.request(context.req.method, route, context.res.status, (performance.now() - began) / 1000);
    options.accessLog?.(redact(accessLine(context, performance.now() - began)));
  });
  const seenFrom = createProxies(options.trustedProxies ?? []);
  app.use(async (context, next) => {
    const { incoming } = (context.env ?? {}) as { incoming?: Incoming };
    const peer = incoming?.socket?.remoteAddress;
    const header = (name: string): string | undefined => context.req.header(name);
    context.set('seen', seenFrom({ url: context.req.url, header, ...(peer !== undefined && { peer }) }));
    if ((incoming?.rawHeaders?.length ?? 0) > 2 * MAX_HEADERS) throw tooManyHeaders();
    await next();
  });
  app.use(checkHost(options));
  if ((options.origins ?? []).length > 0) app.use(cors({ origin: [...(options.origins ?? [])] }));
  app.use(openNothingForHead);
  // What browsers and proxies must not be answered: it would show a request to who has not sent it, or open a tunnel.
  app.use(async (context, next) => {
    if (!UNSERVED.has(context.req.method)) return next();
    context.header('allow', listMethods(app, context.req.path).join(', '));
    throw new GatewayError({ status: 405, type: 'not-allowed', message: `${context.req.method} is not served` });
  });

  app.get('/healthz', (context) => context.json({ status: 'ok', version }));
  app.get('/readyz', async (context) => {
    const checks = Object.entries(options.checks ?? {});
    const answers = await Promise.all(checks.map(async ([name, check]) => [name, await isReady(check)] as const));
    const isAll = answers.every(([, ready]) => ready);
    return context.json({ status: isAll ? 'ready' : 'not-ready', ...Object.fromEntries(answers) }, isAll ? 200 : 503);
  });

  let described: string | undefined;
  // For everybody, and made once: it says nothing of this installation.
  app.get('/openapi.json', (context) => {
    described ??= JSON.stringify(app.getOpenAPI31Document(describeApi(version, options.basePath)));
    return context.body(described, 200, { 'content-type': 'application/json' });
  });

  const { authenticate, browsers, requestsPerMinute = 1_200, openPerToken = 2_000 } = options;
  const createLimiter = createLimits(options.sharedCounts);
  const wrong = createLimiter('wrong', MAX_WRONG_TOKENS, 60);
  if (options.page !== false) addPage(app, { folder: options.page ?? OWN_PAGE, basePath: options.basePath ?? '' });
  app.get('/', async (context) => {
    const signIn = (await browsers?.signIn()) === undefined ? {} : { signIn: '/auth/login' };
    return context.json({ name: 'Perdura', version, is: 'conversations with AI agents, over HTTP', described: '/openapi.json', ...signIn });
  });
  if (browsers !== undefined) addBrowserRoutes(app, { browsers, wrong, basePath: options.basePath ?? '' });
  if (options.mcpSignIn !== undefined) addMcpSignInRoutes(app, { signIn: options.mcpSignIn, client, wrong, log });
  app.use(
    authenticated({
      authenticate,
      ...(browsers !== undefined && { browsers }),
      createLimiter,
      wrong,
      requestsPerMinute,
      openPerToken,
      openPaths: OPEN_PATHS,
      ...(options.lookAgainMs !== undefined && { lookAgainMs: options.lookAgainMs }),
    }),
  );
  app.use(collectBodies({ limit: limitBody, tooLarge: refuseTooLarge }));
  app.use(ofTenant(options));
  app.get('/metrics', untenanted, needs('operator'), async (context) =>
    context.text(await metrics.text(), 200, { 'content-type': metrics.contentType }),
  );
  addNativeRoutes(app);
  addMcpRoutes(app, options);
  addOpenaiRoutes(app);
  addAnthropicRoutes(app);
  addAiSdkRoutes(app);
  addA2aRoutes(app, options);
  addAguiRoutes(app);
  app.openAPIRegistry.registerComponent('securitySchemes', 'token', { type: 'http', scheme: 'bearer' });

  app.notFound((context) => {
    const allowed = listMethods(app, context.req.path);
    if (allowed.length === 0) return answerProblem(context, { status: 404, type: 'not-found', message: `there is no ${context.req.path}` });
    context.header('allow', allowed.join(', '));
    const message = `${context.req.path} has ${allowed.join(', ')}, and not ${context.req.method}`;
    return answerProblem(context, { status: 405, type: 'not-allowed', message });
  });
  app.onError((error, context) => {
    const problem = toProblem(error);
    if (problem.status === 500) {
      log(`${context.req.method} ${context.req.path} failed (${context.get('requestId')}): ${error.stack ?? error.message}`);
    }
    return answerProblem(context, { ...problem, message: redact(problem.message) });
  });
  if (options.basePath === undefined) return app;
  const based: GatewayApp = new OpenAPIHono<GatewayVariables>();
  based.mount(options.basePath, app.fetch);
  return based;
}

function describeApi(version: string, basePath = '') {
  const description = 'Durable conversations with AI agents. An operator of no tenant may add `?tenant=NAME` to any path.';
  return {
    openapi: '3.1.0',
    info: { title: 'Perdura', version, description, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: basePath === '' ? '/' : basePath, description: 'where this document is' }],
    security: [{ token: [] }],
  };
}

export function createMetrics(): GatewayMetrics {
  const registers = [new Registry()];
  const labelNames = ['method', 'route', 'status'] as const;
  const requests = new Counter({ name: 'perdura_gateway_requests_total', help: 'Requests answered', labelNames, registers });
  const seconds = new Histogram({
    name: 'perdura_gateway_request_seconds',
    help: 'Time until the answer began',
    labelNames: ['method', 'route'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers,
  });
  const streams = new Gauge({ name: 'perdura_gateway_open_streams', help: 'Streams that are open now', registers });
  return {
    contentType: registers[0]?.contentType ?? 'text/plain',
    streams: { inc: () => streams.inc(), dec: () => streams.dec() },
    request(method, route, status, took) {
      requests.inc({ method, route, status });
      seconds.observe({ method, route }, took);
    },
    text: async () => (await registers[0]?.metrics()) ?? '',
  };
}

/** A stream says itself when it is over; what has failed may be tried again. */
function isWholeAnswer({ req, res }: GatewayContext): boolean {
  return res.status < 400 && !req.raw.signal.aborted && res.headers.get('content-type')?.startsWith('text/event-stream') !== true;
}

/** Of the routes at that path; none where there is no such path. */
function listMethods(app: GatewayApp, path: string): readonly string[] {
  const at = app.routes.filter(
    ({ method, path: pattern }) => method !== 'ALL' && new RegExp(`^${pattern.replace(/:\w+/g, '[^/]+')}$`).test(path),
  );
  return [...new Set(at.map(({ method }) => method))];
}

/** A path may name anything: it is cut, and has no control characters, since a URL has none. */
function accessLine(context: GatewayContext, ms: number): string {
  const who = (context.get('principal') as Principal | undefined)?.name ?? '-';
  return `${context.req.method} ${context.req.path.slice(0, 200)} ${context.res.status} ${Math.round(ms)} ms ${who} ${context.get('requestId')}`;
}

/** Protocols whose clients read errors of a custom shape, by their paths. */
const PROBLEM_SHAPES: readonly (readonly [RegExp, (context: Context, problem: Problem) => Response])[] = [
  [/^\/v1\/(chat|responses|models)(\/|$)/, answerOpenaiProblem],
  [/^\/v1\/messages(\/|$)/, answerAnthropicProblem],
  [/^\/api\/chat(\/|$)/, answerChatProblem],
  [/^\/a2a(\/|$)/, answerA2aProblem],
  [/^\/agui(\/|$)/, answerAguiProblem],
];

/** In the shape of the path's protocol, else as RFC 9457 has it. */
function answerProblem(context: GatewayContext, problem: Problem): Response {
  const { retryAfter } = problem;
  if (retryAfter !== undefined) context.header('retry-after', String(retryAfter));
  const [, shaped] = PROBLEM_SHAPES.find(([paths]) => paths.test(context.req.path)) ?? [];
  return (shaped ?? answerNative)(context, problem);
}

interface Incoming {
  readonly rawHeaders?: readonly string[];
  readonly socket?: { readonly remoteAddress?: string };
}

/** Node silently drops headers beyond its limit: the missing one may matter. */
function tooManyHeaders(): GatewayError {
  return new GatewayError({ status: 431, type: 'too-large', message: `a request may have ${MAX_HEADERS} headers` });
}

/** The most bytes of a body; undefined: a file is counted as it comes, and not collected first. */
function limitBody(path: string): number | undefined {
  if (path === ATTACHMENTS_PATH) return undefined;
  return BODY_LIMITS.find(([paths]) => paths.test(path))?.[1] ?? MAX_BODY_BYTES;
}

/** The rest of the body is not read, so that nothing else can come on this connection. */
function refuseTooLarge(context: Context, bytes: number): Response {
  context.header('connection', 'close');
  const message = `a request may have ${bytes} bytes here; send more as an attachment`;
  return answerProblem(context, { status: 413, type: 'too-large', message });
}

/** Hono answers HEAD by the route of GET and drops what it streams, which would stay open for ever. */
const openNothingForHead: MiddlewareHandler<GatewayVariables> = async (context, next) => {
  await next();
  if (context.req.method === 'HEAD') await context.res.body?.cancel();
};

function checkHost({ hosts = [], origins = [] }: GatewayOptions): MiddlewareHandler<GatewayVariables> {
  const known = createHosts({ names: hosts, origins });
  return async (context, next) => {
    const { host } = context.get('seen');
    if (!known.isAllowedHost(host)) {
      throw new GatewayError({
        status: 403,
        type: 'forbidden',
        message: 'this host is not served here: `perdura serve --allow-host` adds one',
      });
    }
    // A preflight of a browser gets an answer where its origin is allowed.
    const isReading = ['GET', 'HEAD'].includes(context.req.method);
    if (!isReading && !known.isAllowedOrigin(context.req.header('origin'), host)) {
      throw new GatewayError({
        status: 403,
        type: 'forbidden',
        message: 'pages of this origin may not ask: `perdura serve --allow-origin` adds one',
      });
    }
    await next();
  };
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
