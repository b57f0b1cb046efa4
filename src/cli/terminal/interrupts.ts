/**
 * Calls `handle` once per Ctrl+C, or once per signal. Under `npm start` one Ctrl+C arrives twice, from the terminal and
 * from npm, which passes it on: what comes within 100 ms is the same one. Returns the way to stop listening.
 */
export function onInterrupt(handle: () => void, now: () => number = Date.now): () => void {
  let last = -Infinity;
  const listener = (): void => {
    const at = now();
    if (at - last < 100) return;
    last = at;
    handle();
  };
  process.on('SIGINT', listener);
  return () => void process.off('SIGINT', listener);
}

/** The terminal was closed, or somebody asked us to end. */
export function onTermination(handle: (exitCode: number) => void): () => void {
  const hangup = (): void => handle(129);
  const terminate = (): void => handle(143);
  process.on('SIGHUP', hangup);
  process.on('SIGTERM', terminate);
  return () => {
    process.off('SIGHUP', hangup);
    process.off('SIGTERM', terminate);
  };
}
