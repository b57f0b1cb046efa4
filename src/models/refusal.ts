/** A provider's no, over HTTP or in the middle of a stream, read from whichever of the providers' shapes it has. */
import { asList, asObject, asText } from './wire.js';
import { isRecord } from '../platform/json.js';

export interface Refused {
  /** The provider's message; may be empty. */
  readonly words: string;
  readonly status?: number;
  /** Its words for machines, the most exact first. */
  readonly codes: readonly string[];
  readonly retryAfterMs?: number;
}

export class Refusal extends Error {
  override readonly name = 'Refusal';
  constructor(readonly refused: Refused) {
    super(refused.words);
  }
}

/** No answer at all: it was not to be reached. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
  constructor(cause: unknown) {
    super('the server did not answer', { cause });
  }
}

export interface HttpOfRefusal {
  readonly status: number;
  readonly headers: Headers;
  /** Epoch milliseconds: a `retry-after` may name a date, and the answer carries no other date. */
  readonly now: number;
}

const DAY_MS = 86_400_000;

/** `body` is text as it came over HTTP, or the value that stood in a stream. */
export function toRefusal(body: unknown, http?: HttpOfRefusal): Refusal {
  const value = typeof body === 'string' ? parsedOrText(body) : body;
  const outer = asObject(Array.isArray(value) ? (value as unknown[])[0] : value);
  const error = isRecord(outer.error) ? asObject(outer.error) : outer;
  const words = readWords(value);
  const status = http?.status ?? (typeof error.code === 'number' ? error.code : undefined);
  const retryAfterMs = (http && retryAfter(http.headers, http.now)) ?? retryDelay(error.details);
  return new Refusal({
    words,
    ...(status !== undefined && { status }),
    codes: [
      // Of Amazon's services: `ThrottlingException:http://…`.
      (http?.headers.get('x-amzn-errortype') ?? '').replace(/[:#].*/, ''),
      asText(asObject(error.details).error_code),
      ...asList(error.details).map((detail) => asText(asObject(detail).reason)),
      asText(error.code),
      asText(error.type),
      asText(error.status),
    ].filter((code) => code !== ''),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

const FIELDS_OF_WORDS = [
  'message',
  'error',
  'detail',
  'msg',
  'error_message',
  'error_msg',
  'error_description',
  'errors',
  'title',
  // MiniMax, whose status may be 200
  'base_resp',
  'status_msg',
] as const;
const MAX_WORDS = 1_000;

/** A person's words, wherever a server has them: a text, a list of faults with their places (FastAPI), an object inside another. */
function readWords(value: unknown, levels = 4): string {
  if (typeof value === 'string') return levels === 4 ? plainText(value) : value.trim().slice(0, MAX_WORDS);
  if (levels === 0) return '';
  if (Array.isArray(value)) {
    const faults = value.slice(0, 3).map((one: unknown) => {
      const words = readWords(one, levels - 1);
      const place = asList(asObject(one).loc).filter((part) => typeof part === 'string' || typeof part === 'number');
      return words === '' || place.length === 0 ? words : `${place.join('.')}: ${words}`;
    });
    return faults
      .filter((words) => words !== '')
      .join('; ')
      .slice(0, MAX_WORDS);
  }
  const given = asObject(value);
  for (const field of FIELDS_OF_WORDS) {
    const words = readWords(given[field], levels - 1);
    if (words !== '') return words;
  }
  return '';
}

function parsedOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A proxy's refusal is a web page. */
function plainText(body: string): string {
  const title = /<title[^>]*>([^<]{1,200})/i.exec(body)?.[1]?.trim();
  if (title !== undefined) return `(a web page: ${title})`;
  const text = body.replace(/\s+/g, ' ').trim();
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** Milliseconds to wait as the provider wants, a day at most; undefined where it names no sensible time. */
export function retryAfter(headers: Headers, now: number): number | undefined {
  const ms =
    parseWait(headers.get('retry-after-ms'), 1) ??
    parseWait(headers.get('retry-after'), 1_000) ??
    // By the clock that the date was made with: ours may be off.
    timeUntil(headers.get('retry-after'), parseHttpDate(headers.get('date')) ?? now);
  return ms === undefined ? undefined : Math.min(Math.ceil(ms), DAY_MS);
}

function parseWait(value: string | null, unitMs: number): number | undefined {
  return value && /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) * unitMs : undefined;
}

function timeUntil(value: string | null, now: number): number | undefined {
  const ms = (parseHttpDate(value) ?? NaN) - now;
  return ms >= 0 ? ms : undefined;
}

/** Only what looks like an HTTP date: `Date.parse` finds a date in nearly anything, `-1` included. */
function parseHttpDate(value: string | null): number | undefined {
  const at = value && /[a-z]{3}.*\d{4}.*GMT/i.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(at) ? undefined : at;
}

/** Google says it in the body, as `{ retryDelay: '7s' }` among the details. */
function retryDelay(details: unknown): number | undefined {
  const delay = asList(details)
    .map((detail) => /^(\d+(?:\.\d+)?)s$/.exec(asText(asObject(detail).retryDelay))?.[1])
    .find((seconds) => seconds !== undefined);
  return delay === undefined ? undefined : Math.min(Math.ceil(Number(delay) * 1_000), DAY_MS);
}
