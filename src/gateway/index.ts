/**
 * `import … from 'perdura/gateway'`: conversations over HTTP, in your server.
 *
 * @packageDocumentation
 */
import { type Server, STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { serve, type ServerType } from '@hono/node-server';
import { GatewayError, type Problem } from './core/errors.js';
import { MAX_HEADERS, type GatewayOptions, createGateway as createApp } from './app.js';

/** Hono's app, as any server of fetch handlers takes it. */
export interface Gateway {
  /** Answers one request. */
  readonly fetch: (request: Request, env?: unknown) => Response | Promise<Response>;
}

/** Every conversation that the client reaches, over HTTP: `/openapi.json` describes it. `serveGateway` also starts a server. */
export function createGateway(options: GatewayOptions): Gateway {
  const app = createApp(options);
  return { fetch: (request, env) => app.fetch(request, env as Record<string, unknown> | undefined) };
}

export { createEntrance, type Browsers, type Entrance, type EntranceOptions, type OpenedSession } from './access/entrance.js';
export { watchAuthFile, type AuthFile, type AuthSource } from './access/auth-file.js';
export type { McpSignIn, SignInVisit } from './access/mcp-sign-in.js';
export type { SharedCounts } from './access/limits.js';
export { notesInFolder, notesInMemory, notesInRedis, type Notes } from './core/repeated-requests.js';
export { recordSpentInFolder, recordSpentInRedis, type GivenAway, type SpentRecord } from './access/spent.js';
export { keptToken, oneToken, type Authenticate } from './access/entrance.js';
export { ROLES, type Principal, type Role } from './access/principal.js';
export type { GatewayOptions } from './app.js';
export type { AddedCase, AgentDescription, AgentServer, Finding, ServerToolPin } from './context.js';

// A gateway with a server, which has the limits of one that strangers reach.

/** What `serveGateway` is given: the gateway's options, and where it listens. */
export interface ServeOptions extends Omit<GatewayOptions, 'closing'> {
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: 7280; 0: any that is free. */
  readonly port?: number;
  /** For headers to arrive (default: 10,000 ms), and for a whole request, whose answer may take as long as it likes (60,000). */
  readonly patienceMs?: { readonly headers: number; readonly request: number };
}

/** A gateway that listens. */
export interface ServedGateway {
  /** Such as `http://127.0.0.1:7280`. */
  readonly url: string;
  /** Takes no new requests, ends streams, waits for what is being answered. */
  close(): Promise<void>;
}

const DEFAULT_PORT = 7280;
const PATIENCE_MS = { headers: 10_000, request: 60_000 };
const LOOK_MS = 2_000;
const MAX_CONNECTIONS = 20_000;
const DRAIN_MS = 10_000;
/** What requests and streams that are open hear. */
const CLOSING: Problem = {
  status: 503,
  type: 'aborted',
  message: 'this gateway ends: what was sent stays sent; ask again, or another gateway',
  retryAfter: 1,
};
const IDLE_MS = 100;
const SWEEP_MS = 60 * 60 * 1000;

/** Rejects where the address cannot be listened on. */
export async function serveGateway({
  host = '127.0.0.1',
  port = DEFAULT_PORT,
  patienceMs = PATIENCE_MS,
  ...options
}: ServeOptions): Promise<ServedGateway> {
  const closing = new AbortController();
  const app = createApp({ ...options, closing: closing.signal, hosts: [...(options.hosts ?? []), host] });
  const server = await new Promise<ServerType>((resolve, reject) => {
    const starting = serve(
      {
        fetch: app.fetch,
        hostname: host,
        port,
        serverOptions: {
          headersTimeout: patienceMs.headers,
          requestTimeout: patienceMs.request,
          connectionsCheckingInterval: Math.min(LOOK_MS, patienceMs.headers),
        },
      },
      () => resolve(starting),
    );
    starting.once('error', reject);
  });
  const http = server as Server;
  // One more than is allowed: so it can be seen, and refused.
  http.maxHeadersCount = MAX_HEADERS + 1;
  answerSocketErrors(http);
  http.maxConnections = MAX_CONNECTIONS;
  // A store that removes what has expired by itself has nothing to do.
  const sweep = async (): Promise<void> => {
    try {
      await options.client.sweepUploads();
    } catch (error) {
      options.log?.(`cannot remove expired attachments from the store, and tries again in an hour: ${String(error)}`);
    }
  };
  const sweeping = setInterval(() => void sweep(), SWEEP_MS).unref();
  const address = http.address();
  const at = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${at}`,
    async close() {
      clearInterval(sweeping);
      closing.abort(new GatewayError(CLOSING));
      const closed = new Promise<void>((resolve) => http.close(() => resolve()));
      // A connection with an answer under way is idle a moment later.
      http.closeIdleConnections();
      const idle = setInterval(() => http.closeIdleConnections(), IDLE_MS);
      const timer = setTimeout(() => http.closeAllConnections(), DRAIN_MS);
      await closed;
      clearInterval(idle);
      clearTimeout(timer);
    },
  };
}

// Answers what Node refuses before there is a request, in the shape of all other refusals.

type Refusal = Pick<Problem, 'status' | 'type' | 'message'>;

const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, type: 'too-large', message: 'the headers of a request may have 16 KiB' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, type: 'too-large', message: 'the extensions of the chunks of this body are too long' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, type: 'timeout', message: 'the request did not arrive in time' },
};
const UNREADABLE: Refusal = { status: 400, type: 'invalid', message: 'this is not a request of HTTP/1.1' };

function answerSocketErrors(server: Server): void {
  const answering = new WeakMap<Duplex, ServerResponse>();
  server.prependListener('request', (request, response) => answering.set(request.socket, response));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const response = answering.get(socket);
    // In the middle of another answer it would be read as a part of that.
    const isBusy = response !== undefined && response.headersSent && !response.writableFinished;
    if (error.code === 'ECONNRESET' || !socket.writable || isBusy) {
      socket.destroy();
      return;
    }
    socket.end(renderRefusal(REFUSALS[error.code ?? ''] ?? UNREADABLE), () => socket.destroy());
  });
}

function renderRefusal({ status, type, message }: Refusal): string {
  const body = JSON.stringify({ type: `urn:perdura:${type}`, title: type, status, detail: message });
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}
