/** Cancels the requests of one call, and leaves nothing behind on the caller's signal. */
import { setMaxListeners } from 'node:events';
import type { Client } from '@temporalio/client';

export type WithSignal = <T>(signal: AbortSignal | undefined, call: () => Promise<T>) => Promise<T>;

/**
 * Temporal's client adds a listener for each request and never takes it away: a chat that waits with one signal for every turn
 * would keep them all. Here they are on a signal that ends with the call; one that polls for hours has many, and rightly so.
 */
export function createWithSignal(client: Pick<Client, 'withAbortSignal'>): WithSignal {
  return async (signal, call) => {
    if (signal === undefined) return call();
    const own = new AbortController();
    setMaxListeners(0, own.signal);
    const pass = (): void => own.abort(signal.reason);
    if (signal.aborted) pass();
    signal.addEventListener('abort', pass, { once: true });
    try {
      return await client.withAbortSignal(own.signal, call);
    } finally {
      signal.removeEventListener('abort', pass);
    }
  };
}
