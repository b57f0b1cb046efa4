/** Opens a connection to a server, and asks over it. Answers are checked loosely: what one tool gets wrong concerns that tool. */
import { resolve } from 'node:path';
import { z } from 'zod';
import type { JsonObject } from '../../records/message.js';
import { ConnectionFault, type Connection, type ConnectOptions, type Listed, type Mode, type Requests } from './connection.js';
import type { McpServer } from './server-config.js';
import {
  createJsonDepthLimit,
  createMessageRateLimiter,
  createStdioTransport,
  loadSdk,
  MAX_BYTES,
  SHAPE_REFUSAL,
  withoutNullFields,
  type Client,
  type Sdk,
  type Tool,
  type Transport,
} from './stdio-transport.js';
import { createLooseTransport, type LooseTransport, FIRST_MODERN, wholeAnswer } from './revision.js';
import { errorFields } from '../../platform/errors.js';
import { isRecord } from '../../platform/json.js';
import { orUndefinedAfter, withTimeout } from '../../platform/promises.js';

/** For the answer to a first question that older servers do not know, and some of them never answer. */
const PROBE_MS = 3_000;
const LEAVE_MS = 1_000;
/** What a child process gets of the worker's environment; where a program lies and who runs it, and no key. */
const INHERITED = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'];

/**
 * `server` is expanded. Rejects with a ConnectionFault when it is not there, or not in time. The first question to it is whether it is a
 * modern one; where it is not, it is greeted as an older one. One that takes the question amiss, or is slow to answer, is tried again otherwise.
 */
export async function connect(server: McpServer, options: ConnectOptions): Promise<Connection> {
  const sdk = await loadSdk();
  let mode: Mode | undefined = 'auto';
  let told: unknown;
  while (mode !== undefined) {
    try {
      return await connectAs(mode, server, options, sdk);
    } catch (error) {
      // What the last way is refused with says less than what led to it.
      if (typeof mode === 'string') told = error;
      mode = error instanceof ConnectionFault ? error.instead : undefined;
    }
  }
  throw told;
}

async function connectAs(mode: Mode, server: McpServer, options: ConnectOptions, sdk: Sdk): Promise<Connection> {
  let fault = '';
  // The SDK only reports a stream of events that breaks, and a call would wait for it until its timeout.
  const onRefused = (reason: string): void => {
    fault = reason;
    void transport.close().catch(() => undefined);
  };
  const { transport: inner, stderrTail, leave, stderrClosed } = createTransport(server, options, sdk, onRefused);
  const transport = createLooseTransport(inner);
  const probe = { timeoutMs: mode === 'auto' ? Math.min(PROBE_MS, options.timeoutMs / 2) : options.timeoutMs };
  const client = new sdk.Client({ name: 'perdura', version: options.version }, { versionNegotiation: { mode, probe } });
  let isOurs = false;
  // What goes wrong with one request over HTTP is that one's error.
  if (server.type === 'stdio') transport.onerror = (error) => (fault ||= error.message);
  client.onclose = () => {
    if (!isOurs) options.onLost(new ConnectionFault(fault || 'it closed the connection', stderrTail()));
  };
  client.fallbackNotificationHandler = (notification) => {
    if (notification.method === 'notifications/tools/list_changed') options.onToolsChanged();
    return Promise.resolve();
  };
  const close = async (): Promise<void> => {
    isOurs = true;
    await orUndefinedAfter(LEAVE_MS, leave()).catch(() => undefined);
    await client.close().catch(() => undefined);
  };
  try {
    await withTimeout(
      options.timeoutMs,
      client.connect(transport, { timeout: options.timeoutMs }),
      (ms) => new Error(`it did not answer within ${ms} ms`),
    );
  } catch (error) {
    await close();
    // Why it did not start may still be on its way to us.
    await orUndefinedAfter(LEAVE_MS, stderrClosed()).catch(() => undefined);
    const instead = otherMode(mode, error, transport);
    throw new ConnectionFault(fault || describeError(error), stderrTail(), { cause: error, instead });
  }
  const isModern = client.getProtocolEra() === 'modern';
  return { ...createRequests(client, { ...options, isModern }), hasHeaders: isModern && server.type === 'http', close };
}

