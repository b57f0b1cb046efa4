/** Calls of Temporal: made again, with the same id, for as long as another try can help, and given up with their caller. */
import { setMaxListeners } from 'node:events';
import type { Client } from '@temporalio/client';
import { ClientError, isAway, isWorthAnotherTry, toClientError } from '../errors.js';

export interface Tries {
  readonly attempt: string;
  readonly signal?: AbortSignal;
  /** Milliseconds for which an unreachable server is put up with; default two minutes. */
  readonly patienceMs?: number;
  /** Default: what passes by itself. */
  readonly isWorthAnother?: (error: unknown) => boolean;
}

const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 2_000;
/** Ten attempts with pauses of up to 5 s. */
const MAX_TRY_MS = 25_000;

export async function withRetries<T>(tries: Tries, say: () => Promise<T>): Promise<T> {
  const { attempt, signal, patienceMs = 120_000, isWorthAnother = isWorthAnotherTry } = tries;
  let troubled = 0;
  let since = Date.now();
  for (let failed = 0; ; failed++) {
    if (signal?.aborted) throw new ClientError('aborted', `${attempt}: stopped waiting`);
    const began = Date.now();
    try {
      return await say();
    } catch (error) {
      if (signal?.aborted) throw new ClientError('aborted', `${attempt}: stopped waiting`, { cause: error });
      // A wait that the server ended after a while is progress, not trouble. That it is away, Temporal's client says late, having
      // tried for a while itself, or at the end of a long wait: so much of it counts.
      const isProgress = !isAway(error) && Date.now() - began > 5_000;
      troubled = isProgress ? 0 : troubled + Math.min(Date.now() - since, MAX_TRY_MS);
      since = Date.now();
      if (!isWorthAnother(error) || troubled > patienceMs) throw toClientError(error, attempt);
    }
    await pause(Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failed, 10)), signal);
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}

export type WithSignal = <T>(signal: AbortSignal | undefined, call: () => Promise<T>) => Promise<T>;

/**
 * Cancels the requests of one call, and leaves nothing behind on the caller's signal.
 *
 * Temporal's client adds a listener for each request and never takes it away: a chat that waits with one signal for every turn
 * would keep them all. Here they are on a signal that ends with the call; one that polls for hours has many, and rightly so.
 */
export function createWithSignal(client: Pick<Client, 'withAbortSignal'>): WithSignal {
  return async (signal, call) => {
    if (signal === undefined) return call();
    const ofCall = new AbortController();
    setMaxListeners(0, ofCall.signal);
    const pass = (): void => ofCall.abort(signal.reason);
    if (signal.aborted) pass();
    signal.addEventListener('abort', pass, { once: true });
    try {
      return await client.withAbortSignal(ofCall.signal, call);
    } finally {
      signal.removeEventListener('abort', pass);
    }
  };
}
