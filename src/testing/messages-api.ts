/**
 * A scripted Anthropic Messages API on loopback: real HTTP and SSE, real refusals, and every fault of a bad day.
 *
 * M1. Exchanges are played strictly in order, one a request; a request that does not match uses none up.
 * M2. What the script did not foresee fails loudly: a 400 that says so, and a line in `problems`.
 * M3. In strict mode a request that the real API would refuse is refused in its words, noted in `problems`, and uses up no exchange.
 * M4. `answer`, where given, speaks when the script is at its end.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { apiError, invalidRequest, type ApiError } from './api-error.js';
import type { ApiRequest } from './api-request.js';
import { checkBody, checkHeaders, maxBodyBytes } from './check-body.js';
import { checkRequest } from './check-request.js';
import { mismatch } from './match.js';
import type { Reply } from './reply.js';
import { sendError, sendJson, sendReply, type Ending } from './send-reply.js';
import { estimateTokens, freshId } from './to-events.js';

/** Part of a request: objects by the fields that are named, arrays item by item, a RegExp by test. */
export type Match = { readonly [Field in keyof ApiRequest]?: unknown };

/** Returns nothing or true: as expected. False, a string or an exception say what is wrong. */
export type Expectation = Match | ((request: ApiRequest) => void | string | boolean);

export interface Exchange {
  readonly expect?: Expectation;
  readonly reply: Reply | ((request: ApiRequest) => Reply);
}

/** One request, and what became of it. */
export interface Hit {
  /** Counts from 1. */
  readonly n: number;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The parsed body; undefined when it was no JSON or too large. */
  readonly body: ApiRequest | undefined;
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

export interface MessagesApiOptions {
  /** Default: any free port. */
  readonly port?: number;
  readonly script?: readonly Exchange[];
  /** Answers what the script does not (M4); `hit` counts from 1. */
  readonly answer?: (request: ApiRequest, hit: number) => Reply | Promise<Reply>;
  /** Refuse what the real API refuses (M3); default true. */
  readonly strict?: boolean;
  /** The only key that is accepted; default any. */
  readonly apiKey?: string;
  /** Keep every request in `hits`; default true. */
  readonly keepHits?: boolean;
}

export interface MessagesApi {
  /** `http://127.0.0.1:<port>`, the SDK's `baseURL`. */
  readonly url: string;
  readonly port: number;
  readonly hits: readonly Hit[];
  readonly problems: readonly string[];
  play(...exchanges: readonly Exchange[]): void;
  /** How many exchanges are left. */
  remaining(): number;
  /** Throws when exchanges are left or problems happened. */
  assertDone(): void;
  /** The n-th request, counted from 1, as soon as it is there. Rejects after `timeoutMs` (10 s) without it, or at `close`. */
  waitForHit(n: number, timeoutMs?: number): Promise<Hit>;
  /** Cuts what is still open. */
  close(): Promise<void>;
}

type OpenHit = Omit<Hit, 'aborted' | 'finished'> & { aborted?: boolean; finished: boolean };

interface Waiting {
  readonly n: number;
  readonly resolve: (hit: Hit) => void;
  readonly reject: (why: Error) => void;
}

export async function startMessagesApi(options: MessagesApiOptions = {}): Promise<MessagesApi> {
  const strict = options.strict ?? true;
  const script = [...(options.script ?? [])];
  const hits: Hit[] = [];
  const problems: string[] = [];
  const waiting = new Set<Waiting>();
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
    const upload = await readBody(request);
    if (!upload) return;
    const { text, bytes } = upload;
    const path = new URL(request.url ?? '/', 'http://loopback').pathname;
    const requestId = freshId('req');
    response.setHeader('request-id', requestId);
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    const body = parsed(text);
    const hit: OpenHit = {
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
      hit.aborted = (await answer(request, response, hit, text, requestId)) === 'left';
    } finally {
      hit.finished = true;
      end();
    }
  }

  /** Everything up to the choice of the reply happens in one go, so that requests are answered in the order they came (M1). */
  function answer(request: IncomingMessage, response: ServerResponse, hit: Hit, text: string, requestId: string): Promise<Ending> {
    const counting = hit.path === '/v1/messages/count_tokens';
    if (hit.path !== '/v1/messages' && !counting) return sendError(response, apiError(404, 'Not Found'), requestId);
    if (request.method !== 'POST') return sendError(response, apiError(405, 'Method Not Allowed'), requestId);
    const refusal = refused(hit, text, counting);
    if (refusal) {
      problems.push(`request ${hit.n} was refused: ${refusal.status} ${refusal.message}`);
      return sendError(response, refusal, requestId);
    }
    const { body } = hit;
    if (!body) return sendError(response, invalidRequest('The request body is not valid JSON'), requestId);
    if (counting) return sendJson(response, { input_tokens: estimateTokens([body.system, body.tools, body.messages]) });
    return chooseReply(body, hit.n).then(
      (reply) => sendReply(response, reply, body, requestId),
      (error: unknown) => {
        problems.push(`request ${hit.n}: ${wordsOf(error)}`);
        return sendError(response, invalidRequest(`scripted Messages API: ${wordsOf(error)}`), requestId);
      },
    );
  }

  function refused(hit: Hit, text: string, counting: boolean): ApiError | undefined {
    if (strict || options.apiKey !== undefined) {
      const atTheDoor = checkHeaders(hit.headers, options.apiKey);
      if (atTheDoor) return atTheDoor;
    }
    if (hit.bytes > maxBodyBytes) return apiError(413);
    if (!strict) return undefined;
    return checkBody(text) ?? checkRequest(hit.body, { counting, version: String(hit.headers['anthropic-version']) });
  }

  async function chooseReply(body: ApiRequest, n: number): Promise<Reply> {
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
    problems,
    play: (...exchanges) => void script.push(...exchanges),
    remaining: () => script.length,
    assertDone: () => {
      const left = script.length > 0 ? [`${script.length} exchanges were never asked for`] : [];
      const all = [...problems, ...left];
      if (all.length > 0) throw new Error(`scripted Messages API: ${all.join('; ')}`);
    },
    waitForHit: (n, timeoutMs = 10_000) =>
      new Promise((resolve, reject) => {
        const there = hits[n - 1];
        if (there) return resolve(there);
        const stop = (): void => {
          clearTimeout(timer);
          waiting.delete(one);
        };
        const one: Waiting = {
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
async function readBody(request: IncomingMessage): Promise<{ text: string; bytes: number } | undefined> {
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

/** The one place where a body becomes an ApiRequest: strict mode has it checked, the other trusts the test. */
function parsed(text: string): ApiRequest | undefined {
  try {
    return JSON.parse(text) as ApiRequest;
  } catch {
    return undefined;
  }
}

function unexpected(expect: Expectation | undefined, body: ApiRequest): string | undefined {
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
