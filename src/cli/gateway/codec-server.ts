/**
 * A codec server: Temporal's page and its `temporal` program send it payloads as they are stored, and get them as people read them. It has
 * the keys, so all who may call it may read everything: it listens on this machine alone unless there is a token, and answers pages of the
 * origins that it was given, of no other.
 */
import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Payload, PayloadCodec } from '@temporalio/common';
import { z } from 'zod';
import { KeyMissing } from '../../platform/at-rest.js';

export interface CodecServerOptions {
  readonly codec: PayloadCodec;
  readonly host: string;
  readonly port: number;
  /** Of pages that may ask: `https://temporal.example`. */
  readonly origins: readonly string[];
  /** Wanted as `Authorization: Bearer …`; without it all programs of this machine may call. */
  readonly token?: string | undefined;
}

export interface CodecServer {
  readonly url: string;
  close(): Promise<void>;
}

const MAX_BYTES = 64 * 1024 * 1024;
const MAX_PAYLOADS = 10_000;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/;

const requestSchema = z.object({
  payloads: z
    .array(z.object({ metadata: z.record(z.string(), z.base64()).optional(), data: z.base64().optional() }))
    .max(MAX_PAYLOADS)
    .default([]),
});

/** Rejects where it cannot listen. */
export async function startCodecServer(options: CodecServerOptions): Promise<CodecServer> {
  const server = createServer((request, response) => {
    void answer(options, request, response).catch((error: unknown) => refuse(response, 500, String(error)));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(options: CodecServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { origin } = request.headers;
  if (origin !== undefined) {
    if (!options.origins.includes(origin))
      return refuse(response, 403, `pages of ${origin.slice(0, 200)} may not ask: --origin names those that may`);
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('vary', 'origin');
    response.setHeader('access-control-allow-methods', 'POST, OPTIONS');
    response.setHeader('access-control-allow-headers', 'content-type, authorization, x-namespace');
    response.setHeader('access-control-allow-credentials', 'true');
  }
  // A page of another name whose address became this machine's (DNS rebinding).
  if (options.token === undefined && !LOOPBACK.test(request.headers.host ?? ''))
    return refuse(response, 403, 'ask by the name of this machine');
  if (request.method === 'OPTIONS') return void response.writeHead(204).end();
  const [, what] = /\/(encode|decode)$/.exec(new URL(request.url ?? '/', 'http://here').pathname) ?? [];
  if (request.method !== 'POST' || what === undefined) return refuse(response, 404, 'POST /decode and POST /encode are here');
  if (!isAllowed(options.token, request.headers.authorization)) {
    response.setHeader('www-authenticate', 'Bearer');
    return refuse(response, 401, 'the token is missing or wrong');
  }
  const body = await readBody(request);
  if (body === undefined) return refuse(response, 413, `at most ${MAX_BYTES} bytes`);
  const given = parse(body);
  if (given === undefined)
    return refuse(response, 400, 'the body is no JSON of the form { "payloads": [{ "metadata": { … base64 }, "data": base64 }] }');
  const { codec } = options;
  try {
    const made = await (what === 'decode' ? codec.decode(given) : codec.encode(given));
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(JSON.stringify({ payloads: made.map(toJson) }));
  } catch (error) {
    refuse(response, error instanceof KeyMissing ? 409 : 422, error instanceof Error ? error.message : String(error));
  }
}

function refuse(response: ServerResponse, status: number, why: string): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify({ error: why }));
}

function isAllowed(token: string | undefined, header: string | undefined): boolean {
  if (token === undefined) return true;
  const given = Buffer.from(/^Bearer (.+)$/i.exec(header ?? '')?.[1] ?? '');
  const wanted = Buffer.from(token);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MAX_BYTES) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function parse(body: string): Payload[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const given = requestSchema.safeParse(value).data;
  return given?.payloads.map(({ metadata = {}, data }) => ({
    metadata: Object.fromEntries(Object.entries(metadata).map(([name, text]) => [name, Buffer.from(text, 'base64')])),
    ...(data !== undefined && { data: Buffer.from(data, 'base64') }),
  }));
}

function toJson({ metadata, data }: Payload): object {
  return {
    metadata: Object.fromEntries(Object.entries(metadata ?? {}).map(([name, bytes]) => [name, Buffer.from(bytes).toString('base64')])),
    data: Buffer.from(data ?? []).toString('base64'),
  };
}