/**
 * A server that ended at the first question, or did not answer it in time, may be an older one. If it then refuses to be greeted as one, it
 * was slow.
 */
function otherMode(mode: Mode, error: unknown, { lastMethod, wasSilent }: LooseTransport): Mode | undefined {
  const { name, code, status } = errorFields(error);
  if (mode === 'auto' && lastMethod() === 'server/discover') return code === NO_PROBE || code === TIMED_OUT ? 'legacy' : undefined;
  const isRefused = name === 'ProtocolError' || (mode === 'legacy' && status === 400);
  return isRefused && lastMethod() === 'initialize' && wasSilent() ? { pin: FIRST_MODERN } : undefined;
}

const NO_PROBE = 'ERA_NEGOTIATION_FAILED';
const TIMED_OUT = 'REQUEST_TIMEOUT';

function createTransport(
  server: McpServer,
  { variables, signIn }: Pick<ConnectOptions, 'variables' | 'signIn'>,
  sdk: Sdk,
  onRefused: Refuse,
): {
  readonly transport: Transport;
  readonly stderrTail: () => string;
  readonly leave: () => Promise<void>;
  readonly stderrClosed: () => Promise<void>;
} {
  if (server.type === 'http') {
    const requestInit = { headers: server.headers };
    // Followed to another place, a redirect would carry the headers, and with them a key, there.
    const httpOptions = { requestInit, fetch: boundedFetch(onRefused, signIn?.signed(fetch)), redirectPolicy: 'same-origin' } as const;
    const http = new sdk.StreamableHTTPClientTransport(parseUrl(server), httpOptions);
    return { transport: http, stderrTail: () => '', leave: () => http.terminateSession(), stderrClosed: () => Promise.resolve() };
  }
  const inherited = INHERITED.flatMap((name) => {
    const value = variables[name];
    // A function that bash exports is code.
    return value === undefined || value.startsWith('()') ? [] : [[name, value] as const];
  });
  const env = { ...Object.fromEntries(inherited), ...server.env };
  const cwd = server.cwd === undefined ? server.folder : resolve(server.folder, server.cwd);
  const transport = createStdioTransport({ command: server.command, args: server.args, env, cwd }, sdk);
  return { transport, stderrTail: transport.stderrTail, leave: () => Promise.resolve(), stderrClosed: transport.stderrClosed };
}

function parseUrl({ name, url }: McpServer & { readonly type: 'http' }): URL {
  const parsed = URL.parse(url);
  if (parsed && ['http:', 'https:'].includes(parsed.protocol)) return parsed;
  // Its text may hold a key.
  throw new Error(`mcpServers.${name}.url is no http:// or https:// address`);
}

function describeError(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  // The library's first question is no concern of people's: what went wrong with it is.
  const { code, data } = errorFields(error);
  if (code === NO_PROBE && cause instanceof Error) return describeError(cause);
  const detail = isRecord(data) && typeof data['text'] === 'string' ? data['text'].slice(0, 500) : '';
  if (detail !== '' && !message.includes(detail)) return `${message}: ${detail}`;
  return cause instanceof Error && cause.message !== '' ? `${message} (${cause.message})` : message;
}

// `fetch` for Streamable HTTP whose answers have an end: a server may stream for ever, but not one message of any length.

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
type Refuse = (reason: string) => void;

const NEWLINE = 0x0a;

