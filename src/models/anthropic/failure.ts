/** From whatever a call threw to what went wrong, in our words. Pure; every failure of this provider is classified here and nowhere else. */
import { APIConnectionError, APIConnectionTimeoutError, APIError } from '@anthropic-ai/sdk';
import { ModelFailure, type ModelFailureKind } from '../model.js';

export interface FailureContext {
  /** `provider/model`. */
  readonly model: string;
  /** Never to be read in a message. */
  readonly apiKey: string;
  /** Epoch milliseconds: a `retry-after` may name a date. */
  readonly now: number;
}

const DAY_MS = 86_400_000;

/** The API's own fine print, where it gives any: the same status and type may stand for a limit that passes and one that does not. */
const KIND_OF_CODE: ReadonlyMap<string, ModelFailureKind> = new Map([
  ['contract_spend_limit_reached', 'billing'],
  ['enforced_spend_limit_reached', 'billing'],
  ['organization_on_hold', 'forbidden'],
  ['image_dimensions_too_large', 'too-large'],
]);

const KIND_OF_TYPE: ReadonlyMap<string, ModelFailureKind> = new Map([
  ['authentication_error', 'auth'],
  ['billing_error', 'billing'],
  ['permission_error', 'forbidden'],
  ['not_found_error', 'not-found'],
  ['request_too_large', 'too-large'],
  ['rate_limit_error', 'rate-limit'],
  ['overloaded_error', 'overloaded'],
  ['api_error', 'server'],
  ['timeout_error', 'timeout'],
  // Another request was in its way: it may pass.
  ['conflict_error', 'server'],
]);

const KIND_OF_STATUS: ReadonlyMap<number, ModelFailureKind> = new Map([
  [401, 'auth'],
  [402, 'billing'],
  [403, 'forbidden'],
  [404, 'not-found'],
  [408, 'timeout'],
  [409, 'server'],
  [413, 'too-large'],
  [429, 'rate-limit'],
  [504, 'timeout'],
  [529, 'overloaded'],
]);

const ADVICE: Record<ModelFailureKind, string> = {
  auth: 'Check the key in ANTHROPIC_API_KEY.',
  billing: 'Check credit, billing and spend limits of the account that the key belongs to.',
  forbidden: 'The key may not do this: check its workspace and permissions.',
  'not-found': 'Check the name of the model (PERDURA_MODEL, or "model" in agent.json) and the base URL.',
  'invalid-request': 'The request itself was refused, and would be again: correct the settings, or report it as a bug.',
  'too-large': 'Make the request smaller: fewer or smaller images, a shorter conversation.',
  'context-full': 'The conversation is longer than the model can read: compact it, or start a new one with /new.',
  'rate-limit': 'Wait a little, or ask for higher limits.',
  overloaded: 'It is busy; it usually passes within minutes.',
  server: 'The fault is on the other side; it usually passes.',
  connection: 'Check the network and the base URL.',
  timeout: 'It may pass; try again.',
  'broken-stream': 'The answer did not arrive whole; try again.',
  'missing-key': 'Set ANTHROPIC_API_KEY.',
};

export function toModelFailure(error: unknown, context: FailureContext): ModelFailure {
  const kind = kindOf(error);
  const status = error instanceof APIError ? (error.status as number | undefined) : undefined;
  const retryAfterMs = error instanceof APIError ? retryAfter(error.headers, context.now) : undefined;
  const what = scrub(reasonOf(error), context.apiKey);
  return new ModelFailure(kind, `cannot get an answer from ${context.model}: ${what}${/[.!?]$/.test(what) ? '' : '.'} ${ADVICE[kind]}`, {
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(status !== undefined && { status }),
    cause: scrubbedCause(error, context.apiKey),
  });
}

export function missingKey(model: string): ModelFailure {
  return new ModelFailure('missing-key', `cannot ask ${model}: there is no API key. ${ADVICE['missing-key']}`);
}

