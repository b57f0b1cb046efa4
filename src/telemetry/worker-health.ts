/**
 * Whether a worker can work and still answers, over HTTP too, and which models it does not ask now.
 *
 * One long piece of synchronous work holds up every conversation of a worker, heartbeats included. A block that ends is reported: a line in
 * the log with what ran meanwhile, and a gauge. Of one that does not end a thread beside the worker knows which activity it is in
 * (hang-thread.ts), and has Temporal hand that to the activity's next attempt: one that has ended two workers is not done a third time. A
 * worker that is killed, or loses its machine, leaves no such note, so its work is taken up as often as it may be.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { url as debuggerUrl } from 'node:inspector';
import { performance } from 'node:perf_hooks';
import type { Worker as Thread } from 'node:worker_threads';
import { asyncLocalStorage } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { NativeConnection, Runtime, type ActivityInterceptorsFactory, type Logger, type NativeConnectionOptions } from '@temporalio/worker';
import type { OpenCircuit } from '../models/circuit-breaker.js';
import { ConfigError, errorFields, errorMessage } from '../platform/errors.js';
import { orUndefinedAfter } from '../platform/promises.js';
import { isRecord } from '../platform/json.js';
import { HUNG_WORKER } from '../records/turn-end.js';
import type { HangAnswer, HangMessage, HangThreadData } from './hang-thread.js';

export interface EventLoopWatch {
  /** To be called around a piece of work; answers the way to end that. */
  during(what: string): () => void;
  close(): void;
}

export interface EventLoopOptions {
  /** Milliseconds of a block that is reported. */
  readonly thresholdMs: number;
  readonly warn: (message: string, fields: { readonly blockedMs: number; readonly running: readonly string[] }) => void;
  readonly gauge: (blockedMs: number) => void;
}

const EVERY_MS = 50;
const SHOWN = 5;

export function watchEventLoop({ thresholdMs, warn, gauge }: EventLoopOptions): EventLoopWatch {
  const running = new Map<symbol, { readonly what: string; readonly since: number }>();
  /** Work that ended while the monitor could not run is likely the cause of the block. */
  let ended: { readonly what: string; readonly ms: number }[] = [];
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    const blockedMs = Math.round(now - last - EVERY_MS);
    if (blockedMs >= thresholdMs) {
      const still = [...running.values()].map(({ what, since }) => ({ what, ms: now - since }));
      const longest = [...ended, ...still].sort((a, b) => b.ms - a.ms).slice(0, SHOWN);
      gauge(blockedMs);
      const names = longest.map(({ what, ms }) => `${what} (${Math.round(ms)} ms)`);
      warn(`nothing else ran here for ${blockedMs} ms`, { blockedMs, running: names });
    }
    ended = [];
    last = now;
  }, EVERY_MS);
  timer.unref();
  return {
    during(what) {
      const id = Symbol(what);
      const since = performance.now();
      running.set(id, { what, since });
      return () => {
        running.delete(id);
        ended.push({ what, ms: performance.now() - since });
      };
    },
    close: () => clearInterval(timer),
  };
}

/** Every activity is work that is known by name. */
export function whatRuns(watch: Pick<EventLoopWatch, 'during'>): ActivityInterceptorsFactory {
  return ({ info }) => ({
    inbound: {
      async execute(input, next) {
        const end = watch.during(`${info.activityType} of ${info.workflowExecution?.workflowId ?? 'no workflow'}`);
        try {
          return await next(input);
        } finally {
          end();
        }
      },
    },
  });
}

/** What an activity may end before it is given up. */
const MAX_HUNG = 2;
/** For the note of a process that ends in the middle of an activity. */
const EXIT_MS = 8_000;
const HANG_ANSWER = Symbol.for('perdura.hang-answer');

export interface HangWatch {
  readonly activities: ActivityInterceptorsFactory;
  close(): Promise<void>;
}

/** `start`: begins the program of hang-thread.ts. Without a thread activities run as ever. */
export async function watchForHangs(
  options: Omit<HangThreadData, 'shared'>,
  start: (workerData: HangThreadData) => Promise<Thread>,
): Promise<HangWatch> {
  const shared = new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT);
  const numbers = new Int32Array(shared);
  const thread = await start({ ...options, shared });
  thread.unref();
  const tell = (message: HangMessage): void => thread.postMessage(message);
  // The thread finds it without this module.
  (globalThis as { [HANG_ANSWER]?: () => HangAnswer })[HANG_ANSWER] = answerHere;
  const beat = (): void => {
    Atomics.add(numbers, 0, 1);
    Atomics.store(numbers, 2, debuggerUrl() === undefined ? 0 : 1);
  };
  const timer = setInterval(beat, EVERY_MS);
  timer.unref();
  const noteExit = (): void => {
    const { id } = answerHere();
    if (id === undefined) return;
    tell({ kind: 'exit', id });
    Atomics.wait(numbers, 1, 0, EXIT_MS);
  };
  process.on('exit', noteExit);
  return {
    activities: ({ info }) => ({
      inbound: {
        async execute(input, next) {
          const hung = hungBefore(info.heartbeatDetails);
          const what = `${info.activityType} of ${info.workflowExecution?.workflowId ?? 'no workflow'}`;
          if (hung >= MAX_HUNG) throw givenUp(info.activityType);
          const id = info.base64TaskToken;
          tell({ kind: 'began', id, what, hung });
          try {
            return await next(input);
          } finally {
            tell({ kind: 'ended', id });
          }
        },
      },
    }),
    async close() {
      process.off('exit', noteExit);
      clearInterval(timer);
      await thread.terminate();
    },
  };
}

