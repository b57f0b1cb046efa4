/** Errors in the terms of HTTP. Each protocol has another shape for them. */
import { HTTPException } from 'hono/http-exception';
import { MissingPackage } from '../../platform/optional-package.js';
import { ClientError, type ClientErrorKind } from '../../client/errors.js';

export interface Problem {
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 409 | 413 | 415 | 422 | 429 | 431 | 500 | 501 | 503;
  /** A stable name of what went wrong, such as `not-found`. */
  readonly type: string;
  readonly message: string;
  /** Seconds after which the same request may succeed. */
  readonly retryAfter?: number;
  /** The field of the request that is at fault, where there is one. */
  readonly param?: string;
  /** Of a turn that failed: its model's words are not lost with the error. */
  readonly failed?: FailedTurn;
}

export interface FailedTurn {
  readonly conversation: string;
  readonly turn: string | null;
  /** The model's words before it. */
  readonly text: string;
}

export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

const STATUS: Readonly<Record<ClientErrorKind, Problem['status']>> = {
  'not-found': 404,
  invalid: 400,
  'too-large': 413,
  'media-type': 415,
  conflict: 409,
  closed: 409,
  'cannot-step': 409,
  'queue-full': 429,
  'not-waiting': 409,
  'no-worker': 503,
  unreachable: 503,
  aborted: 503,
  unavailable: 501,
  failed: 500,
};

const RETRY_AFTER_S: Partial<Record<ClientErrorKind, number>> = { 'queue-full': 5, 'no-worker': 5, unreachable: 2, aborted: 1 };

export function toProblem(error: unknown): Problem {
  if (error instanceof GatewayError) return error.problem;
  // An error of the framework: JSON that cannot be parsed, above all.
  if (error instanceof HTTPException) return { status: error.status === 413 ? 413 : 400, type: 'invalid', message: error.message };
  if (error instanceof ClientError) {
    const retryAfter = RETRY_AFTER_S[error.kind];
    return { status: STATUS[error.kind], type: error.kind, message: error.message, ...(retryAfter !== undefined && { retryAfter }) };
  }
  if (error instanceof Error && error.name === 'StoreUnavailable') {
    return { status: 503, type: 'unreachable', message: 'the store does not answer; try again', retryAfter: 2 };
  }
  if (error instanceof Error && error.name === 'LifeDeleted') {
    return { status: 404, type: 'not-found', message: 'the conversation was deleted while this request came; nothing of it was kept' };
  }
  if (error instanceof MissingPackage) {
    return { status: 501, type: 'missing-package', message: `this protocol is not served here: ${error.message}` };
  }
  // An unforeseen error may name paths and addresses: the log has it.
  return { status: 500, type: 'failed', message: 'the gateway failed; its log says why' };
}

/** Nothing was taken: a client may send the same again by itself. After anything else it could be a second message. */
export function isUntaken({ type }: Problem): boolean {
  return type === 'too-many-requests' || type === 'queue-full';
}

export function invalid(message: string, param?: string): GatewayError {
  return new GatewayError({ status: 400, type: 'invalid', message, ...(param !== undefined && param !== '' && { param }) });
}

/** Refuses a feature of a protocol that Perdura does not have, so that no client believes that it took effect. */
export function unsupported(what: string, param: string): GatewayError {
  return new GatewayError({ status: 400, type: 'unsupported', message: `${what} cannot be used here`, param });
}