function boundedFetch(onRefused: Refuse, send: Fetch = fetch): Fetch {
  const gate = createMessageRateLimiter();
  return async (url, init) => {
    const response = await send(url, init);
    if (response.body === null) return response;
    const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true;
    const bounded = response.body.pipeThrough(isStream ? boundedEvents(gate.pass, onRefused) : boundedWhole(onRefused));
    const { status, statusText, headers } = response;
    return new Response(bounded, { status, statusText, headers });
  };
}

function boundedWhole(onRefused: Refuse): TransformStream<Uint8Array, Uint8Array> {
  const shape = createJsonDepthLimit();
  const held: Uint8Array[] = [];
  let bytes = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const refuse = refuser(controller, onRefused);
      bytes += chunk.length;
      if (bytes > MAX_BYTES) refuse(`the server's answer has more than ${MAX_BYTES} bytes`);
      else if (!shape.pass(chunk)) refuse(SHAPE_REFUSAL);
      else held.push(chunk);
    },
    flush(controller) {
      if (held.length > 0) controller.enqueue(Buffer.from(withoutNullFields(Buffer.concat(held).toString('utf8'))));
    },
  });
}

/** Events end in an empty line. */
function boundedEvents(pass: (bytes: number) => boolean, onRefused: Refuse): TransformStream<Uint8Array, Uint8Array> {
  const shape = createJsonDepthLimit();
  let bytes = 0;
  let isLineEmpty = true;
  let held: Uint8Array[] = [];
  return new TransformStream({
    transform(chunk, controller) {
      const refuse = refuser(controller, onRefused);
      let event = 0;
      for (const [at, byte] of chunk.entries()) {
        bytes += 1;
        if (byte === NEWLINE) {
          if (isLineEmpty) {
            if (!pass(bytes)) return refuse('the server sends events without end');
            if (!shape.pass(chunk.subarray(event, at))) return refuse(SHAPE_REFUSAL);
            shape.next();
            controller.enqueue(toCleanEvent(Buffer.concat([...held, chunk.subarray(event, at + 1)])));
            held = [];
            event = at + 1;
            bytes = 0;
          }
          isLineEmpty = true;
        } else if (byte !== 0x0d) isLineEmpty = false;
      }
      const rest = chunk.subarray(event);
      if (!shape.pass(rest)) return refuse(SHAPE_REFUSAL);
      if (bytes > MAX_BYTES) refuse(`an event of the server has more than ${MAX_BYTES} bytes`);
      else held.push(rest);
    },
    flush(controller) {
      if (held.length > 0) controller.enqueue(Buffer.concat(held));
    },
  });
}

function toCleanEvent(event: Buffer): Uint8Array {
  if (!event.includes('null')) return event;
  const lines = event.toString('utf8').split(/\r?\n/);
  const isData = (line: string): boolean => line.startsWith('data:');
  const data = lines.filter(isData).map((line) => line.slice('data:'.length).replace(/^ /, ''));
  return Buffer.from([`data: ${withoutNullFields(data.join('\n'))}`, ...lines.filter((line) => !isData(line))].join('\n'));
}

function refuser(controller: TransformStreamDefaultController<Uint8Array>, onRefused: Refuse): Refuse {
  return (reason) => {
    controller.error(new Error(reason));
    onRefused(reason);
  };
}

// Requests over a connection: lists, single ones, and whether it still answers.

const METHODS: Readonly<Record<Listed, string>> = {
  tools: 'tools/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
  prompts: 'prompts/list',
};
const MAX_LISTED = 256;
const MAX_PAGES = 20;
const PING_MS = 3_000;
/** Longer than any call: the call's signal ends it. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
const HEADERS_DIFFER = -32_020;

const anything = z.looseObject({});

interface RequestOptions {
  /** For a list. */
  readonly timeoutMs: number;
  readonly onToolsChanged: () => void;
  readonly isModern: boolean;
}

