/** What can go wrong with an answer on its way: each fault by name, with a builder that reads as what happens. */
import { callTools, text, type Reply, type Fault, type Cut } from './reply.js';

/** How a 429 or 529 says when to come back. A Date becomes an HTTP date. */
export interface RetryHeaders {
  readonly retryAfter?: number | string | Date;
  readonly retryAfterMs?: number | string;
  readonly shouldRetry?: boolean;
}

/** A reply with the fault in it; by default one that would have said something. */
export function fault(what: Fault, reply: Reply = text('These words may never arrive whole.')): Reply {
  return { ...reply, fault: what };
}

/** An HTTP error in the API's shape: 400, 401, 402, 403, 404, 413, 429, 500, 504, 529. */
export function httpError(status: number, options: RetryHeaders & { readonly message?: string; readonly type?: string } = {}): Reply {
  const { message, type, ...retry } = options;
  return fault({ kind: 'status', status, message, type, headers: retryHeaders(retry) });
}

export function rateLimited(retry: RetryHeaders = {}): Reply {
  return httpError(429, retry);
}

export function overloaded(retry: RetryHeaders = {}): Reply {
  return httpError(529, retry);
}

/** What a proxy in front of the API says when it cannot reach it. */
export function badGateway(): Reply {
  return fault({ kind: 'status', status: 502, body: htmlPage('502 Bad Gateway'), contentType: 'text/html' });
}

export function promptTooLong(tokens = 210_000, limit = 200_000): Reply {
  return httpError(400, { message: `prompt is too long: ${tokens} tokens > ${limit} maximum` });
}

export function errorEvent(at: Cut, type: 'overloaded_error' | 'api_error' = 'overloaded_error', reply?: Reply): Reply {
  return fault({ kind: 'error-event', at, type }, reply);
}

export function halfClose(at: Cut, reply?: Reply): Reply {
  return fault({ kind: 'half-close', at }, reply);
}

export function fin(at: Cut, reply?: Reply): Reply {
  return fault({ kind: 'fin', at }, reply);
}

export function reset(at: Cut, reply?: Reply): Reply {
  return fault({ kind: 'reset', at }, reply);
}

/** Headers and one event, then nothing; `'before-headers'`: nothing at all. */
export function silence(at: Cut = 1, reply?: Reply): Reply {
  return fault({ kind: 'silence', at }, reply);
}

export function drip(what: 'ping' | 'byte', everyMs: number, at: Cut = 1, reply?: Reply): Reply {
  return fault({ kind: 'drip', at, what, everyMs }, reply);
}

export function malformedJson(at: Cut = 3, reply?: Reply): Reply {
  return fault({ kind: 'malformed-json', at }, reply);
}

export function unknownEvent(at: Cut = 3, reply?: Reply): Reply {
  return fault({ kind: 'unknown-event', at }, reply);
}

export function htmlInsteadOfSse(): Reply {
  return fault({ kind: 'html' });
}

/** `max_tokens` struck in the middle of a tool's input: the SDK completes the JSON as if nothing had happened. */
export function truncatedTool(name: string, inputJson: string): Reply {
  return { ...callTools({ name, inputJson }), stopReason: 'max_tokens' };
}

export function pauseTurn(...blocks: readonly string[]): Reply {
  return { text: blocks, stopReason: 'pause_turn' };
}

export function refusal(explanation: string | null = 'This request was declined.', ...blocks: readonly string[]): Reply {
  return { text: blocks, stopReason: 'refusal', stopDetails: { type: 'refusal', category: null, explanation } };
}

/** `end_turn` and no content at all. */
export function emptyAnswer(): Reply {
  return { text: [] };
}

export function unknownStop(word = 'gone_fishing', ...blocks: readonly string[]): Reply {
  return { text: blocks, stopReason: word };
}

export function contextWindowExceeded(...blocks: readonly string[]): Reply {
  return { text: blocks, stopReason: 'model_context_window_exceeded' };
}

export function htmlPage(title: string): string {
  return `<!DOCTYPE html>\n<html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>\n`;
}

function retryHeaders({ retryAfter, retryAfterMs, shouldRetry }: RetryHeaders): Record<string, string> {
  return {
    ...(retryAfter !== undefined && { 'retry-after': retryAfter instanceof Date ? retryAfter.toUTCString() : String(retryAfter) }),
    ...(retryAfterMs !== undefined && { 'retry-after-ms': String(retryAfterMs) }),
    ...(shouldRetry !== undefined && { 'x-should-retry': String(shouldRetry) }),
  };
}
