/**
 * Whether a worker still answers, and which models it does not ask now.
 *
 * One long piece of synchronous work holds up every conversation of a worker, heartbeats included. Only
 * reports: a line in the log with what ran meanwhile, and a gauge. What took the longest cannot be known from outside of it; the activities
 * that were under way can.
 */
import { performance } from 'node:perf_hooks';
import { Runtime, type ActivityInterceptorsFactory, type Logger } from '@temporalio/worker';
import type { OpenCircuit } from '../models/circuit-breaker.js';

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
