/** How long a call of Temporal is tried again, and when one ends with an error that waits for a worker that is missing, or that fails. */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { Client } from '@temporalio/client';
import type { UpdateDefinition } from '@temporalio/common';
import type { Description } from '../describe.js';
import { BETWEEN_RUNS_MS, ClientError, isAway, isBetweenRuns, isWorthAnotherTry, toClientError } from '../errors.js';
import { truncate } from '../../records/text.js';
import { hasLiveWorker } from './worker-place.js';

export interface WorkerPatience {
  readonly attempt: string;
  readonly signal: AbortSignal | undefined;
  /** Milliseconds for which no worker may be there; `Infinity` never looks. */
  readonly patienceMs: number;
  readonly hasWorker: () => Promise<boolean>;
  /** Why the workflow task of the conversation fails again and again; undefined where it does not. */
  readonly whyFailing?: () => Promise<string | undefined>;
  /** Keeps what was to be sent, where that is possible, and makes the error for the caller. `why`: of a task that fails. */
  readonly giveUp: (why?: string) => Promise<ClientError>;
}

const LOOKS_WITHOUT = 2;

/**
 * A turn may take hours: as long as a worker is there it is waited for. One look without a worker proves nothing: a server that has just
 * come back knows none until they ask again, which they do within 12 s (Temporal's worker pauses for 10 s at most between two polls). A
 * server that cannot be reached changes nothing.
 */
export async function unlessNoWorker<T>(
  { attempt, signal, patienceMs, hasWorker, whyFailing, giveUp }: WorkerPatience,
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
    let [without, failing] = [0, 0];
    const look = async (): Promise<void> => {
      const isThere = await hasWorker().catch(() => true);
      const why = isThere ? await whyFailing?.().catch(() => undefined) : undefined;
      without = isThere ? 0 : without + 1;
      failing = why === undefined ? 0 : failing + 1;
      if (without === LOOKS_WITHOUT) reject(await giveUp());
      else if (failing === LOOKS_WITHOUT) reject(await giveUp(why));
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

export interface WorkerRequest {
  /** The conversation. */
  readonly id: string;
  readonly attempt: string;
  readonly signal?: AbortSignal | undefined;
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
export type UnlessNoWorker = <T>(request: WorkerRequest, call: (signal: AbortSignal | undefined) => Promise<T>) => Promise<T>;

export function createUnlessNoWorker({ client, namespace, patienceMs, describe }: WorkerQuestions): UnlessNoWorker {
  return ({ id, attempt, signal, queue, without }, call) => {
    const where = async (): Promise<string> => queue ?? (await describe(id)).taskQueue;
    const patience: WorkerPatience = {
      attempt,
      signal,
      patienceMs,
      hasWorker: async () => hasLiveWorker(client.connection, { namespace, taskQueue: await where() }),
      whyFailing: () => whyTasksFail(client, namespace, id),
      async giveUp(why) {
        const becomes =
          typeof without === 'string'
            ? without
            : await without().catch((error: unknown) => `the message could not be kept either (${String(error)})`);
        if (why !== undefined) {
          const what = `${id} cannot go on, its workflow task fails again and again: ${why}. Correct that and start the workers again`;
          return new ClientError('failed', `${attempt}: ${what}; ${becomes}`);
        }
        const what = `no worker takes work from task queue ${await where()}: start one (\`perdura worker\`)`;
        return new ClientError('no-worker', `${attempt}: ${what}; ${becomes}`);
      },
    };
    return unlessNoWorker(patience, call);
  };
}

/** Of one workflow task; fewer may be workers that were killed. */
const MANY_ATTEMPTS = 3;
const LATEST_EVENTS = 20;
const MAX_WORDS = 500;

/** Temporal keeps the first failure of a task alone. */
async function whyTasksFail({ workflowService }: Client, namespace: string, id: string): Promise<string | undefined> {
  const execution = { workflowId: id };
  const { pendingWorkflowTask } = await workflowService.describeWorkflowExecution({ namespace, execution });
  if ((pendingWorkflowTask?.attempt ?? 0) < MANY_ATTEMPTS) return undefined;
  const { history } = await workflowService.getWorkflowExecutionHistoryReverse({ namespace, execution, maximumPageSize: LATEST_EVENTS });
  const failed = history?.events?.find(({ workflowTaskFailedEventAttributes: attributes }) => Boolean(attributes));
  const words = failed?.workflowTaskFailedEventAttributes?.failure?.message;
  return words ? truncate(words, MAX_WORDS) : undefined;
}

/** An update, tried again for as long as that can help and a worker is there. */
export type AskWorker = <T>(
  request: Omit<WorkerRequest, 'without'> & Partial<Pick<WorkerRequest, 'without'>>,
  update: () => Promise<T>,
) => Promise<T>;

export function createAskWorker(unlessAway: UnlessNoWorker, withSignal: WithSignal): AskWorker {
  return ({ without = NOT_SURE, ...request }, update) =>
    unlessAway({ ...request, without }, (signal) => withRetries({ attempt: request.attempt, signal }, () => withSignal(signal, update)));
}

// What changes a conversation in its turn, behind what runs and what is queued: it is accepted at once, and done when its turn comes.

/** How long one waits for it. */
export interface ChangeOptions {
  /** Ends the waiting; what was accepted is done all the same. */
  readonly signal?: AbortSignal | undefined;
  /** The conversation has it. */
  readonly onAccepted?: () => void;
}

export type AskChange = <Result>(
  request: { readonly id: string; readonly attempt: string } & ChangeOptions,
  update: UpdateDefinition<Result, [{ id?: string }]>,
) => Promise<Result>;

/** The request has an id, so that saying it again, to the next run if need be, asks once. */
export function createAskChange(handleOf: (id: string) => ReturnType<Client['workflow']['getHandle']>, askWorker: AskWorker): AskChange {
  return ({ id, attempt, signal, onAccepted }, update) => {
    const requestId = randomUUID();
    return askWorker({ id, attempt, signal }, async () => {
      const handle = await handleOf(id).startUpdate(update, {
        args: [{ id: requestId }],
        updateId: `${update.name}-${requestId}`,
        waitForStage: 'ACCEPTED',
      });
      onAccepted?.();
      return handle.result();
    });
  };
}

/** A query, tried again between two runs of its conversation. */
export type AskQuery = <T>(request: Pick<WorkerRequest, 'id' | 'attempt' | 'queue'>, query: () => Promise<T>) => Promise<T>;

export function createAskQuery(unlessAway: UnlessNoWorker, withSignal: WithSignal): AskQuery {
  const tries = { patienceMs: BETWEEN_RUNS_MS, isWorthAnother: isBetweenRuns };
  return (request, query) =>
    unlessAway({ ...request, without: 'nothing was changed' }, (signal) =>
      withRetries({ ...tries, attempt: request.attempt, signal }, () => withSignal(signal, query)),
    );
}

/** The server may hand over a call whose caller has given up, or drop it. */
const NOT_SURE = 'a worker that comes may still do it, or never hear of it: look how the conversation stands before you ask again';

/** Of a message that was sent by signal instead: it is in the history at once, worker or not. */
export function describeDelivery(messageId: string): string {
  return `message ${messageId} is kept and answered once one does; sent again with that id it is this one, and has its answer`;
}

// Calls of Temporal: made again, with the same id, for as long as another try can help, and given up with their caller.

interface Tries {
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
