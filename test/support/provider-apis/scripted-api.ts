/**
 * A scripted model API on loopback: real HTTP and streams, real refusals, and every fault of a bad day. Which API it plays
 * is its protocol's to say.
 *
 * - Exchanges are played strictly in order, one a request; a request that does not match uses none up.
 * - An unforeseen request fails loudly: a 400 that says so, and a line in `problems`.
 * - In strict mode a request that the real API would refuse is refused in its words, noted in `problems`, and uses up no exchange.
 * - `answer`, where given, speaks when the script is at its end.
 * - The requests that `aside` answers are no part of the script: they use up no exchange, are no hit, and must be valid for the API.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ApiError } from './api-error.js';
import { mismatch } from './match.js';
import type { Incoming, Protocol } from './protocol.js';
import type { Reply } from './reply.js';
import { sendError, sendJson, sendReply, type Ending, type Outlet } from './send-reply.js';
import { freshId } from './words-of.js';

/** Part of a request: objects by the fields that are named, arrays item by item, a RegExp by test. */
export type Match<Request> = { readonly [Field in keyof Request]?: unknown };

/** Returns nothing or true: as expected. False, a string or an exception say what is wrong. */
export type Expectation<Request> = Match<Request> | ((request: Request) => void | string | boolean);

export interface Exchange<Request> {
  readonly expect?: Expectation<Request>;
  readonly reply: Reply | ((request: Request) => Reply);
}

/** One request, and what became of it. */
export interface Hit<Request> {
  /** Counts from 1. */
  readonly n: number;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The parsed body; undefined when it was no JSON or too large. */
  readonly body: Request | undefined;
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** HTTP status, once headers were answered. */
  readonly status?: number;
  /** The client left before the answer had ended. */
  readonly aborted?: boolean;
  /** The answer has ended, well or badly. */
  readonly finished: boolean;
  /** Resolves when `finished` turns true. */
  readonly ended: Promise<void>;
}

export interface ScriptedApiOptions<Request> {
  /** Default: any free port. */
  readonly port?: number;
  readonly script?: readonly Exchange<Request>[];
  /** Answers what the script does not; `hit` counts from 1. */
  readonly answer?: (request: Request, hit: number) => Reply | Promise<Reply>;
  /** Answers requests beside the conversation; undefined for the others. */
  readonly aside?: (request: Request) => Reply | undefined;
  /** Refuse what the real API refuses; default true. */
  readonly strict?: boolean;
  /** The only key that is accepted; default any. */
  readonly apiKey?: string;
  /** Keep every request in `hits`; default true. */
  readonly keepHits?: boolean;
}

export interface ScriptedApi<Request> {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly port: number;
  readonly hits: readonly Hit<Request>[];
  /** The requests beside the conversation. */
  readonly asides: readonly Request[];
  readonly problems: readonly string[];
  play(...exchanges: readonly Exchange<Request>[]): void;
  /** How many exchanges are left. */
  remaining(): number;
  /** Throws when exchanges are left or problems happened. */
  assertDone(): void;
  /** The n-th request, counted from 1, as soon as it is there. Rejects after `timeoutMs` (10 s) without it, or at `close`. */
  waitForHit(n: number, timeoutMs?: number): Promise<Hit<Request>>;
  /** Cuts what is still open. */
  close(): Promise<void>;
}

type OpenHit<Request> = Omit<Hit<Request>, 'aborted' | 'finished'> & { aborted?: boolean; finished: boolean };

interface Waiting<Request> {
  readonly n: number;
  readonly resolve: (hit: Hit<Request>) => void;
  readonly reject: (why: Error) => void;
}

