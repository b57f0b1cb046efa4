/**
 * Leases of workers: each has one, and beats, so that the others of its task queue know that it lives; with it stands what it runs. When a
 * lease is over, one of the others claims it, and takes over.
 *
 * Which one is over is decided by what a worker sees, tick by tick, and by no clock: neither a machine that slept nor a clock that was set
 * makes a living worker dead.
 *
 * @rule stores/gone-is-over: The lease of a process that this machine no longer has is over at once. (test: test/stores/leases.test.ts)
 * @rule stores/silence-counts: Of another one it is over after SILENT_TICKS looks in a row, each in time, in which it has not beaten. A look
 *   that failed or came late begins the count anew for all: who was away himself, or whose store was, has seen no silence. (test:
 *   test/stores/leases.test.ts)
 * @rule stores/one-claims: Of those that claim a lease one gets it, and only if it has not beaten since. A lease that was claimed beats no
 *   more. (test: test/stores/leases.test.ts)
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { isRecord } from '../platform/json.js';
import { isAlive } from '../platform/processes.js';

/** Milliseconds between looks. */
export const TICK_MS = 200;
/** A worker beats at every second of its ticks. */
export const BEAT_TICKS = 2;
/** 1.6 s: four beats that did not come. */
export const SILENT_TICKS = 8;
/** For so long after a beat has left, no one can have taken the lease: less than what others wait for. */
export const HELD_MS = 1_000;

/** One incarnation of a worker, as the others know it. */
export interface LeaseCard {
  readonly host: string;
  /** Boot and process namespace: what a process id is of. Empty where the system does not say. */
  readonly machine: string;
  readonly pid: number;
  /** When the process started, as the system counts; empty where it does not say. */
  readonly started: string;
}

export interface SeenLease {
  readonly id: string;
  /** Another one after each beat. */
  readonly beat: string;
  /** Undefined where it cannot be read: then only silence counts. */
  readonly card: LeaseCard | undefined;
}

/** What a worker runs: all that it takes to have Temporal try it again now. */
export interface RunningAttempt {
  /** Names this attempt and no other, in base64. */
  readonly token: string;
  readonly workflowId: string;
  readonly runId: string;
  readonly attempt: number;
  readonly what: string;
}

/** All that one needs to go on with what a worker ran. */
export interface Announced {
  /** As Temporal knows the worker. */
  readonly identity: string;
  readonly running: readonly RunningAttempt[];
  /** Ids of workflows that it has worked for lately: what it has only just begun with is found there. */
  readonly recent: readonly string[];
}

/** Leases of the workers of one task queue. All reject where the store is away. */
export interface Leases {
  /** `announced`: where it has changed, or the last answer was `again`. `taken`: the lease was claimed, and stays so. */
  beat(id: string, beat: { readonly number: number; readonly card: LeaseCard; readonly announced?: Announced }): Promise<Beaten>;
  list(): Promise<readonly SeenLease[]>;
  /** What it has announced; undefined where another one was first, or it has beaten since it was seen. */
  claim(lease: SeenLease, by: string): Promise<Announced | undefined>;
  /** Takes a lease back that its holder ends, or forgets what is left of one that was claimed. */
  remove(id: string): Promise<void>;
  close(): Promise<void>;
}

/** `again`: the store has not what it runs. */
export type Beaten = 'held' | 'again' | 'taken';

/** What one worker knows of the others: how many looks in a row each has been silent. */
export type Watched = ReadonlyMap<string, { readonly beat: string; readonly silent: number }>;

export interface Look {
  /** It was in time, and the one before it too: no more than a tick or so passed between them. */
  readonly inTime: boolean;
  readonly leases: readonly SeenLease[];
  /** Whether the process of a card has ended, as far as this machine knows. */
  readonly isGone: (card: LeaseCard) => boolean;
}

/** The leases that are over by this look, and what to go by at the next one. `self`: never over for itself. */
export function judge(
  before: Watched,
  { inTime, leases, isGone }: Look,
  self: string,
): { readonly watched: Watched; readonly over: readonly SeenLease[] } {
  const others = leases.filter(({ id }) => id !== self);
  const watched = new Map(
    others.map(({ id, beat }) => {
      const known = before.get(id);
      return [id, { beat, silent: inTime && known?.beat === beat ? known.silent + 1 : 0 }];
    }),
  );
  const over = others.filter(({ id, card }) => (card && isGone(card)) || (watched.get(id)?.silent ?? 0) >= SILENT_TICKS);
  return { watched, over };
}

/** Of this process. */
export function ownCard(): LeaseCard {
  return { host: hostname(), machine: machine(), pid: process.pid, started: readStart(process.pid) ?? '' };
}

/** Only of a process that this machine would see if it lived. */
export function createIsGone(): (card: LeaseCard) => boolean {
  const here = { host: hostname(), machine: machine() };
  return ({ host, machine: there, pid, started }) => {
    if (host !== here.host || there !== here.machine) return false;
    if (!isAlive(pid)) return true;
    const now = readStart(pid);
    return now !== undefined && started !== '' && now !== started;
  };
}

/** Two containers of one machine have the same boot, and may have one host name, but not the same processes. */
function machine(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return '';
  }
}

/** Ticks since the machine's boot. Undefined: it has ended, only waits to be collected, or the system does not say. */
function readStart(pid: number): string | undefined {
  try {
    // The name in brackets may have blanks: the state comes behind it.
    const [state, ...rest] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
    // Its first thread may have ended before the others, which still have its connections.
    const hasEnded = (state === 'Z' || state === 'X') && readdirSync(`/proc/${pid}/task`).length <= 1;
    return hasEnded ? 'ended' : rest[18];
  } catch {
    return undefined;
  }
}

export function encodeCard(card: LeaseCard): string {
  return JSON.stringify(card);
}

export function decodeCard(text: string): LeaseCard | undefined {
  const card = parse(text);
  if (!isRecord(card)) return undefined;
  const { host, machine: of, pid, started } = card;
  if (typeof host !== 'string' || typeof of !== 'string' || typeof started !== 'string') return undefined;
  return Number.isSafeInteger(pid) && Number(pid) > 0 ? { host, machine: of, pid: Number(pid), started } : undefined;
}

/** More than a worker has slots for. */
const MAX_RUNNING = 2_000;
export const MAX_RECENT = 200;
const MAX_TEXT = 4_096;

export function encodeAnnounced(announced: Announced): string {
  return JSON.stringify(announced);
}

/** What is no attempt is left out: it is not there, as far as a retry goes. */
export function decodeAnnounced(text: string): Announced {
  const value = parse(text);
  const { identity, running, recent } = isRecord(value) ? value : {};
  return {
    identity: isText(identity) ? identity : '',
    running: Array.isArray(running) ? running.slice(0, MAX_RUNNING).flatMap(toAttempt) : [],
    recent: Array.isArray(recent) ? recent.slice(0, MAX_RECENT).filter(isText) : [],
  };
}

function toAttempt(value: unknown): RunningAttempt[] {
  if (!isRecord(value)) return [];
  const { token, workflowId, runId, what, attempt } = value;
  if (!isText(token) || !isText(workflowId) || !isText(runId) || !isText(what)) return [];
  return Number.isSafeInteger(attempt) ? [{ token, workflowId, runId, what, attempt: Number(attempt) }] : [];
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
