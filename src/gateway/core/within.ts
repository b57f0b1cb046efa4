/** Undefined where it takes longer; the promise can be waited for again. */
export async function within<T>(ms: number, waited: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)));
  try {
    return await Promise.race([waited, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * What a stream brings, and undefined wherever it is silent for longer than `patience` has then, in milliseconds; undefined: as long as it
 * takes. Leaving it leaves the stream, which may still wait for its next item: what ends that is its signal.
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
      const item = ms === undefined ? await next : await within(ms, next);
      if (item?.done === true) return;
      if (item !== undefined) next = undefined;
      yield item?.value;
    }
  } finally {
    next?.catch(() => undefined);
    void stream.return().catch(() => undefined);
  }
}