function createRequests(client: Client, { timeoutMs, onToolsChanged, isModern }: RequestOptions): Requests {
  const capabilities = client.getServerCapabilities() ?? {};
  /** As listed last, by name: they say which arguments go into headers. */
  let schemas: ReadonlyMap<string, unknown> = new Map();
  let listening: Promise<unknown> | undefined;

  /** A modern server tells of changes only who asks for them, and may end that at any time: then the list's age makes up for it. */
  const listen = (): void => {
    if (!isModern || capabilities.tools?.listChanged !== true) return;
    listening ??= client
      .listen({ toolsListChanged: true }, { timeout: timeoutMs })
      .then(({ closed }) => closed)
      .catch(() => undefined)
      .finally(() => (listening = undefined));
  };

  return {
    hasTools: capabilities.tools !== undefined,
    hasResources: capabilities.resources !== undefined,
    hasPrompts: capabilities.prompts !== undefined,

    async list(what) {
      const page = z.looseObject({ [what]: z.array(z.unknown()), nextCursor: z.string().max(10_000).optional() });
      const deadline = Date.now() + timeoutMs;
      const items: unknown[] = [];
      let freshMs: number | undefined;
      if (what === 'tools') listen();
      // A server that does not look at the cursor lists the same again: no item counts twice, and a page that has nothing new is the end.
      const seen = new Set<string>();
      let cursor: string | undefined;
      for (let pages = 0; pages < MAX_PAGES && items.length <= MAX_LISTED; pages++) {
        const params = cursor === undefined ? {} : { cursor };
        const how = { timeout: Math.max(1, deadline - Date.now()) };
        const answer = page.parse(wholeAnswer(await client.request({ method: METHODS[what], params }, anything, how)));
        freshMs = Math.min(freshMs ?? Infinity, Number(answer['ttlMs']) || 0);
        const before = items.length;
        for (const item of (answer[what] as unknown[]).slice(0, MAX_LISTED + 1)) {
          const text = JSON.stringify(item);
          if (!seen.has(text)) items.push(item);
          seen.add(text);
        }
        const isEnd = pages > 0 && items.length === before;
        cursor = isEnd ? undefined : (answer.nextCursor as string | undefined) || undefined;
        if (cursor === undefined) break;
      }
      const kept = items.slice(0, MAX_LISTED);
      if (what === 'tools') schemas = schemasIn(kept);
      return { items: kept, isCut: items.length > MAX_LISTED || cursor !== undefined, freshMs };
    },

    async ask(method, params, { signal, quietMs = NO_TIMEOUT_MS }) {
      // With a handler of progress the library sends a token for it.
      const how = { signal, timeout: quietMs, resetTimeoutOnProgress: true, onprogress: () => undefined };
      const name = String(params['name']);
      try {
        if (!isModern || method !== 'tools/call') return wholeAnswer(await client.request({ method, params }, anything, how));
        const toolDefinition = { name, inputSchema: schemas.get(name) ?? { type: 'object' } } as Tool;
        return wholeAnswer(await client.callTool({ name, arguments: params['arguments'] as JsonObject }, { ...how, toolDefinition }));
      } catch (error) {
        const { code, data } = errorFields(error);
        // What it wants in headers has changed.
        if (code === HEADERS_DIFFER) onToolsChanged();
        if (code !== 'CAPABILITY_NOT_SUPPORTED') throw error;
        const input = isRecord(data) ? String(data['method']) : 'input';
        throw new Error(`it asks for ${input}, which it cannot get here`, { cause: error });
      }
    },

    isAlive: () =>
      (isModern ? client.request({ method: 'server/discover' }, anything, { timeout: PING_MS }) : client.ping({ timeout: PING_MS })).then(
        () => true,
        () => false,
      ),
  };
}

function schemasIn(tools: readonly unknown[]): ReadonlyMap<string, unknown> {
  return new Map(
    tools.flatMap((tool) => (isRecord(tool) && typeof tool['name'] === 'string' ? [[tool['name'], tool['inputSchema']]] : [])),
  );
}
