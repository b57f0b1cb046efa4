/**
 * Limits of providers that all workers share: how many requests and tokens a minute, and how many streams at once, one key may have of one
 * model. A call takes room before it goes out, or gets a place in line and comes back; no worker waits for another.
 *
 * Here is the port. What each of its calls does to a state is in limiter-state.ts, and in Lua in redis-rate-limits.ts.
 *
 * @rule stores/fair-line: Tenants have equal shares of what a limit gives, and what works in the background one in BACKGROUND_COST + 1;
 *   within a share a conversation's second call goes behind the first ones of the others. (test: test/stores/rate-limits-contract.ts)
 * @rule stores/late-place: Who has a place in line and does not come back when it was told to holds up no other after LATE_MS: others take
 *   the room, and it has its place again when it comes by GRACE_MS. (test: test/stores/rate-limits-contract.ts)
 * @rule stores/room-comes-back: Of a worker that died the room and the place are free again after LEASE_MS and GRACE_MS. (test:
 *   test/stores/rate-limits-contract.ts)
 * @rule stores/answers-correct: What an answer says is left is true, less what the provider had not seen by then: a level that differs is
 *   corrected, and so is what a token of an estimate counts for. (test: test/stores/rate-limits-contract.ts)
 * @rule stores/clocks-differ: What a clock that was ahead has written, of another worker or of a Redis that is gone, counts as written now:
 *   it holds no one up until then. (test: test/stores/rate-limits-contract.ts)
 */

import type { LimitKind, PerKind, PlaceInLine, SeenLimit, SeenLimits } from '../records/rate-limit.js';

/** With the milliseconds for which each counts. */
export type TimedLimits = { readonly [K in LimitKind]?: SeenLimit & { readonly perMs: number } };

export interface LimitClaim {
  /** Of the call, over all attempts. */
  readonly id: string;
  readonly tenant: string;
  /** The conversation that people began, whose sub-agent it may be. */
  readonly conversation: string;
  /** No person waits for it at once. */
  readonly isBackground: boolean;
  /** Tokens, by estimate. */
  readonly input: number;
  readonly output: number;
  /** Limits that a person has set. */
  readonly set: PerKind;
}

/** `free`: no limit is known. `ms`: when to come back. */
export type Taken = { readonly status: 'free' | 'granted' } | ({ readonly status: 'wait'; readonly ms: number } & PlaceInLine);

/** By their places. */
export const SOURCES = ['answers', 'setting', 'refusals'] as const;
export type LimitSource = (typeof SOURCES)[number];
export const [BY_ANSWERS, BY_SETTING, BY_REFUSALS] = [0, 1, 2];

/** How a call ended. `refusedMs`: the provider wants no request for so long. */
export interface Outcome {
  readonly refusedMs?: number;
  readonly input?: number;
  readonly output?: number;
}

export interface LimitState {
  /** `provider/model#account` */
  readonly of: string;
  readonly limits: readonly {
    readonly kind: LimitKind;
    readonly limit: number;
    readonly left: number;
    /** Milliseconds for which the limit counts; absent for streams. */
    readonly perMs?: number;
    /** What says so: answers of the provider, a setting, or refusals of a provider that says nothing of its limits. */
    readonly source: LimitSource;
  }[];
  readonly streams: number;
  readonly waiting: readonly { readonly tenant: string; readonly isBackground: boolean; readonly count: number }[];
  /** Milliseconds for which the provider wants no request; 0: it takes them. */
  readonly blockedMs: number;
}

/** `of`: `provider/model#account`. All reject where the store is away. */
export interface RateLimits {
  /** Room for a call, or its place in line. Again, for a call that has room, it keeps the room. */
  take(of: string, claim: LimitClaim): Promise<Taken>;
  /** What the answer to a call told. */
  learn(of: string, id: string, seen: SeenLimits, set: PerKind): Promise<void>;
  /** Gives back the room of a call, or its place. What is not there is no error. */
  release(of: string, id: string, outcome: Outcome): Promise<void>;
  list(): Promise<readonly LimitState[]>;
}

/** After its time a place in line counts for so long, and is kept for so long. */
export const [LATE_MS, GRACE_MS] = [1_000, 20_000];
/** Share of a background call: in a line of people it has one place in so many. */
export const BACKGROUND_COST = 16;
/** Milliseconds: before it nothing would have changed; after it a person wants to hear how far the line is. */
export const [MIN_WAIT_MS, MAX_WAIT_MS] = [250, 30_000];
/** Of a limit, left alone: estimates miss, and a provider may round. */
export const RESERVE = 0.02;
/** Share of a limit that must have been estimated for before what was counted says how the provider counts. */
export const LEARNS_FROM = 0.02;
/** Of what an estimate counts for. */
export const [MIN_RATIO, MAX_RATIO] = [0.02, 100];
/** Of a new state. */
export const FIRST_DURATION_MS = 10_000;
/** A state that no call has touched for so long is forgotten. */
export const FORGOTTEN_MS = 24 * 3_600_000;
/**
 * Calls under way at once, with a provider that refuses and does not say how many it takes: after the first refusal, and from where on they
 * are not counted any more. A refusal halves them, and each round of answers makes them one more, as TCP does with its window: a rate would
 * have to be known, and fall for ever with a provider that refuses by chance.
 */
export const [FIRST_GUESS, MAX_GUESS] = [32, 64];

const DAY_MS = 86_400_000;

export function withPeriods(seen: SeenLimits): TimedLimits {
  return Object.fromEntries(Object.entries(seen).map(([kind, one]) => [kind, { ...one, perMs: toPeriod(one) }]));
}

/** For what time a limit counts: a minute, unless it takes much longer until what was used is there again. */
function toPeriod({ limit, remaining, resetMs }: SeenLimit): number {
  const used = limit - remaining;
  if (resetMs === undefined || used < limit / 5) return 60_000;
  const whole = (resetMs * limit) / used;
  return whole > 12 * 3_600_000 ? DAY_MS : whole > 600_000 ? 3_600_000 : whole < 5_000 ? 1_000 : 60_000;
}
