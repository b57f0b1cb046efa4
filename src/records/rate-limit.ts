/** Limits that a provider puts on one key and one model, as its answers name them, and how a wait for one is worded. */

import { formatDuration } from './time-in-words.js';

/** `tokens`: of prompt and answer together, as OpenAI counts. All but `streams` are a minute's. */
export const LIMIT_KINDS = ['requests', 'input', 'output', 'tokens', 'streams'] as const;
export type LimitKind = (typeof LIMIT_KINDS)[number];
export type PerKind = { readonly [K in LimitKind]?: number };

/** What an answer's headers say. */
export interface SeenLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until all of it is there again. */
  readonly resetMs?: number;
}
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
