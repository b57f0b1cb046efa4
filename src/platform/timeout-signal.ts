/**
 * In place of `AbortSignal.timeout`, which Node 20 forgets: a signal of that kind that only `AbortSignal.any` refers to is collected,
 * and its time never ends. Here the timer holds the signal. It does not keep the process alive.
 */
export function timeoutSignal(ms: number): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(new DOMException(`it took longer than ${ms} ms`, 'TimeoutError')), ms).unref();
  return controller.signal;
}
