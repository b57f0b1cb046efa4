/**
 * A separate program, run as a thread beside a worker and never imported: it holds the worker's lease with the store, says there what the
 * worker runs, and looks which others have ended. That does not depend on what the worker is busy with.
 *
 * @rule recovery/quick-is-silent: What ends within ANNOUNCE_AFTER_MS is not announced by itself; its conversation is, once in a while. (test:
 *   test/recovery/lease-thread.test.ts)
 * @rule recovery/taken-begins-anew: A lease that was claimed is over for good: what ran under it is fenced, and the worker goes on with a new
 *   one. (test: test/recovery/lease-thread.test.ts)
 */
import { randomUUID } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { createFileLeases } from '../stores/file/leases.js';
import {
  BEAT_TICKS,
  createIsGone,
  judge,
  ownCard,
  MAX_RECENT,
  TICK_MS,
  type Announced,
  type Leases,
  type RunningAttempt,
  type Watched,
} from '../stores/leases.js';
import type * as redis from '../stores/redis/leases.js';

export interface LeaseThreadData {
  readonly redisUrl?: string;
  /** Where files are the store. */
  readonly memoryDir: string;
  readonly namespace: string;
  readonly taskQueue: string;
  /** As Temporal knows this worker. */
  readonly identity: string;
  /** When the last beat left that was answered, by the system's steady clock, in nanoseconds. */
  readonly beaten: SharedArrayBuffer;
}

export type ToLease =
  | { readonly kind: 'began'; readonly attempt: RunningAttempt }
  | { readonly kind: 'ended'; readonly token: string }
  /** Beats now. */
  | { readonly kind: 'confirm'; readonly number: number }
  /** All that ran under a claimed lease is seen to. */
  | { readonly kind: 'settled'; readonly lease: string }
  | { readonly kind: 'withdraw' };

export type FromLease =
  | { readonly kind: 'claimed'; readonly lease: string; readonly why: 'gone' | 'silent'; readonly announced: Announced }
  /** This worker's lease has ended, and another one goes on with what it ran. */
  | { readonly kind: 'fenced'; readonly lease: string }
  | { readonly kind: 'confirmed'; readonly number: number }
  | { readonly kind: 'withdrawn' };

/** A text turn of a model that answers at once is over by then. */
const ANNOUNCE_AFTER_MS = 25;
/** A conversation that was quiet for longer has no next task waiting with this worker. */
const RECENT_MS = 30_000;
/** A look that is later than this after the one before it was not in time. */
const IN_TIME_MS = 2.5 * TICK_MS;

const { redisUrl, memoryDir, namespace, taskQueue, identity, beaten } = workerData as LeaseThreadData;
const place = { namespace, taskQueue };
const leases = openLeases();
const heldSince = new BigInt64Array(beaten);
const card = ownCard();
const isGone = createIsGone();
const begun = new Map<string, { readonly attempt: RunningAttempt; readonly at: number }>();
let lease = freshId();
let number = 0;
/** Workflows that this worker has worked for, the latest one last; and when. */
const recent = new Map<string, number>();
/** As the store has it; undefined where it has nothing of this lease. */
let announced: Announced | undefined;
let announcing: NodeJS.Timeout | undefined;
let hasNewRecent = false;
let watched: Watched = new Map();
let ticks = 0;
let lookedAt = -Infinity;
let isLooking = false;
let isOver = false;

function openLeases(): Leases {
  if (redisUrl === undefined) return createFileLeases(memoryDir, place);
  const { createRedisLeases } = require('../stores/redis/leases.js') as typeof redis;
  return createRedisLeases(redisUrl, place);
}

function freshId(): string {
  return `${process.pid}-${randomUUID().slice(0, 13)}`;
}

/** One after the other: a later beat must not be overtaken by what an earlier one says to run. One that waits says what there is by then. */
let beats = Promise.resolve();
let isBeatWaiting = false;
function beat(): Promise<void> {
  if (isBeatWaiting) return beats;
  isBeatWaiting = true;
  beats = beats
    .then(() => {
      isBeatWaiting = false;
      return beatOnce();
    })
    .catch(() => undefined);
  return beats;
}

