/** Waits that end before the work does. The work goes on, may still fail, and can be waited for again. */

/** Undefined where the work takes longer than `ms`. */
export async function orUndefinedAfter<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Rejects with `toError(ms)` where the work takes longer. The timer does not keep the process alive. */
export async function withTimeout<T>(ms: number, work: Promise<T>, toError: (ms: number) => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => (timer = setTimeout(() => reject(toError(ms)), ms).unref()));
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Rejects with the signal's reason when it aborts. */
export async function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let abort!: () => void;
  const aborted = new Promise<never>((_resolve, reject) => (abort = () => reject(signal.reason as Error)));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Undefined when the signal aborts. */
export async function orUndefinedOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T | undefined> {
  try {
    return await orAborted(signal, work);
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

/**
 * The items of a stream, and undefined each time it is silent for longer than `patience` says then, in milliseconds; undefined: as long as
 * it takes. A consumer that leaves it leaves the stream, which may still wait for its next item: its signal ends that.
 */
export async function* orSilence<T>(
  stream: AsyncGenerator<T, void>,
  patience: () => number | undefined,
): AsyncGenerator<T | undefined, void> {
  let next: Promise<IteratorResult<T, void>> | undefined;
  try {
    for (;;) {
      next ??= stream.next();
      const ms = patience();
      const item = ms === undefined ? await next : await orUndefinedAfter(ms, next);
      if (item?.done === true) return;
      if (item !== undefined) next = undefined;
      yield item?.value;
    }
  } finally {
    next?.catch(() => undefined);
    void stream.return().catch(() => undefined);
  }
}

/**
 * In place of `AbortSignal.timeout`, which Node 20 forgets: a signal of that kind that only `AbortSignal.any` refers to is collected,
 * and its time never ends. Here the timer holds the signal. It does not keep the process alive.
 */
export function timeoutSignal(ms: number): AbortSignal {
  return startTimeout(ms).signal;
}

/** The same for work whose end is known: its timer ends with it, and holds nothing of it any longer. */
export async function withTimeoutSignal<T>(ms: number, work: (timeout: AbortSignal) => Promise<T>): Promise<T> {
  const { signal, timer } = startTimeout(ms);
  try {
    return await work(signal);
  } finally {
    clearTimeout(timer);
  }
}

function startTimeout(ms: number): { readonly signal: AbortSignal; readonly timer: NodeJS.Timeout } {
  const controller = new AbortController();
  const expire = (): void => controller.abort(new DOMException(`it took longer than ${ms} ms`, 'TimeoutError'));
  return { signal: controller.signal, timer: setTimeout(expire, ms).unref() };
}
