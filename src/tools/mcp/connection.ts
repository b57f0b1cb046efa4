/** One life of a connection to a server: opened, used, closed. Answers are checked loosely: what one tool gets wrong concerns that tool. */
import { resolve } from 'node:path';
import { z } from 'zod';
import type { JsonObject } from '../../records/message.js';
import type { McpServer, Variables } from './server-config.js';
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
  type Transport,
} from './stdio-transport.js';
import { orUndefinedAfter, withTimeout } from '../../platform/promises.js';
import type { SignInSession } from './sign-in/session.js';

export interface Connection {
  readonly hasTools: boolean;
  readonly hasResources: boolean;
  readonly hasPrompts: boolean;
  /** All pages of a list, at most `MAX_LISTED` items; `isCut` says that there were more. */
  list(what: Listed): Promise<{ readonly items: readonly unknown[]; readonly isCut: boolean }>;
  /** One request; rejects with the server's error, when the signal aborts, or after `quietMs` without an answer or a word of progress. */
  ask(method: string, params: JsonObject, how: Asking): Promise<Record<string, unknown>>;
  /** Whether it still answers. */
  isAlive(): Promise<boolean>;
  close(): Promise<void>;
}

export interface Asking {
  readonly signal: AbortSignal;
  /** Absent: the signal alone ends it. */
  readonly quietMs?: number;
}

export type Listed = 'tools' | 'resources' | 'resourceTemplates' | 'prompts';

export interface ConnectionEvents {
  readonly onToolsChanged: () => void;
  /** It is gone, and was not closed from here. */
  readonly onLost: (fault: ConnectionFault) => void;
}

/** What went wrong, and the last output of the server's process: that is for its operator's eyes only. */
export class ConnectionFault extends Error {
  override readonly name = 'ConnectionFault';
  constructor(
    message: string,
    readonly stderrTail = '',
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface ConnectOptions extends ConnectionEvents {
  readonly variables: Variables;
  readonly version: string;
  /** Puts tokens on its requests. */
  readonly signIn?: SignInSession | undefined;
  /** For the connection, and for a list. */
  readonly timeoutMs: number;
}

const METHODS: Readonly<Record<Listed, string>> = {
  tools: 'tools/list',
  resources: 'resources/list',
  resourceTemplates: 'resources/templates/list',
  prompts: 'prompts/list',
};
const MAX_LISTED = 256;
const MAX_PAGES = 20;
const PING_MS = 3_000;
const LEAVE_MS = 1_000;
/** Longer than any call: the call's signal ends it. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
/** What a child process gets of the worker's environment; where a program lies and who runs it, and no key. */
const INHERITED = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'];

const anything = z.looseObject({});

/** `server` is expanded. Rejects with a ConnectionFault when it is not there, or not in time. */
export async function connect(server: McpServer, options: ConnectOptions): Promise<Connection> {
  const sdk = await loadSdk();
  let fault = '';
  // The SDK only reports a stream of events that breaks, and a call would wait for it until its timeout.
  const onRefused = (reason: string): void => {
    fault = reason;
    void client.close().catch(() => undefined);
  };
  const { transport, stderrTail, leave, stderrClosed } = createTransport(server, options, sdk, onRefused);
  const client = new sdk.Client({ name: 'perdura', version: options.version }, { capabilities: {} });
  let isOurs = false;
  client.onerror = (error) => (fault ||= error.message);
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
    throw new ConnectionFault(fault || describeError(error), stderrTail(), { cause: error });
  }
  return { ...createRequests(client, options.timeoutMs), close };
}

function createRequests(client: Client, timeoutMs: number): Omit<Connection, 'close'> {
  const capabilities = client.getServerCapabilities() ?? {};
  return {
    hasTools: capabilities.tools !== undefined,
    hasResources: capabilities.resources !== undefined,
    hasPrompts: capabilities.prompts !== undefined,

    async list(what) {
      const page = z.looseObject({ [what]: z.array(z.unknown()), nextCursor: z.string().max(10_000).optional() });
      const deadline = Date.now() + timeoutMs;
      const items: unknown[] = [];
      // A server that does not look at the cursor lists the same again: no item counts twice, and a page that has nothing new is the end.
      const seen = new Set<string>();
      let cursor: string | undefined;
      for (let pages = 0; pages < MAX_PAGES && items.length <= MAX_LISTED; pages++) {
        const params = cursor === undefined ? {} : { cursor };
        const answer = await client.request({ method: METHODS[what], params }, page, { timeout: Math.max(1, deadline - Date.now()) });
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
      return { items: items.slice(0, MAX_LISTED), isCut: items.length > MAX_LISTED || cursor !== undefined };
    },

    ask: (method, params, { signal, quietMs = NO_TIMEOUT_MS }) =>
      // With a handler of progress the library sends a token for it.
      client.request({ method, params }, anything, { signal, timeout: quietMs, resetTimeoutOnProgress: true, onprogress: () => undefined }),

    isAlive: () =>
      client.ping({ timeout: PING_MS }).then(
        () => true,
        () => false,
      ),
  };
}

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
