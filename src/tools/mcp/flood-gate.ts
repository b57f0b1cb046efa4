/** Counts what a server sends on its own time: endless notifications cost a worker its turns. */

const MOST = 5_000;
const WINDOW_MS = 10_000;

export interface FloodGate {
  readonly most: number;
  readonly windowMs: number;
  /** False once there were more than `most` in a window. */
  pass(): boolean;
}

export function createFloodGate(now: () => number = Date.now): FloodGate {
  let began = now();
  let count = 0;
  return {
    most: MOST,
    windowMs: WINDOW_MS,
    pass() {
      const at = now();
      if (at - began >= WINDOW_MS) {
        began = at;
        count = 0;
      }
      count += 1;
      return count <= MOST;
    },
  };
}
