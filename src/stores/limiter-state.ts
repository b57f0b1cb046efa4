/**
 * A limiter's state, and what the calls of its port do to it (rate-limits.ts has the rules): what is left of each limit, who waits, and whose
 * calls are under way. Pure.
 */
import { LEASE_MS, LIMIT_KINDS, type LimitKind, type PerKind } from '../records/rate-limit.js';
import {
  BACKGROUND_COST,
  BY_ANSWERS,
  BY_REFUSALS,
  BY_SETTING,
  FIRST_DURATION_MS,
  FIRST_GUESS,
  FORGOTTEN_MS,
  GRACE_MS,
  LATE_MS,
  LEARNS_FROM,
  MAX_GUESS,
  MIN_RATIO,
  MAX_WAIT_MS,
  MIN_WAIT_MS,
  MAX_RATIO,
  RESERVE,
  SOURCES,
  type LimitClaim,
  type LimitState,
  type Outcome,
  type Taken,
  type TimedLimits,
} from './rate-limits.js';

export interface Bucket {
  limit: number;
  /** A millisecond; 0 for streams. */
  rate: number;
  level: number;
  /** Of what a call estimates, what it counts for. */
  ratio: number;
  /** Place in SOURCES. */
  source: number;
  /** All that was estimated since the beginning. */
  estimated: number;
  /** What the last answer told that counted for the ratio; -1: none. */
  seen: number;
  seenAt: number;
  seenEstimated: number;
}

interface Flow {
  /** Virtual time at which its next call begins. */
  start: number;
  count: number;
  cost: number;
}

interface Ticket {
  flow: string;
  conversation: string;
  order: number;
  cost: number;
  until: number;
  /** Its holder did not come back in time (stores/late-place). */
  isLate?: boolean;
}

interface Lease {
  /** What it was estimated at, by kind, and all that had been by then. */
  base: { [kind: string]: number };
  need: { [kind: string]: number };
  estimated: { [kind: string]: number };
  at: number;
  until: number;
  isHeard: number;
}

export interface LimiterState {
  at: number;
  virtual: number;
  blocked: number;
  /** Of a call, on average. */
  duration: number;
  number: number;
  /** The first in line, while there is no room for it: those behind it leave that room alone. */
  head: string;
  headCost: number;
  buckets: { [kind: string]: Bucket };
  flows: { [name: string]: Flow };
  tickets: { [id: string]: Ticket };
  leases: { [id: string]: Lease };
}

export function newLimiter(now: number): LimiterState {
  return {
    ...{ at: now, virtual: 0, blocked: 0, duration: FIRST_DURATION_MS, number: 0, head: '', headCost: 0 },
    ...{ buckets: {}, flows: {}, tickets: {}, leases: {} },
  };
}

/** Of a tenant's calls, in the foreground or not: `+acme`, `-acme`. */
export function toFlow({ tenant, isBackground }: Pick<LimitClaim, 'tenant' | 'isBackground'>): string {
  return `${isBackground ? '-' : '+'}${tenant}`;
}

function weigh(flow: string): number {
  return flow.startsWith('-') ? BACKGROUND_COST : 1;
}

export function take(state: LimiterState, claim: LimitClaim, now: number): Taken {
  pass(state, now);
  setLimits(state, claim.set);
  const lease = state.leases[claim.id];
  if (lease) {
    lease.until = now + LEASE_MS;
    return { status: 'granted' };
  }
  const kinds = LIMIT_KINDS.filter((kind) => state.buckets[kind]);
  if (kinds.length === 0 && state.blocked <= now) return { status: 'free' };
  const base = estimate(claim);
  const need: { [kind: string]: number } = {};
  let [cost, slack] = [1, 1e12];
  for (const kind of kinds) {
    const { limit, ratio, level, rate } = bucket(state, kind);
    const isStreams = kind === 'streams';
    const most = isStreams ? limit : limit - toReserve(limit);
    need[kind] = isStreams ? 1 : Math.min(most, base[kind] * ratio);
    const speed = isStreams ? limit / state.duration : rate;
    const left = isStreams ? limit - Object.keys(state.leases).length : level - toReserve(limit);
    cost = Math.max(cost, need[kind] / speed);
    slack = Math.min(slack, (left - need[kind]) / speed);
  }
  const name = enter(state, { id: claim.id, name: toFlow(claim), conversation: claim.conversation, cost });
  const { position, aheadMs } = findPlace(state, claim.id, name);
  const wait = Math.max(aheadMs - slack, state.blocked - now + (state.blocked > now ? aheadMs : 0));
  if (wait <= 0) {
    grant(state, claim.id, { name, cost, base, need, kinds, now });
    return { status: 'granted' };
  }
  if (position === 1) [state.head, state.headCost] = [claim.id, cost];
  const ms = Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, Math.ceil(wait)));
  const ticket = state.tickets[claim.id];
  if (ticket) ticket.until = now + ms + LATE_MS;
  return { status: 'wait', position, waiting: waitingIn(state), ms, expectedMs: Math.ceil(wait) };
}

