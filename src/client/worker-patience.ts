/** A call that waits for a worker which is not there ends with an error, and not never. */
import { ClientError } from './errors.js';

export interface WorkerPatience {
  readonly attempt: string;
  readonly signal: AbortSignal | undefined;
  /** Milliseconds between two looks for a worker; `Infinity` never looks. */
  readonly patienceMs: number;
  readonly hasWorker: () => Promise<boolean>;
  /** Keeps what was to be sent, where that is possible, and makes the error for the caller. */
  readonly giveUp: () => Promise<ClientError>;
}

/** A turn may take hours: as long as a worker is there it is waited for. A server that cannot be asked for workers changes nothing. */
export async function unlessNoWorker<T>(
  { attempt, signal, patienceMs, hasWorker, giveUp }: WorkerPatience,
  call: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (patienceMs === Infinity) return call(signal);
  const own = new AbortController();
  let pass!: () => void;
  let timer: NodeJS.Timeout | undefined;
  const noWorker = new Promise<never>((_resolve, reject) => {
    // An update that no worker has taken is not always heard to be cancelled: the caller is answered all the same.
    pass = () => {
      own.abort(signal?.reason);
      reject(new ClientError('aborted', `${attempt}: stopped waiting`));
    };
    if (signal?.aborted) pass();
    signal?.addEventListener('abort', pass, { once: true });
    const look = async (): Promise<void> => {
      if (await hasWorker().catch(() => true)) wait();
      else reject(await giveUp());
    };
    const wait = (): void => {
      if (!own.signal.aborted) timer = setTimeout(() => void look().catch(reject), patienceMs);
    };
    wait();
  });
  noWorker.catch(() => undefined);
  const called = call(own.signal);
  called.catch(() => undefined);
  try {
    return await Promise.race([called, noWorker]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', pass);
    own.abort();
  }
}
