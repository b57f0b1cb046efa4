/**
 * Ends a call that hangs. An SDK's own timeout covers the wait for headers only, so that a stream which falls silent
 * would hang for ever, and one that drips pings too.
 */

export interface Watchdog {
  /** Aborted by the caller, or by a limit. */
  readonly signal: AbortSignal;
  /** Which limit was passed, if one was. */
  expired(): 'idle' | 'total' | 'bytes' | undefined;
  /** Bytes came: the idle limit begins anew, the total one does not. */
  sawBytes(count: number): void;
  /** All has been said: what is left of the body gets this long, so that its connection can be used again. */
  allow(ms: number): void;
  stop(): void;
}

export interface WatchdogLimits {
  readonly idleMs: number;
  readonly totalMs: number;
  /** Of the decompressed body. */
  readonly maxBytes: number;
}

export function startWatchdog(caller: AbortSignal, { idleMs, totalMs, maxBytes }: WatchdogLimits): Watchdog {
  const abort = new AbortController();
  let expired: 'idle' | 'total' | 'bytes' | undefined;
  let bytes = 0;
  const expire = (limit: 'idle' | 'total' | 'bytes'): void => {
    expired ??= limit;
    abort.abort();
  };
  const idle = setTimeout(() => expire('idle'), idleMs);
  const total = setTimeout(() => expire('total'), totalMs);
  let last: NodeJS.Timeout | undefined;
  return {
    signal: AbortSignal.any([caller, abort.signal]),
    expired: () => expired,
    sawBytes(count) {
      bytes += count;
      if (bytes > maxBytes) expire('bytes');
      else idle.refresh();
    },
    allow(ms) {
      last ??= setTimeout(() => expire('total'), ms);
    },
    stop() {
      clearTimeout(idle);
      clearTimeout(total);
      clearTimeout(last);
      // An SDK may leave the end of a body unread: its connection must not stay with us.
      abort.abort();
    },
  };
}

/** The same response, its bytes counted as they come. */
export function counted(response: Response, watchdog: Watchdog): Response {
  watchdog.sawBytes(0);
  if (!response.body) return response;
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      watchdog.sawBytes(chunk.byteLength);
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(count), response);
}