function estimate({ input, output }: LimitClaim): { readonly [K in LimitKind]: number } {
  return { requests: 1, input, output, tokens: input + output, streams: 1 };
}

function toReserve(limit: number): number {
  return Math.floor(limit * RESERVE);
}

/** Only where there is one. */
function bucket(state: LimiterState, kind: LimitKind): Bucket {
  return state.buckets[kind] as Bucket;
}

/** Time since the last call: buckets fill, and what belongs to no one any more is taken away. */
export function pass(state: LimiterState, now: number): void {
  if (state.at > now) setBack(state, now);
  const since = now - state.at;
  state.at = now;
  for (const one of Object.values(state.buckets)) one.level = Math.min(one.limit, one.level + one.rate * since);
  for (const [id, ticket] of Object.entries(state.tickets)) {
    if (ticket.until < now && !ticket.isLate) {
      stepOut(state, id, ticket);
      Object.assign(ticket, { isLate: true, until: ticket.until + GRACE_MS - LATE_MS });
    }
    if (ticket.until < now) leave(state, id);
  }
  for (const [id, { until }] of Object.entries(state.leases)) if (until < now) delete state.leases[id];
}

/** (stores/clocks-differ) */
function setBack(state: LimiterState, now: number): void {
  const ahead = state.at - now;
  state.at = now;
  state.blocked -= ahead;
  for (const one of Object.values(state.buckets)) one.seenAt -= ahead;
  for (const one of [...Object.values(state.tickets), ...Object.values(state.leases)]) one.until = Math.min(one.until, now + LEASE_MS);
}

function setLimits(state: LimiterState, set: PerKind): void {
  for (const kind of LIMIT_KINDS) {
    const limit = set[kind];
    if (limit === undefined) continue;
    const known = state.buckets[kind];
    if (!known) state.buckets[kind] = newBucket(limit, kind === 'streams' ? 0 : limit / 60_000, limit, BY_SETTING);
    else if (known.limit > limit || known.source === BY_SETTING) resize(known, limit, kind === 'streams' ? 0 : limit / 60_000, BY_SETTING);
  }
}

function newBucket(limit: number, rate: number, level: number, source: number): Bucket {
  return { limit, rate, level, ratio: 1, source, estimated: 0, seen: -1, seenAt: 0, seenEstimated: 0 };
}

function resize(known: Bucket, limit: number, rate: number, source: number): void {
  if (limit > known.limit) known.level += limit - known.limit;
  Object.assign(known, { limit, rate, source, level: Math.min(limit, known.level) });
}

function waitingIn({ flows }: LimiterState): number {
  return Object.values(flows).reduce((sum, { count }) => sum + count, 0);
}

/** The share in which it waits: the first one that it had. */
function enter(
  state: LimiterState,
  { id, name, conversation, cost }: { readonly id: string; readonly name: string; readonly conversation: string; readonly cost: number },
): string {
  const known = state.tickets[id];
  if (known && !known.isLate) {
    const flow = state.flows[known.flow];
    if (flow) flow.cost += cost - known.cost;
    known.cost = cost;
    return known.flow;
  }
  const flow = (state.flows[known?.flow ?? name] ??= { start: state.virtual, count: 0, cost: 0 });
  if (flow.count === 0) flow.start = Math.max(flow.start, state.virtual);
  if (known) {
    Object.assign(known, { isLate: false, cost });
    flow.count += 1;
    flow.cost += cost;
    return known.flow;
  }
  const same = Object.values(state.tickets).filter((one) => one.flow === name && one.conversation === conversation).length;
  state.number += 1;
  state.tickets[id] = { flow: name, conversation, order: state.number + same * flow.count, cost, until: state.at + MAX_WAIT_MS };
  flow.count += 1;
  flow.cost += cost;
  return name;
}

function leave(state: LimiterState, id: string): void {
  const ticket = state.tickets[id];
  if (!ticket) return;
  delete state.tickets[id];
  if (!ticket.isLate) stepOut(state, id, ticket);
}