async function beatOnce(): Promise<void> {
  if (isOver) return;
  const sentAt = process.hrtime.bigint();
  const old = performance.now() - ANNOUNCE_AFTER_MS;
  const running = [...begun.values()].filter(({ at }) => at <= old).map(({ attempt }) => attempt);
  const now = { identity, running, recent: takeRecent() };
  const isKnown = announced !== undefined && isSame(announced, now);
  const answer = await leases.beat(lease, { number: (number += 1), card, ...(!isKnown && { announced: now }) });
  if (answer === 'taken') return beginAnew();
  announced = answer === 'again' ? undefined : now;
  Atomics.store(heldSince, 0, sentAt);
}

/**
 * One that is known keeps its place for a while: a conversation that goes on changes nothing that would have to be written. One that is new is
 * announced at once: a take-over must know of its first attempt, however soon that is cut off.
 */
function noteRecent({ workflowId }: RunningAttempt): void {
  const now = performance.now();
  const at = recent.get(workflowId);
  if (workflowId === '' || (at !== undefined && now - at < RECENT_MS / 2)) return;
  recent.delete(workflowId);
  recent.set(workflowId, now);
  if (at === undefined) void beat();
  else hasNewRecent = true;
}

function takeRecent(): readonly string[] {
  const oldest = performance.now() - RECENT_MS;
  for (const [id, at] of recent) if (at < oldest || recent.size > MAX_RECENT) recent.delete(id);
  return [...recent.keys()];
}

function isSame(one: Announced, other: Announced): boolean {
  const toTokens = ({ running }: Announced): string => running.map(({ token }) => token).join();
  return toTokens(one) === toTokens(other) && one.recent.join() === other.recent.join();
}

/** (recovery/taken-begins-anew) */
function beginAnew(): void {
  report({ kind: 'fenced', lease });
  begun.clear();
  lease = freshId();
  announced = undefined;
  watched = new Map();
}

async function look(): Promise<void> {
  if (isLooking || isOver) return;
  isLooking = true;
  try {
    const seen = await leases.list();
    const now = performance.now();
    const { watched: after, over } = judge(watched, { inTime: now - lookedAt <= IN_TIME_MS, leases: seen, isGone }, lease);
    watched = after;
    lookedAt = now;
    for (const one of over) {
      if (isOver) return;
      const found = await leases.claim(one, lease);
      const why = one.card && isGone(one.card) ? 'gone' : 'silent';
      if (found) report({ kind: 'claimed', lease: one.id, why, announced: found });
    }
  } catch {
    // The store is away: the next look begins anew (stores/silence-counts).
    lookedAt = -Infinity;
  } finally {
    isLooking = false;
  }
}

function tick(): void {
  if (ticks % BEAT_TICKS === 0) void beat();
  ticks += 1;
  void look();
}

/** (recovery/quick-is-silent) */
function announceLater(): void {
  announcing ??= setTimeout(() => {
    announcing = undefined;
    const old = performance.now() - ANNOUNCE_AFTER_MS;
    const running = [...begun.values()];
    const isNews = running.some(({ at, attempt }) => at <= old && !isAnnounced(attempt.token)) || hasNewRecent;
    hasNewRecent = false;
    if (isNews) void beat();
    if (running.some(({ at }) => at > old)) announceLater();
  }, ANNOUNCE_AFTER_MS);
}

function isAnnounced(token: string): boolean {
  return announced?.running.some((one) => one.token === token) === true;
}

function report(message: FromLease): void {
  parentPort?.postMessage(message);
}

async function withdraw(): Promise<void> {
  isOver = true;
  clearInterval(timer);
  await beats;
  await leases.remove(lease).catch(() => undefined);
  await leases.close();
  report({ kind: 'withdrawn' });
}

parentPort?.on('message', (message: ToLease) => {
  switch (message.kind) {
    case 'began':
      begun.set(message.attempt.token, { attempt: message.attempt, at: performance.now() });
      noteRecent(message.attempt);
      return announceLater();
    case 'ended':
      return void begun.delete(message.token);
    case 'confirm':
      return void beat().then(() => report({ kind: 'confirmed', number: message.number }));
    case 'settled':
      return void leases.remove(message.lease).catch(() => undefined);
    case 'withdraw':
      return void withdraw();
  }
});
const timer = setInterval(tick, TICK_MS);
tick();
