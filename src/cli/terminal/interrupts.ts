import type { Signals } from '../session/context.js';

/**
 * Calls `handle` once per Ctrl+C, or once per signal. Under `npm start` one Ctrl+C arrives twice, from the terminal and
 * from npm, which passes it on: what comes within 100 ms is the same one. Returns the way to stop listening.
 */
export function onInterrupt(signals: Signals, handle: () => void, now: () => number = Date.now): () => void {
  let last = -Infinity;
  const listener = (): void => {
    const at = now();
    if (at - last < 100) return;
    last = at;
    handle();
  };
  signals.on('SIGINT', listener);
  return () => void signals.off('SIGINT', listener);
}

/** The terminal was closed, or somebody asked us to end. */
export function onTermination(signals: Signals, handle: (exitCode: number) => void): () => void {
  const hangup = (): void => handle(129);
  const terminate = (): void => handle(143);
  signals.on('SIGHUP', hangup);
  signals.on('SIGTERM', terminate);
  return () => {
    signals.off('SIGHUP', hangup);
    signals.off('SIGTERM', terminate);
  };
}