/** Called in the middle of whatever this thread does. */
function answerHere(): HangAnswer {
  const id = asyncLocalStorage.getStore()?.info.base64TaskToken;
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 30;
  const { stack = '' } = new Error('here');
  Error.stackTraceLimit = stackTraceLimit;
  return { ...(id !== undefined && { id }), stack };
}

/** Other details are the activity's. */
function hungBefore(details: unknown): number {
  const { hung } = isRecord(details) ? (details as { readonly hung?: unknown }) : {};
  return typeof hung === 'number' ? hung : 0;
}

function givenUp(activity: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(
    `given up: ${MAX_HUNG} workers that ran this (${activity}) stood still or ended in the middle of it, and it is not tried again. ` +
      'Their logs have the code that did it, such as a tool, a processor or a hook: correct that, or send something else',
    HUNG_WORKER,
  );
}

export function eventLoopGauge(): EventLoopOptions['gauge'] {
  const name = 'perdura_event_loop_blocked_milliseconds';
  const gauge = Runtime.instance().metricMeter.createGauge(
    name,
    'int',
    'ms',
    'How long nothing else could run in this worker, the last time',
  );
  return (blockedMs) => gauge.set(blockedMs);
}

/**
 * A gauge of the models that this worker does not ask now, and a line in the log for each change. Takes all open ones, and the changed one.
 */
export function createCircuitReport(log: Pick<Logger, 'warn' | 'info'>): (open: readonly OpenCircuit[], of: string) => void {
  const name = 'perdura_circuit_open';
  const gauge = Runtime.instance().metricMeter.createGauge(name, 'int', undefined, '1 for a model or provider that is not asked now');
  return (open, of) => {
    const found = open.find((one) => one.of === of);
    gauge.set(found ? 1 : 0, { of });
    if (found) log.warn('a model is not asked for a while', { of, reason: found.reason, until: new Date(found.until).toISOString() });
    else log.info('a model answers again', { of });
  };
}

export interface HealthOptions {
  /** An IP address and a port; absent: nothing listens. */
  readonly address: string | undefined;
  /** What a worker needs to be of use, by name; each rejects, or does not answer in time, where it is not there. */
  readonly checks: Readonly<Record<string, () => Promise<unknown>>>;
}

const CHECK_MS = 2_000;

/**
 * `/healthz` says that this process answers, which one that stands still does not; `/readyz` that it takes work, and that what it needs for
 * that answers too: 503 where it does not, and while it starts and ends. Throws `ConfigError` where it cannot listen.
 */
export async function serveHealth({ address, checks }: HealthOptions): Promise<{ close(): void }> {
  if (address === undefined) return { close: () => undefined };
  /** Those that ask at the same time are answered together. */
  let looking: Promise<Readonly<Record<string, boolean>>> | undefined;
  const look = async (): Promise<Readonly<Record<string, boolean>>> => {
    const answers = Object.entries(checks).map(async ([name, check]) => [name, await answersInTime(check)] as const);
    return Object.fromEntries(await Promise.all(answers));
  };
  const answer = async (path: string | undefined): Promise<readonly [code: number, body: object]> => {
    if (path === '/healthz') return [200, { status: 'ok' }];
    if (path !== '/readyz') return [404, { status: 'not-found', paths: ['/healthz', '/readyz'] }];
    const found = await (looking ??= look().finally(() => (looking = undefined)));
    const isReady = Object.values(found).every(Boolean);
    return [isReady ? 200 : 503, { status: isReady ? 'ready' : 'not-ready', ...found }];
  };
  const server = createServer((request, response) => {
    void answer(request.url?.split('?')[0]).then(([code, body]) =>
      response.writeHead(code, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(body)),
    );
  });
  const [, host = '', port = ''] = /^\[?(.+?)\]?:(\d+)$/.exec(address) ?? [];
  try {
    await once(server.listen(Number(port), host), 'listening');
  } catch (cause) {
    throw new ConfigError(
      `PERDURA_HEALTH_ADDRESS is ${address}, where nothing can listen (${errorMessage(cause)}): set another address or port, or end what has it`,
      { cause },
    );
  }
  server.unref();
  return {
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answersInTime(check: () => Promise<unknown>): Promise<boolean> {
  try {
    return (
      (await orUndefinedAfter(
        CHECK_MS,
        check().then(() => true),
      )) ?? false
    );
  } catch {
    return false;
  }
}

// Whether it can work at all.

/** The core tries for half a minute, and does not say then what was in the way. */
const SUSPICIOUS_MS = 1_000;

/** `whyNot`: called where no connection comes up for a while; what it rejects with ends the wait. */
export async function connectNative(
  options: NativeConnectionOptions,
  whyNot: (() => Promise<void>) | undefined,
): Promise<NativeConnection> {
  const connecting = NativeConnection.connect(options);
  if (whyNot === undefined) return connecting;
  const early = await orUndefinedAfter(SUSPICIOUS_MS, connecting);
  if (early !== undefined) return early;
  try {
    return await Promise.race([connecting, whyNot().then(() => connecting)]);
  } catch (error) {
    void connecting.then((late) => late.close()).catch(() => undefined);
    throw error;
  }
}

const WORK_CHECK_MS = 5_000;
/** PERMISSION_DENIED and UNAUTHENTICATED of gRPC. */
const REFUSED = new Set<unknown>([7, 16]);

/**
 * A key that may only read lets a worker connect, and its core would then poll for ever without a word. A heartbeat of no activity is
 * refused in any case: in other words where this client may write. Throws what Temporal answers where it may not.
 */
export async function checkMayWork(connection: NativeConnection, namespace: string): Promise<void> {
  const beat = () => connection.workflowService.recordActivityTaskHeartbeat({ namespace });
  await connection.withDeadline(Date.now() + WORK_CHECK_MS, beat).catch((error: unknown) => {
    if (REFUSED.has(errorFields(error).code)) throw error;
  });
}
