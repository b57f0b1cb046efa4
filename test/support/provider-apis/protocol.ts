/** What a scripted server must know of the API it plays; everything else is the same for all of them. */
import type { IncomingHttpHeaders } from 'node:http';
import type { ApiError } from './api-error.js';
import type { Reply } from './reply.js';

/** Where in a stream something may happen. */
export type Landmark = 'content' | 'block-stop' | 'message-delta' | 'message-stop';

/** An event as it goes over the wire. */
export interface Frame {
  readonly bytes: string | Uint8Array;
  /** How much content it carries. */
  readonly chars: number;
  readonly landmarks: readonly Landmark[];
}

/** What a stream may have in it besides an answer. */
export type OddFrame =
  | { readonly kind: 'error'; readonly error: ApiError }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'ping' }
  /** The beginning of an event that never ends. */
  | { readonly kind: 'half' };

export interface Incoming {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed text; undefined when it was no JSON. */
  readonly body: unknown;
}

export interface Protocol<Request> {
  /** As problems are told: `Messages API`. */
  readonly name: string;
  readonly contentType: string;
  readonly maxBodyBytes: number;
  /** What is asked for; a refusal where there is nothing. */
  route(incoming: Incoming): 'answer' | 'count' | ApiError;
  /** `apiKey`: the only one that is accepted. */
  checkHeaders(incoming: Incoming, apiKey?: string): ApiError | undefined;
  /** What the real API would refuse. */
  checkRequest(incoming: Incoming): ApiError | undefined;
  /** The one place where a body becomes a request: strict mode has it checked, the other trusts the test. */
  read(incoming: Incoming): Request | undefined;
  wantsStream(request: Request): boolean;
  toFrames(reply: Reply, request: Request): readonly Frame[];
  /** As a request without a stream gets it. */
  toWhole(reply: Reply, request: Request): unknown;
  /** The answer to a request to count. */
  count?(request: Request): unknown;
  toOddFrame(odd: OddFrame): string | Uint8Array;
  /** A refusal in the API's usual words unless told others. */
  error(status: number, message?: string, type?: string): ApiError;
  errorBody(error: ApiError, requestId: string): unknown;
}

/** One event of a stream of events. */
export function toSse(data: unknown, event?: string): string {
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

export function frame(bytes: string | Uint8Array, chars = 0, ...landmarks: readonly Landmark[]): Frame {
  return { bytes, chars, landmarks };
}
