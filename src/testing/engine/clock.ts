/** A clock that a test moves, and who waits for it. It counts running work: time may pass only when there is none. */

export interface Clock {
  now(): number;
  /** Something runs until what this returns is called. */
  begin(): () => void;
  /** Calls it when the time has come; what this returns forgets it. `why` is for people, and for who lets time pass. */
  at(time: number, why: string, due: () => void): () => void;
  /** Resolves once nothing runs. */
  quiet(): Promise<void>;
  /** The next moment for which something waits. */
  dueAt(counts?: (why: string) => boolean): number | undefined;
  /** Not before something has come to rest. */
  passTo(time: number): void;
}

export interface ClockOptions {
  readonly now: Date;
  /** Where time goes on by itself, as fast as outside: what is waited for and named true is skipped once nothing runs. */
  readonly skips?: (why: string) => boolean;
}

interface Waiting {
  readonly time: number;
  readonly why: string;
  readonly due: () => void;
}

// Taken before a test replaces the globals.
const { setImmediate: soon, setTimeout: later, clearTimeout: forget } = globalThis;
const outside = Date.now;
const MAX_TIMER_MS = 60_000;

export function createClock({ now: first, skips }: ClockOptions): Clock {
  const flows = skips !== undefined;
  let offset = flows ? first.getTime() - outside() : 0;
  let stands = first.getTime();
  let running = 0;
  let rest: (() => void)[] = [];
  const waiting = new Set<Waiting>();
  let timer: NodeJS.Timeout | undefined;

  const now = (): number => (flows ? outside() + offset : stands);

  const fire = (): void => {
    for (const one of [...waiting].filter(({ time }) => time <= now()).sort((a, b) => a.time - b.time)) {
      if (waiting.delete(one)) one.due();
    }
  };

  const passTo = (time: number): void => {
    offset = Math.max(offset, time - outside());
    stands = Math.max(stands, time);
    fire();
  };

  const dueAt = (counts: (why: string) => boolean = () => true): number | undefined => {
    const times = [...waiting].flatMap(({ time, why }) => (counts(why) ? time : []));
    return times.length === 0 ? undefined : Math.min(...times);
  };

  /** Where the test does not move it: skips the waits that may be skipped, and waits for the others. */
  const flow = (): void => {
    forget(timer);
    const next = dueAt();
    if (running > 0 || next === undefined) return;
    if (dueAt(skips) === next) return passTo(next);
    timer = later(() => (fire(), flow()), Math.min(MAX_TIMER_MS, Math.max(1, next - now())));
    timer.unref();
  };

  const settled = (): void => {
    if (running > 0) return;
    const all = rest;
    rest = [];
    for (const go of all) go();
    if (flows) soon(flow);
  };

  return {
    now,
    begin() {
      running += 1;
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        running -= 1;
        if (running === 0) soon(settled);
      };
    },
    at(time, why, due) {
      const one = { time, why, due };
      waiting.add(one);
      if (flows && running === 0) soon(flow);
      return () => void waiting.delete(one);
    },
    quiet: () => new Promise((go) => (running === 0 ? go() : rest.push(go))),
    dueAt,
    passTo,
  };
}

/** Fires all that is due by then, in order. */
export async function advance(clock: Clock, ms: number): Promise<void> {
  if (!(ms >= 0)) throw new RangeError(`cannot advance by ${ms}: time goes on by milliseconds, 0 or more`);
  const end = clock.now() + ms;
  await clock.quiet();
  for (let due = clock.dueAt(); due !== undefined && due <= end; due = clock.dueAt()) {
    clock.passTo(due);
    await clock.quiet();
  }
  clock.passTo(end);
  await clock.quiet();
}
