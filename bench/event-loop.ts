import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Every so often it is seen whether the event loop still answers. */
const EVERY_MS = 1;

/** From now on: the longest time, in milliseconds, that this thread did not come to what was due. Ends when asked. */
export function watchEventLoop(): () => number {
  const delays = monitorEventLoopDelay({ resolution: EVERY_MS });
  delays.enable();
  return () => {
    delays.disable();
    return Math.max(0, delays.max / 1e6 - EVERY_MS);
  };
}
