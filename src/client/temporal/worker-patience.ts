/** A call that waits for a worker which is not there ends with an error, and not never. */
import type { Client } from '@temporalio/client';
import type { Description } from '../describe.js';
import { ClientError } from '../errors.js';
import { withRetries, type WithSignal } from './with-retries.js';
import { hasLiveWorker } from './worker-place.js';

export interface WorkerPatience {
  readonly attempt: string;
  readonly signal: AbortSignal | undefined;
  /** Milliseconds for which no worker may be there; `Infinity` never looks. */
  readonly patienceMs: number;
  readonly hasWorker: () => Promise<boolean>;
  /** Keeps what was to be sent, where that is possible, and makes the error for the caller. */
  readonly giveUp: () => Promise<ClientError>;
}

const LOOKS_WITHOUT = 2;

/**
 * A turn may take hours: as long as a worker is there it is waited for. One look without a worker proves nothing: a server that has just
 * come back knows none until they ask again, which they do within 12 s (Temporal's worker pauses for 10 s at most between two polls). A
 * server that cannot be reached changes nothing.
 */
export async function unlessNoWorker<T>(
  { attempt, signal, patienceMs, hasWorker, giveUp }: WorkerPatience,
  call: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (patienceMs === Infinity) return call(signal);
  const controller = new AbortController();
  let pass!: () => void;
  let timer: NodeJS.Timeout | undefined;
  const noWorker = new Promise<never>((_resolve, reject) => {
    // An update that no worker has taken is not always heard to be cancelled: the caller is answered all the same.
    pass = () => {
      controller.abort(signal?.reason);
      reject(new ClientError('aborted', `${attempt}: stopped waiting`));
    };
    if (signal?.aborted) pass();
    signal?.addEventListener('abort', pass, { once: true });
    let without = 0;
    const look = async (): Promise<void> => {
      without = (await hasWorker().catch(() => true)) ? 0 : without + 1;
      if (without === LOOKS_WITHOUT) reject(await giveUp());
      else wait();
    };
    const wait = (): void => {
      if (!controller.signal.aborted) timer = setTimeout(() => void look().catch(reject), patienceMs / LOOKS_WITHOUT);
    };
    wait();
  });
  noWorker.catch(() => undefined);
  const called = call(controller.signal);
  called.catch(() => undefined);
  try {
    return await Promise.race([called, noWorker]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', pass);
    controller.abort();
  }
}

export interface Asked {
  /** The conversation. */
  readonly id: string;
  readonly attempt: string;
  readonly signal?: AbortSignal;
  /** Its task queue, where the call itself may start it. */
  readonly queue?: string;
  /** What becomes of it where no worker is; a promise first puts the message where it is safe. */
  readonly without: string | (() => Promise<string>);
}

export interface WorkerQuestions {
  readonly client: Client;
  readonly namespace: string;
  /** Milliseconds without a worker after which it is given up. */
  readonly patienceMs: number;
  readonly describe: (id: string) => Promise<Description>;
}

/** What only a worker answers. */
export type UnlessNoWorker = <T>(request: Asked, call: (signal: AbortSignal | undefined) => Promise<T>) => Promise<T>;

export function createUnlessNoWorker({ client, namespace, patienceMs, describe }: WorkerQuestions): UnlessNoWorker {
  return ({ id, attempt, signal, queue, without }, call) => {
    const where = async (): Promise<string> => queue ?? (await describe(id)).taskQueue;
    const patience: WorkerPatience = {
      attempt,
      signal,
      patienceMs,
      hasWorker: async () => hasLiveWorker(client.connection, { namespace, taskQueue: await where() }),
      async giveUp() {
        const queueName = await where();
        const becomes =
          typeof without === 'string'
            ? without
            : await without().catch((error: unknown) => `the message could not be kept either (${String(error)})`);
        const what = `no worker takes work from task queue ${queueName}: start one (\`perdura worker\`)`;
        return new ClientError('no-worker', `${attempt}: ${what}; ${becomes}`);
      },
    };
    return unlessNoWorker(patience, call);
  };
}

/** An update, tried again for as long as that can help and a worker is there. */
export type AskWorker = <T>(
  request: Omit<Asked, 'queue' | 'without'> & Partial<Pick<Asked, 'without'>>,
  update: () => Promise<T>,
) => Promise<T>;

export function createAskWorker(unlessAway: UnlessNoWorker, withSignal: WithSignal): AskWorker {
  return ({ without = NOT_SURE, ...request }, update) =>
    unlessAway({ ...request, without }, (signal) => withRetries({ attempt: request.attempt, signal }, () => withSignal(signal, update)));
}

/** The server may hand over a call whose caller has given up, or drop it. */
const NOT_SURE = 'a worker that comes may still do it, or never hear of it: look how the conversation stands before you ask again';

/** Of a message that was sent by signal instead: it is in the history at once, worker or not. */
export function describeDelivery(messageId: string): string {
  return `message ${messageId} is kept and answered once one does; \`send\` with the same id then has its answer`;
}