function stepOut(state: LimiterState, id: string, ticket: Ticket): void {
  if (state.head === id) state.head = '';
  const flow = state.flows[ticket.flow];
  if (!flow) return;
  flow.count -= 1;
  flow.cost = flow.count === 0 ? 0 : flow.cost - ticket.cost;
  // Once the line is empty, what anyone had before counts no more.
  if (waitingIn(state) === 0) [state.flows, state.virtual] = [{}, 0];
  else if (flow.count === 0 && flow.start <= state.virtual) delete state.flows[ticket.flow];
}

/** (stores/fair-line) */
function findPlace(state: LimiterState, id: string, name: string): { readonly position: number; readonly aheadMs: number } {
  const [ticket, flow] = [state.tickets[id] as Ticket, state.flows[name] as Flow];
  const before = Object.entries(state.tickets).filter(
    ([other, { flow: of, order, isLate }]) => of === name && !isLate && (order < ticket.order || (order === ticket.order && other < id)),
  ).length;
  const average = flow.cost / flow.count;
  const start = flow.start + before * average * weigh(name);
  let [ahead, aheadMs] = [before, before * average];
  for (const other of Object.keys(state.flows).sort()) {
    const one = state.flows[other] as Flow;
    if (other === name || one.count === 0) continue;
    const each = one.cost / one.count;
    const steps = (start - one.start) / (each * weigh(other));
    const first = Math.min(one.count, Math.max(0, other < name ? Math.floor(steps) + 1 : Math.ceil(steps)));
    ahead += first;
    aheadMs += first * each;
  }
  if (ahead > 0 && state.head !== '' && state.head !== id) aheadMs = Math.max(aheadMs, state.headCost);
  return { position: ahead + 1, aheadMs };
}

function grant(
  state: LimiterState,
  id: string,
  {
    name,
    cost,
    base,
    need,
    kinds,
    now,
  }: {
    readonly name: string;
    readonly cost: number;
    readonly base: { readonly [K in LimitKind]: number };
    readonly need: { readonly [kind: string]: number };
    readonly kinds: readonly LimitKind[];
    readonly now: number;
  },
): void {
  const flow = state.flows[name] as Flow;
  state.virtual = Math.max(state.virtual, flow.start);
  flow.start += cost * weigh(name);
  leave(state, id);
  const lease: Lease = { base: {}, need: {}, estimated: {}, at: now, until: now + LEASE_MS, isHeard: 0 };
  for (const kind of kinds) {
    const one = bucket(state, kind);
    if (kind !== 'streams') one.level -= need[kind] ?? 0;
    one.estimated += base[kind];
    lease.base[kind] = base[kind];
    lease.need[kind] = need[kind] ?? 0;
    lease.estimated[kind] = one.estimated;
  }
  state.leases[id] = lease;
}

/** (stores/answers-correct) */
export function learn(state: LimiterState, id: string, seen: TimedLimits, set: PerKind, now: number): void {
  pass(state, now);
  const lease = state.leases[id];
  for (const kind of LIMIT_KINDS) {
    const told = seen[kind];
    if (!told || kind === 'streams') continue;
    const most = set[kind] ?? told.limit;
    const limit = Math.min(most, told.limit);
    const source = limit < told.limit ? BY_SETTING : BY_ANSWERS;
    // A limit that a person has set is a part of the provider's.
    const remaining = Math.max(0, told.remaining - (told.limit - limit));
    const { perMs } = told;
    const rate = limit / (source === BY_SETTING ? 60_000 : perMs);
    const known = state.buckets[kind];
    if (!known) {
      state.buckets[kind] = newBucket(limit, rate, remaining, source);
      continue;
    }
    // A period is known for sure only once much of the limit was used.
    if (known.limit !== limit || known.source !== source || perMs !== 60_000) resize(known, limit, rate, source);
    const estimated = lease?.estimated[kind];
    if (!lease || estimated === undefined) {
      known.level = Math.min(known.level, remaining);
      continue;
    }
    correct(state, known, { kind, id, lease, estimated, remaining, now });
    if (kind !== 'requests') learnRatio(known, { estimated, remaining, now });
  }
  if (lease) lease.isHeard = 1;
}

/** Between what is left if the provider has seen nothing that came after, and what is left if it has seen all. */
function correct(
  state: LimiterState,
  known: Bucket,
  of: {
    readonly kind: LimitKind;
    readonly id: string;
    readonly lease: Lease;
    readonly estimated: number;
    readonly remaining: number;
    readonly now: number;
  },
): void {
  let unseen = known.estimated - of.estimated;
  for (const [other, { base, estimated, isHeard }] of Object.entries(state.leases)) {
    const isBefore = (estimated[of.kind] ?? 0) <= of.estimated;
    if (isBefore && (of.kind === 'output' || (other !== of.id && isHeard === 0))) unseen += base[of.kind] ?? 0;
  }
  const least = of.remaining - unseen * known.ratio;
  const most = of.remaining + known.rate * Math.max(0, of.now - of.lease.at);
  known.level = Math.min(known.limit, most, Math.max(least, known.level));
}