/** By the error's code and type before its status: an error in the middle of a stream has none of its own. */
function kindOf(error: unknown): ModelFailureKind {
  if (error instanceof ModelFailure) return error.kind;
  if (error instanceof APIConnectionTimeoutError) return 'timeout';
  if (error instanceof APIConnectionError) return 'connection';
  if (!(error instanceof APIError)) return isBrokenBody(error) ? 'broken-stream' : 'invalid-request';
  const status = error.status as number | undefined;
  const kind = KIND_OF_CODE.get(error.errorCode ?? '') ?? KIND_OF_TYPE.get(error.type ?? '') ?? KIND_OF_STATUS.get(status ?? 0);
  if (kind) return kind;
  if (status === undefined || status >= 500) return error.type === 'invalid_request_error' ? refusedKind(error) : 'server';
  return refusedKind(error);
}

/** A 400 has no code for these: its words, which may change, are all there is. */
function refusedKind(error: APIError): ModelFailureKind {
  const words = error.message;
  if (/prompt is too long|exceeds? (the )?context (limit|window)|context window/i.test(words)) return 'context-full';
  if (/credit balance|billing|usage limit|spend(ing)? limit/i.test(words)) return 'billing';
  return 'invalid-request';
}

/** What fetch throws while a body is read: a reset, a body cut short, bad compression. */
function isBrokenBody(error: unknown): boolean {
  if (!isError(error)) return false;
  const code = codeOf(error) ?? codeOf(error.cause);
  return error.message === 'terminated' || (code !== undefined && /^(UND_ERR_|ECONN|EPIPE|Z_|HPE_)/.test(code));
}

function reasonOf(error: unknown): string {
  if (error instanceof APIConnectionTimeoutError) return 'the connection timed out';
  if (error instanceof APIConnectionError) return `the connection failed (${rootCause(error)})`;
  if (error instanceof APIError) {
    const status = error.status as number | undefined;
    return [status, error.apiMessage ?? plainText(error.message, status)].filter((part) => part !== undefined && part !== '').join(' ');
  }
  return isError(error) ? error.message : String(error);
}

/** The SDK puts the whole body into the message; a proxy's is a web page. */
function plainText(message: string, status: number | undefined): string {
  const body = status === undefined ? message : message.replace(new RegExp(`^${status} ?`), '');
  const title = /<title[^>]*>([^<]{1,200})/i.exec(body)?.[1]?.trim();
  if (title !== undefined) return `(a web page: ${title})`;
  const text = body.replace(/\s+/g, ' ').trim();
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** fetch says `fetch failed`; why is in its cause, which may hold one error for each address tried. */
function rootCause(error: Error, levels = 5): string {
  const inner = error.cause ?? (error as { errors?: unknown[] }).errors?.[0];
  return isError(inner) && levels > 0 ? rootCause(inner, levels - 1) : error.message || (codeOf(error) ?? error.name);
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** Not by `instanceof`: fetch's errors may come from another realm than ours. */
function isError(value: unknown): value is Error {
  return typeof value === 'object' && value !== null && typeof (value as { message?: unknown }).message === 'string';
}

/** Milliseconds to wait as asked, a day at most; undefined where nothing sensible was asked. */
export function retryAfter(headers: Headers | undefined, now: number): number | undefined {
  const ms =
    waitOf(headers?.get('retry-after-ms'), 1) ?? waitOf(headers?.get('retry-after'), 1_000) ?? untilOf(headers?.get('retry-after'), now);
  return ms === undefined ? undefined : Math.min(Math.ceil(ms), DAY_MS);
}

function waitOf(value: string | null | undefined, unitMs: number): number | undefined {
  return value && /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) * unitMs : undefined;
}

/** Only what looks like an HTTP date: `Date.parse` finds a date in nearly anything, `-1` included. */
function untilOf(value: string | null | undefined, now: number): number | undefined {
  if (!value || !/[a-z]{3}.*\d{4}.*GMT/i.test(value)) return undefined;
  const ms = Date.parse(value) - now;
  return ms >= 0 ? ms : undefined;
}

function scrubbedCause(error: unknown, apiKey: string): Error | undefined {
  if (!isError(error)) return undefined;
  const cause = new Error(scrub(error.message, apiKey));
  cause.name = error.name;
  cause.stack = scrub(error.stack ?? '', apiKey);
  return cause;
}

function scrub(text: string, apiKey: string): string {
  const known = apiKey === '' ? text : text.replaceAll(apiKey, '[key]');
  return known.replace(/sk-ant-[\w-]+/g, '[key]');
}
