/** Limits that a provider puts on one key and one model, as its answers name them, and how a wait for one is worded. */
import { formatDuration } from './time-in-words.js';

/** What a provider limits. `tokens`: of prompt and answer together, as OpenAI counts. All but `streams` are a minute's. */
export type LimitKind = 'requests' | 'input' | 'output' | 'tokens' | 'streams';
export const LIMIT_KINDS: readonly LimitKind[] = ['requests', 'input', 'output', 'tokens', 'streams'];
export type PerKind = { readonly [K in LimitKind]?: number };

/** What an answer's headers say. */
export interface SeenLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until all of it is there again. */
  readonly resetMs?: number;
}
/** By what is limited. */
export type SeenLimits = { readonly [K in LimitKind]?: SeenLimit };

/** Milliseconds: a call is heard of at least so often, or its room is another's. */
export const LEASE_MS = 60_000;

/** A place in line for a model. */
export interface PlaceInLine {
  /** From 1. */
  readonly position: number;
  readonly waiting: number;
  readonly expectedMs: number;
}

/** `3rd in line for anthropic/claude-sonnet-5-5, about 12 s`. */
export function describePlace({ position, expectedMs }: PlaceInLine, model: string): string {
  return `${ordinal(position)} in line for ${model}, about ${formatDuration(expectedMs)}`;
}

function ordinal(count: number): string {
  const isTeen = count % 100 >= 11 && count % 100 <= 13;
  const end = isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][count % 10] ?? 'th');
  return `${count}${end}`;
}

// What the headers of an answer say: Anthropic's `anthropic-ratelimit-*`, and `x-ratelimit-*` of OpenAI and of the many that answer as it
// does. Those that say nothing of use are passed over.

/** Anthropic's `tokens` is whichever of its limits is the nearest, so it counts where it stands alone. */
const ANTHROPIC: readonly (readonly [LimitKind, string])[] = [
  ['requests', 'requests'],
  ['input', 'input-tokens'],
  ['output', 'output-tokens'],
];
const OPENAI: readonly (readonly [LimitKind, string])[] = [
  ['requests', 'requests'],
  ['tokens', 'tokens'],
];

export function readLimits(headers: Headers, now: number): SeenLimits {
  const anthropic = readAll(ANTHROPIC, (name, what) => headers.get(`anthropic-ratelimit-${name}-${what}`), now);
  const tokens = anthropic.input
    ? {}
    : readAll([['tokens', 'tokens']], (name, what) => headers.get(`anthropic-ratelimit-${name}-${what}`), now);
  const openai = readAll(OPENAI, (name, what) => headers.get(`x-ratelimit-${what}-${name}`), now);
  return { ...openai, ...tokens, ...anthropic };
}

function readAll(
  kinds: readonly (readonly [LimitKind, string])[],
  read: (name: string, what: 'limit' | 'remaining' | 'reset') => string | null,
  now: number,
): SeenLimits {
  return Object.fromEntries(
    kinds.flatMap(([kind, name]): [LimitKind, SeenLimit][] => {
      const [limit, remaining] = [readCount(read(name, 'limit')), readCount(read(name, 'remaining'))];
      if (limit === undefined || remaining === undefined || limit === 0) return [];
      const resetMs = readReset(read(name, 'reset'), now);
      return [[kind, { limit, remaining: Math.min(limit, remaining), ...(resetMs !== undefined && { resetMs }) }]];
    }),
  );
}

function readCount(text: string | null): number | undefined {
  return text !== null && /^\d{1,12}$/.test(text.trim()) ? Number(text) : undefined;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DAY_MS = 86_400_000;

/** A time (RFC 3339), a span such as `6m0s` or `120ms`, or seconds. */
function readReset(text: string | null, now: number): number | undefined {
  const given = text?.trim() ?? '';
  if (/^\d{4}-\d{2}-\d{2}T/.test(given)) return within(Date.parse(given) - now);
  if (/^\d+(\.\d+)?$/.test(given)) return within(Number(given) * 1_000);
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(given)) return undefined;
  const parts = [...given.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  return within(parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit ?? ''] ?? 0), 0));
}

function within(ms: number): number | undefined {
  return Number.isFinite(ms) ? Math.min(31 * DAY_MS, Math.max(0, Math.ceil(ms))) : undefined;
}