function learnRatio(known: Bucket, of: { readonly estimated: number; readonly remaining: number; readonly now: number }): void {
  const more = of.estimated - known.seenEstimated;
  if (known.seen >= 0 && (more <= 0 || more * known.ratio < known.limit * LEARNS_FROM)) return;
  const filled = known.seen + known.rate * (of.now - known.seenAt);
  // A bucket that was full says nothing of what was taken out meanwhile.
  if (known.seen >= 0 && filled < known.limit) {
    const ratio = Math.min(MAX_RATIO, Math.max(MIN_RATIO, (filled - of.remaining) / more));
    known.ratio = known.ratio * 0.7 + ratio * 0.3;
  }
  Object.assign(known, { seen: of.remaining, seenAt: of.now, seenEstimated: of.estimated });
}

export function release(state: LimiterState, id: string, { refusedMs, input, output }: Outcome, now: number): void {
  pass(state, now);
  leave(state, id);
  const lease = state.leases[id];
  delete state.leases[id];
  if (refusedMs !== undefined) {
    state.blocked = Math.max(state.blocked, now + refusedMs);
    slowDown(state, lease);
    return;
  }
  speedUp(state);
  if (!lease) return;
  state.duration = Math.max(100, state.duration * 0.9 + (now - lease.at) * 0.1);
  if (lease.isHeard === 1 || input === undefined || output === undefined) return;
  // A provider that says nothing of what is left: its count of the tokens is all there is.
  const used: PerKind = { input, output, tokens: input + output };
  for (const kind of ['input', 'output', 'tokens'] as const) {
    const [known, base, need] = [state.buckets[kind], lease.base[kind], lease.need[kind]];
    if (!known || base === undefined || need === undefined || base <= 0) continue;
    known.level = Math.min(known.limit, known.level + need - (used[kind] ?? 0));
    known.ratio = known.ratio * 0.9 + 0.1 * Math.min(MAX_RATIO, Math.max(MIN_RATIO, (used[kind] ?? 0) / base));
  }
}

/** A provider that says nothing of its limits, and refuses: fewer calls are under way at once. */
function slowDown(state: LimiterState, lease: Lease | undefined): void {
  if (LIMIT_KINDS.some((kind) => state.buckets[kind] && bucket(state, kind).source !== BY_REFUSALS)) return;
  const known = state.buckets.streams;
  if (!known) state.buckets.streams = { ...newBucket(FIRST_GUESS, 0, FIRST_GUESS, BY_REFUSALS), seenAt: state.at };
  // Calls that were under way together are refused together: that counts once.
  else if (lease && lease.at > known.seenAt) Object.assign(known, { limit: Math.max(1, known.limit / 2), seenAt: state.at });
}

function speedUp(state: LimiterState): void {
  const known = state.buckets.streams;
  if (known?.source !== BY_REFUSALS) return;
  if (known.limit >= MAX_GUESS) delete state.buckets.streams;
  else known.limit += 1 / known.limit;
}

export function showLimiter(of: string, state: Omit<LimiterState, 'tickets' | 'leases'>, streams: number, now: number): LimitState {
  return {
    of,
    limits: LIMIT_KINDS.flatMap((kind) => {
      const known = state.buckets[kind];
      if (!known) return [];
      const { limit, rate, level, source } = known;
      const left = Math.max(0, Math.floor(kind === 'streams' ? limit - streams : level));
      return [
        {
          kind,
          limit: Math.floor(limit),
          left,
          ...(rate > 0 && { perMs: Math.round(limit / rate) }),
          source: SOURCES[source] ?? 'answers',
        },
      ];
    }),
    streams,
    waiting: Object.keys(state.flows)
      .sort()
      .flatMap((name) => {
        const { count } = state.flows[name] as Flow;
        return count === 0 ? [] : [{ tenant: name.slice(1), isBackground: name.startsWith('-'), count }];
      }),
    blockedMs: Math.max(0, state.blocked - now),
  };
}

/** Without those that no call has used for long: it has no more to say than a new one. */
export function isForgotten({ at }: LimiterState, now: number): boolean {
  return now - at > FORGOTTEN_MS;
}
