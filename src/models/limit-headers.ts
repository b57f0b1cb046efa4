/**
 * What the headers of an answer say of limits: Anthropic's `anthropic-ratelimit-*`, and `x-ratelimit-*` of OpenAI and of the many that
 * answer as it does. Pure. Headers that say nothing of use are passed over.
 */
import type { LimitKind, SeenLimit, SeenLimits } from '../records/rate-limit.js';

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