export async function startScriptedApi<Request extends object>(
  protocol: Protocol<Request>,
  options: ScriptedApiOptions<Request> = {},
): Promise<ScriptedApi<Request>> {
  const strict = options.strict ?? true;
  const script = [...(options.script ?? [])];
  const hits: Hit<Request>[] = [];
  const asides: Request[] = [];
  const problems: string[] = [];
  const waiting = new Set<Waiting<Request>>();
  let count = 0;
  let played = 0;

  const server = createServer((request, response) => {
    void serve(request, response).catch((error: unknown) => {
      problems.push(`the scripted server failed: ${wordsOf(error)}`);
      response.destroy();
    });
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = Date.now();
    const upload = await readBody(request, protocol.maxBodyBytes);
    if (!upload) return;
    const { text, bytes } = upload;
    const { pathname: path, searchParams: query } = new URL(request.url ?? '/', 'http://loopback');
    const incoming: Incoming = { method: request.method ?? '', path, query, headers: request.headers, text, body: parsed(text) };
    const outlet: Outlet<Request> = { protocol, response, requestId: freshId('req') };
    response.setHeader('request-id', outlet.requestId);
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    const body = protocol.read(incoming);
    const aside = body && protocol.checkRequest(incoming) === undefined ? options.aside?.(body) : undefined;
    if (body && aside) {
      asides.push(body);
      return void (await sendReply(outlet, aside, body));
    }
    const hit: OpenHit<Request> = {
      n: ++count,
      path,
      headers: request.headers,
      body,
      bytes,
      at,
      get status() {
        return response.headersSent ? response.statusCode : undefined;
      },
      finished: false,
      ended,
    };
    if (options.keepHits ?? true) hits.push(hit);
    for (const one of waiting) if (hit.n >= one.n) one.resolve(hit);

    try {
      hit.aborted = (await answer(outlet, incoming, hit)) === 'left';
    } finally {
      hit.finished = true;
      end();
    }
  }

  /** Everything up to the choice of the reply happens in one go, so that requests are answered in the order they came. */
  function answer(outlet: Outlet<Request>, incoming: Incoming, hit: Hit<Request>): Promise<Ending> {
    const route = protocol.route(incoming);
    if (typeof route === 'object') return sendError(outlet, route);
    const refusal = refused(incoming, hit);
    if (refusal) {
      problems.push(`request ${hit.n} was refused: ${refusal.status} ${refusal.message}`);
      return sendError(outlet, refusal);
    }
    const { body } = hit;
    if (!body) return sendError(outlet, protocol.error(400, 'The request body is not valid JSON'));
    if (route === 'count') return sendJson(outlet.response, protocol.count?.(body));
    return chooseReply(body, hit.n).then(
      (reply) => sendReply(outlet, reply, body),
      (error: unknown) => {
        problems.push(`request ${hit.n}: ${wordsOf(error)}`);
        return sendError(outlet, protocol.error(400, `scripted ${protocol.name}: ${wordsOf(error)}`));
      },
    );
  }

  function refused(incoming: Incoming, hit: Hit<Request>): ApiError | undefined {
    if (strict || options.apiKey !== undefined) {
      const atTheDoor = protocol.checkHeaders(incoming, options.apiKey);
      if (atTheDoor) return atTheDoor;
    }
    if (hit.bytes > protocol.maxBodyBytes) return protocol.error(413);
    return strict ? protocol.checkRequest(incoming) : undefined;
  }

  async function chooseReply(body: Request, n: number): Promise<Reply> {
    const next = script[0];
    if (!next) {
      if (options.answer) return options.answer(body, n);
      throw new Error(`beyond the script: all of its ${played} exchanges are played`);
    }
    const wrong = unexpected(next.expect, body);
    if (wrong !== undefined) throw new Error(`not what exchange ${played + 1} expects: ${wrong}`);
    script.shift();
    played += 1;
    return typeof next.reply === 'function' ? next.reply(body) : next.reply;
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    hits,
    asides,
    problems,
    play: (...exchanges) => void script.push(...exchanges),
    remaining: () => script.length,
    assertDone: () => {
      const left = script.length > 0 ? [`${script.length} exchanges were never asked for`] : [];
      const all = [...problems, ...left];
      if (all.length > 0) throw new Error(`scripted ${protocol.name}: ${all.join('; ')}`);
    },
    waitForHit: (n, timeoutMs = 50_000) =>
      new Promise((resolve, reject) => {
        const there = hits[n - 1];
        if (there) return resolve(there);
        const stop = (): void => {
          clearTimeout(timer);
          waiting.delete(one);
        };
        const one: Waiting<Request> = {
          n,
          resolve: (hit) => (stop(), resolve(hit)),
          reject: (why) => (stop(), reject(why)),
        };
        const timer = setTimeout(() => one.reject(new Error(`request ${n} did not come in ${timeoutMs} ms, ${count} did`)), timeoutMs);
        waiting.add(one);
      }),
    close: async () => {
      for (const one of waiting) one.reject(new Error(`the server closed before request ${one.n} came`));
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Reads to the end, keeping no more than a body may have. Undefined when the client left before. */
async function readBody(request: IncomingMessage, maxBodyBytes: number): Promise<{ text: string; bytes: number } | undefined> {
  const kept: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes <= maxBodyBytes) kept.push(chunk);
      else kept.length = 0;
    }
  } catch {
    return undefined;
  }
  return { text: Buffer.concat(kept).toString('utf8'), bytes };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unexpected<Request>(expect: Expectation<Request> | undefined, body: Request): string | undefined {
  if (typeof expect !== 'function') return expect && mismatch(body, expect);
  try {
    const verdict = expect(body);
    if (typeof verdict === 'string') return verdict;
    return verdict === false ? 'the test said no' : undefined;
  } catch (error) {
    return wordsOf(error);
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
